package sctp

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// deferredPair has A wait for an answer to its last request; its SACK is deferred. No
// timer checks whether a goroutine polls the sockets of A.
func deferredPair(t *testing.T) (ends [2]*Association) {
	ends = memPair(t)
	ctx, p := context.Background(), &ends[0].t.suppression
	msg, buf := make([]byte, 64), make([]byte, 64)
	for begun := time.Now(); !hasDeferredSACK(ends[0]); {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("no SACK was deferred")
		}
		for range 100 { // until the waiting goroutines poll
			roundTrip(t, ends, msg, buf)
		}
		if err := ends[0].Send(ctx, msg, SendOptions{}); err != nil {
			t.Fatal(err)
		}
		ends[1].t.Poll()
		if err := ends[1].Send(ctx, msg, SendOptions{}); err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		p.closed = false
		p.mu.Unlock()
		p.set(ends[0].t, true)
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		ends[0].t.Poll()
		for range 2 { // what was answered here
			_, _, _ = ends[0].TryRecv(buf)
			_, _, _ = ends[1].TryRecv(buf)
		}
	}
	return ends
}

func hasDeferredSACK(a *Association) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.HasDeferredSack()
}

// A deferred SACK is processed when a poll finds nothing more, and before a goroutine
// that polls parks.
func TestDeferredSACKIsProcessed(t *testing.T) {
	for name, process := range map[string]func(tr *Transport){
		"poll": func(tr *Transport) { tr.Poll() },
		"park": func(tr *Transport) { tr.sockets().list[0].processDeferredSACK() },
		"tick": func(tr *Transport) { // no poll since the last one
			tr.suppression.mu.Lock()
			tr.suppression.closed = false
			tr.suppression.mu.Unlock()
			tr.suppression.tick(tr)
			tr.suppression.tick(tr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ends := deferredPair(t)
			a := ends[0]
			if s := a.t.sockets().list[0]; s.deferredSACK != a {
				t.Fatal("the socket does not know")
			}
			process(a.t)
			if hasDeferredSACK(a) {
				t.Error("the SACK still waits")
			}
		})
	}
}

// A packet for another association has a deferred SACK processed, too.
func TestDeferredSACKIsProcessedAmongOthers(t *testing.T) {
	// A timer that fires processes it, too: then it is tried again.
	for begun := time.Now(); !processedByAnother(t); {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("no INIT came in time")
		}
	}
}

func processedByAnother(t *testing.T) bool {
	ends := deferredPair(t)
	a := ends[0]
	other, err := ends[1].ep.t.Listen(0, &Config{MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = other.Connect(ctx, a.ep.Addr())
	}()
	defer func() { cancel(); <-done }()
	c := a.t.sockets().list[0].conn.(*memConn)
	came := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.queue) > 0
	}
	for !came() {
		if !hasDeferredSACK(a) {
			return false
		}
		runtime.Gosched()
	}
	if deferred := hasDeferredSACK(a); !a.t.Poll() || !deferred {
		return false
	}
	if hasDeferredSACK(a) {
		t.Error("the SACK still waits")
	}
	return true
}
