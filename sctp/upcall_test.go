package sctp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// collector is an upcall-mode peer that puts messages together.
type collector struct {
	mu     sync.Mutex
	assocs []*sctp.Association
	parts  map[uint64][]byte
	order  []string
	busy   atomic.Int32
	got    chan []byte
}

func newCollector() *collector {
	return &collector{parts: map[uint64][]byte{}, got: make(chan []byte, 10000)}
}

func (c *collector) config() *sctp.Config {
	return &sctp.Config{
		OnAssociation: func(a *sctp.Association) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.assocs = append(c.assocs, a)
			c.order = append(c.order, "association")
		},
		OnPiece: func(a *sctp.Association, p *sctp.Piece) {
			if c.busy.Add(1) != 1 {
				panic("two upcalls at a time")
			}
			defer c.busy.Add(-1)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.order = append(c.order, "piece")
			if int(p.Offset) != len(c.parts[p.Message]) {
				panic("pieces out of order")
			}
			if p.Begin != (p.Offset == 0) {
				panic("Begin is wrong")
			}
			c.parts[p.Message] = append(c.parts[p.Message], p.Data...)
			if p.End {
				c.got <- c.parts[p.Message]
				delete(c.parts, p.Message)
			}
		},
		OnNotify: func(a *sctp.Association, n sctp.Notification) {
			if c.busy.Add(1) != 1 {
				panic("two upcalls at a time")
			}
			defer c.busy.Add(-1)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.order = append(c.order, n.Kind.String())
		},
	}
}

func TestUpcallsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector()
		p := newPair(t, 3, sctptest.Link{Delay: time.Millisecond, Loss: 0.02, Reorder: 0.05, MTU: 1500}, nil, c.config())
		var want [][]byte
		for i := range 200 {
			msg := pattern(1 + i*i)
			want = append(want, msg)
			if err := p.a.Send(context.Background(), msg, sctp.SendOptions{Stream: 3}); err != nil {
				t.Fatal(err)
			}
		}
		for i, msg := range want {
			if got := <-c.got; !bytes.Equal(got, msg) {
				t.Fatalf("message %d came out different", i)
			}
		}
		if err := p.a.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		<-c.assocs[0].Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.order[0] != "association" || c.order[1] != "up" || c.order[len(c.order)-1] != "down" {
			t.Errorf("upcalls began %v and ended with %q", c.order[:3], c.order[len(c.order)-1])
		}
		if n := len(slices.DeleteFunc(slices.Clone(c.order), func(s string) bool { return s != "down" })); n != 1 {
			t.Errorf("%d times down", n)
		}
		if !slices.Contains(c.order, "shutdown") {
			t.Errorf("no notification of the shutdown")
		}
	})
}

// An upcall may answer at once; the answer travels before the upcall returns or
// right after it.
func TestUpcallAnswers(t *testing.T) {
	echo := &sctp.Config{OnPiece: func(a *sctp.Association, p *sctp.Piece) {
		if err := a.TrySend(p.Data, sctp.SendOptions{Stream: p.Stream, Unordered: p.Unordered}); err != nil {
			panic(err)
		}
	}}
	p := newLoopbackPair(t, sctp.TransportConfig{}, nil, echo)
	buf := make([]byte, 2000)
	for i := range 100 {
		msg := pattern(10 + i)
		if err := p.a.Send(context.Background(), msg, sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, _ := recvMessage(t, p.a, buf); !bytes.Equal(got, msg) {
			t.Fatalf("echo %d came out different", i)
		}
	}
}

func TestLeasesOutliveTheUpcall(t *testing.T) {
	type held struct {
		lease sctp.Lease
		data  []byte
	}
	ch := make(chan held, 100)
	cfg := &sctp.Config{OnPiece: func(a *sctp.Association, p *sctp.Piece) {
		if l, ok := p.Lease(); ok {
			ch <- held{l, p.Data}
		} else {
			ch <- held{data: bytes.Clone(p.Data)}
		}
	}}
	p := newLoopbackPair(t, sctp.TransportConfig{}, &sctp.Config{MTU: 1500}, cfg)
	for i := range 20 {
		msg := pattern(20000 + i)
		if err := p.a.Send(context.Background(), msg, sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var list []held
	n := 0
	for n < 20*20000+190 {
		h := <-ch
		n += len(h.data)
		list = append(list, h)
	}
	for i := range 20 {
		msg := pattern(20000 + i)
		for len(msg) > 0 {
			h := list[0]
			if !bytes.Equal(h.data, msg[:len(h.data)]) {
				t.Fatalf("leased bytes of message %d changed", i)
			}
			msg = msg[len(h.data):]
			h.lease.Release()
			list = list[1:]
		}
	}
}

// owner counts releases.
type owner struct {
	n   atomic.Int32
	err error
	ch  chan struct{}
}

func newOwner() *owner { return &owner{ch: make(chan struct{})} }

func (o *owner) Released(err error) {
	if o.n.Add(1) == 1 {
		o.err = err
		close(o.ch)
	}
}

func TestOwnersAreReleasedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 3, sctptest.Link{Delay: time.Millisecond, Loss: 0.05}, nil, nil)
		var owners []*owner
		for i := range 50 {
			o := newOwner()
			owners = append(owners, o)
			err := p.a.TrySend(pattern(1+100*i), sctp.SendOptions{Owner: o, Force: true, Header: []byte("head")})
			if err != nil {
				t.Fatal(err)
			}
		}
		buf := make([]byte, 100000)
		for i := range owners {
			got, _ := recvMessage(t, p.b, buf)
			if want := append([]byte("head"), pattern(1+100*i)...); !bytes.Equal(got, want) {
				t.Fatalf("message %d came out different", i)
			}
		}
		for i, o := range owners {
			<-o.ch
			if o.err != nil {
				t.Errorf("owner %d released with %v", i, o.err)
			}
		}
		// What was not acknowledged when the association ends is released, too.
		p.net.Cut(addrA, addrB)
		last := newOwner()
		if err := p.a.TrySend([]byte("x"), sctp.SendOptions{Owner: last}); err != nil {
			t.Fatal(err)
		}
		p.a.Abort("enough")
		<-last.ch
		if last.err == nil {
			t.Error("owner of an unacknowledged message released without error")
		}
		for i, o := range append(owners, last) {
			if n := o.n.Load(); n != 1 {
				t.Errorf("owner %d released %d times", i, n)
			}
		}
		var ab *sctp.AbortError
		if err := p.a.Err(); !errors.As(err, &ab) || ab.ByPeer {
			t.Errorf("Err = %v", err)
		}
		// A send that fails does not release.
		never := newOwner()
		if err := p.a.TrySend([]byte("x"), sctp.SendOptions{Owner: never}); err == nil || never.n.Load() != 0 {
			t.Errorf("send after the end: %v, released %d times", err, never.n.Load())
		}
	})
}

func TestExpiredMessagesAreAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan sctp.Notification, 2)
		ca := &sctp.Config{OnNotify: func(_ *sctp.Association, n sctp.Notification) {
			if n.Kind == sctp.NotifySendFailed {
				failed <- n
			}
		}}
		p := newPair(t, 3, sctptest.Link{Delay: time.Millisecond}, ca, nil)
		p.net.Cut(addrA, addrB)
		o := newOwner()
		err := p.a.TrySend([]byte("stale"), sctp.SendOptions{Owner: o, Stream: 2, PPID: 77, PR: sctp.Timed, Lifetime: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		p.net.Restore(addrA, addrB)
		if err := p.a.Send(context.Background(), []byte("fresh"), sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		got, _ := recvMessage(t, p.b, make([]byte, 10))
		if string(got) != "fresh" {
			t.Errorf("got %q, want the fresh message only", got)
		}
		<-o.ch
		if !errors.Is(o.err, sctp.ErrExpired) {
			t.Errorf("released with %v, want ErrExpired", o.err)
		}
		// RFC 6458, Section 6.1.11: the notification has the stream and the PPID.
		if n := <-failed; n.Stream != 2 || n.PPID != 77 || !errors.Is(n.Err, sctp.ErrExpired) || len(failed) > 0 {
			t.Errorf("notified of %+v, and %d more; want stream 2, PPID 77, ErrExpired", n, len(failed))
		}
	})
}

func TestSendBufferBlocksAndForcePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 3, sctptest.Link{Delay: time.Millisecond}, &sctp.Config{SendBuffer: 10000}, &sctp.Config{RecvBuffer: 10000})
		n := 0
		for full := 0; full < 3; {
			switch err := p.a.TrySend(pattern(1000), sctp.SendOptions{}); err {
			case nil:
				n, full = n+1, 0
			case sctp.ErrWouldBlock:
				full++
				time.Sleep(10 * time.Millisecond) // what the peer can take, it takes
			default:
				t.Fatal(err)
			}
			if n > 1000 {
				t.Fatal("the send buffer has no end")
			}
		}
		if err := p.a.TrySend(pattern(1000), sctp.SendOptions{Force: true}); err != nil {
			t.Errorf("forced send: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		if err := p.a.Send(ctx, pattern(1000), sctp.SendOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Send into a full buffer = %v, want DeadlineExceeded", err)
		}
		done := make(chan error)
		go func() { done <- p.a.Send(context.Background(), pattern(1000), sctp.SendOptions{}) }()
		buf := make([]byte, 2000)
		for range n + 2 {
			recvMessage(t, p.b, buf)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestNotificationNames(t *testing.T) {
	seen := map[string]bool{}
	for k := sctp.NotifyUp; k <= sctp.NotifyAborted; k++ {
		s := k.String()
		if s == "unknown" || seen[s] {
			t.Errorf("name of %d is %q", k, s)
		}
		seen[s] = true
	}
	if got := fmt.Sprint(sctp.NotificationKind(200)); got != "unknown" {
		t.Errorf("name of 200 = %q", got)
	}
}

// Callers may hold a lock that upcalls want, in every call that does not wait.
func TestCallsUnderTheLockOfUpcalls(t *testing.T) {
	var mu sync.Mutex
	var pieces atomic.Int64
	var released atomic.Int64
	cfg := func() *sctp.Config {
		return &sctp.Config{
			OnPiece: func(*sctp.Association, *sctp.Piece) {
				mu.Lock()
				defer mu.Unlock()
				pieces.Add(1)
			},
			OnNotify: func(*sctp.Association, sctp.Notification) {
				mu.Lock()
				defer mu.Unlock()
			},
		}
	}
	b := make(chan *sctp.Association, 1)
	cb := cfg()
	cb.OnAssociation = func(a *sctp.Association) { b <- a }
	p := newLoopbackPair(t, sctp.TransportConfig{BusyPoll: 20 * time.Microsecond}, cfg(), cb)
	p.b = <-b
	var wg sync.WaitGroup
	const each = 3000
	for _, a := range []*sctp.Association{p.a, p.b} {
		for range 2 {
			wg.Go(func() {
				msg := pattern(300)
				for i := range each {
					mu.Lock()
					o := sctp.SendOptions{Force: true, Owner: lockOwner{&mu, &released}}
					if i%2 == 0 {
						o.PR, o.Lifetime = sctp.Timed, time.Hour
					}
					if err := a.TrySend(msg, o); err != nil {
						t.Error(err)
					}
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	for released.Load() < 4*each || pieces.Load() < 4*each {
		<-time.After(time.Millisecond)
	}
	mu.Lock()
	p.a.Abort("done")
	p.b.Close()
	mu.Unlock()
	<-p.a.Done()
	<-p.b.Done()
}

type lockOwner struct {
	mu *sync.Mutex
	n  *atomic.Int64
}

func (o lockOwner) Released(error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n.Add(1)
}

// More is set where another piece follows at once, and not on the last for now.
func TestPiecesTellOfMore(t *testing.T) {
	var mu sync.Mutex
	var pieces []bool // whether more follow
	done := make(chan struct{})
	server := &sctp.Config{MTU: 1500, OnPiece: func(_ *sctp.Association, p *sctp.Piece) {
		mu.Lock()
		defer mu.Unlock()
		pieces = append(pieces, p.More)
		if p.End {
			close(done)
		}
	}}
	p := newLoopbackPair(t, sctp.TransportConfig{}, &sctp.Config{MTU: 1500}, server)
	if err := p.a.Send(t.Context(), pattern(500_000), sctp.SendOptions{}); err != nil {
		t.Fatal(err)
	}
	<-done
	mu.Lock()
	defer mu.Unlock()
	if pieces[len(pieces)-1] {
		t.Error("more was to follow after the last piece of all")
	}
	// Many are read at a time where the system can.
	if !slices.Contains(pieces, true) && runtime.GOOS == "linux" {
		t.Errorf("none of %d pieces tells of more", len(pieces))
	}
}
