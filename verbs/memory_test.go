package verbs

import (
	"context"
	"runtime"
	"testing"
)

// heap returns the bytes of the heap that are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools hold goes with the second one
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// wantHeap checks that the heap is at most grown bytes larger than before.
func wantHeap(t *testing.T, before, grown int64, what string) {
	t.Helper()
	if got := heap() - before; got > grown {
		t.Errorf("%s: the heap grew by %d KiB, want at most %d", what, got>>10, grown>>10)
	}
}

// TestClosedObjectsAreFreed closes what a device has, in ways that leave something
// behind by design: an STag that is not to be used again soon, a completion that
// nobody has polled, a window, a region for one queue pair. None of them may keep
// the queues or the memory of what was closed.
func TestClosedObjectsAreFreed(t *testing.T) {
	const n, depth, buffer = 100, 1024, 256 << 10
	d := bare(t)
	pd := d.AllocPD()
	cq, err := d.NewCQ(n)
	if err != nil {
		t.Fatal(err)
	}
	make1 := func() *QP {
		qp, err := pd.NewQP(QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: depth, RecvDepth: depth})
		if err != nil {
			t.Fatal(err)
		}
		return qp
	}
	for name, run := range map[string]func(keep *[]any){
		"queue pairs, reset and closed": func(*[]any) {
			qp := make1()
			if err := qp.Reset(context.Background()); err != nil {
				t.Fatal(err)
			}
			qp.Close()
		},
		"queue pairs whose completions are not polled": func(*[]any) {
			qp := make1()
			if err := qp.PostRecv(RecvWR{}); err != nil {
				t.Fatal(err)
			}
			qp.Close()
		},
		"regions": func(*[]any) {
			mr, _ := pd.Register(make([]byte, buffer), RemoteWrite)
			mr.Close()
		},
		"queue pairs with a region of their own that stays": func(keep *[]any) {
			qp := make1()
			mr, _ := pd.RegisterFor(qp, make([]byte, 1), RemoteWrite)
			qp.Close()
			*keep = append(*keep, mr)
		},
		"windows that stay, on regions that were closed": func(keep *[]any) {
			mr, _ := pd.Register(make([]byte, buffer), MWBind)
			mw, _ := pd.AllocMW()
			qp := make1()
			if !mw.r.Bind(mr.Bytes(), 0, RemoteRead, qp.stream().Scope(), mr.r) {
				t.Fatal("not bound")
			}
			qp.Close()
			mw.Invalidate()
			if err := mr.Close(); err != nil {
				t.Fatal(err)
			}
			*keep = append(*keep, mw)
		},
		"fast registrations that were invalidated": func(keep *[]any) {
			mr, _ := pd.AllocMR(buffer)
			mr.r.Bind(make([]byte, buffer), 0, RemoteRead, nil, nil)
			mr.Invalidate()
			*keep = append(*keep, mr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var keep []any
			run(&keep)
			before := heap()
			for range n {
				run(&keep)
			}
			wantHeap(t, before, 1<<20, name)
			runtime.KeepAlive(keep)
			cq.Poll(make([]WC, n))
		})
	}
	runtime.KeepAlive(d)
}

// TestChannelsForgetQueues: a completion queue whose event was taken is not kept in
// memory by the place it had in the channel.
func TestChannelsForgetQueues(t *testing.T) {
	d := bare(t)
	ch, err := d.NewCompChannel()
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	cq, _ := ch.NewCQ(1 << 16)
	ch.push(cq)
	if got, err := ch.GetEvent(t.Context()); got != cq || err != nil {
		t.Fatalf("event of %p, %v, want %p", got, err, cq)
	}
	cq.Close()
	wantHeap(t, before, 1<<20, "completion queues that were closed")
	runtime.KeepAlive(ch)
}
