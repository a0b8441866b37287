package ddp

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// source makes a source of one byte.
func source(t *testing.T, tab *Table, sc *Scope, r *Region) Source {
	t.Helper()
	s, d := tab.Source(sc, r.STag(), r.Base(), 1)
	if d != Granted {
		t.Fatalf("source denied: %v", d)
	}
	return s
}

func TestAfterSources(t *testing.T) {
	tab, dom := NewTable(), &Domain{}
	sc := &Scope{Domain: dom}
	r, _ := tab.Add(make([]byte, 8), 100, RemoteRead|BindWindow, dom, nil)
	w, _ := tab.Reserve(dom)
	if !w.Bind(r.Bytes()[4:], 0, RemoteRead, sc, r) {
		t.Fatal("not bound")
	}
	var calls []string
	note := func(s string) func() { return func() { calls = append(calls, s) } }
	check := func(want ...string) {
		t.Helper()
		if len(calls) != len(want) {
			t.Fatalf("calls %v, want %v", calls, want)
		}
		for i := range want {
			if calls[i] != want[i] {
				t.Fatalf("calls %v, want %v", calls, want)
			}
		}
	}
	s1, s2, s3 := source(t, tab, sc, r), source(t, tab, sc, r), source(t, tab, sc, w)
	if &s1.Mem[0] != &r.Bytes()[0] || len(s1.Mem) != 1 || cap(s1.Mem) != 1 || &s3.Mem[0] != &r.Bytes()[4] {
		t.Error("the memory of a source is not that of its region")
	}
	s1.Done()
	if s2.Revoked() || s3.Revoked() {
		t.Error("revoked")
	}
	w.AfterSources(note("window"))
	r.AfterSources(note("region"))
	r.AfterSources(note("region again"))
	if !s2.Revoked() || !s3.Revoked() {
		t.Error("not revoked")
	}
	if _, d := tab.Source(sc, r.STag(), 100, 1); d != DeniedSTag {
		t.Errorf("source of a revoked region: %v", d)
	}
	check()
	s2.Done()
	check()
	s3.Done()
	check("window", "region", "region again")
	r.AfterSources(note("at once"))
	check("window", "region", "region again", "at once")

	// Who waits for a region that is bound again waits for what is read of it now.
	if !w.Bind(r.Bytes(), 0, RemoteRead, sc, nil) {
		t.Fatal("not bound again")
	}
	s1 = source(t, tab, sc, w)
	w.AfterSources(note("second"))
	if !w.Bind(r.Bytes(), 0, RemoteRead, sc, nil) {
		t.Fatal("not bound while a source is left")
	}
	s2 = source(t, tab, sc, w)
	calls = nil
	s1.Done()
	check()
	tab.Remove(w)
	w.AfterSources(note("removed"))
	s2.Done()
	check("second", "removed")
}

// TestAfterSourcesRaces takes and gives back sources while the region is revoked:
// each waiter is called exactly once, and only then may the memory change.
func TestAfterSourcesRaces(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	tab, dom := NewTable(), &Domain{}
	sc := &Scope{Domain: dom}
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	for round := range rounds {
		mem := make([]byte, 8)
		r, err := tab.Add(mem, 0, RemoteRead, dom, nil)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var sum atomic.Uint32
		for i := range 3 {
			rng := rand.New(rand.NewPCG(seed+uint64(round), uint64(i)))
			wg.Go(func() {
				for {
					s, d := tab.Source(sc, r.STag(), 0, 8)
					if d != Granted {
						return
					}
					for range rng.IntN(3) {
						runtime.Gosched()
					}
					sum.Add(uint32(s.Mem[0])) // read, as the race detector sees it
					s.Done()
				}
			})
		}
		const waiters = 2
		var calls atomic.Int32
		done := make(chan struct{}, 2*waiters)
		for range waiters {
			wg.Go(func() {
				r.AfterSources(func() { calls.Add(1); done <- struct{}{} })
			})
		}
		<-done
		for i := range mem {
			mem[i] = 1
		}
		<-done
		wg.Wait()
		if n := calls.Load(); n != waiters || sum.Load() != 0 {
			t.Fatalf("round %d: %d calls for %d waiters, sum of what was read %d", round, n, waiters, sum.Load())
		}
		tab.Remove(r)
	}
}
