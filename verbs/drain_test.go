package verbs

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/sctptest"
)

// TestDrain has a peer read without a pause until the memory is drained and
// changed: no read gets what it was changed to, and the race detector sees no
// access of the transport.
func TestDrain(t *testing.T) {
	for name, join := range map[string]func(t *testing.T) (a, b *node, qa, qb *QP){
		"SCTP": func(t *testing.T) (a, b *node, qa, qb *QP) {
			a, b = newNode(t, Config{}), newNode(t, Config{})
			qa, qb = connect(t, a, b, QPConfig{}, QPConfig{})
			return
		},
		"TCP": func(t *testing.T) (a, b *node, qa, qb *QP) {
			a, b = newTCPNode(t, Config{}), newTCPNode(t, Config{})
			qa, qb = connectTCP(t, a, b, QPConfig{}, QPConfig{})
			return
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i, n := range []int{100, 70_000} { // copied and referenced responses
				for range 10 {
					a, b, qa, _ := join(t)
					drain(t, a, b, qa, n, i == 0)
				}
			}
		})
	}
}

// drain reads n bytes of b again and again, and takes the memory away after some
// reads, by a window or by the region.
func drain(t *testing.T, a, b *node, qa *QP, n int, close bool) {
	t.Helper()
	ctx := testContext(t)
	src := b.mr(n, RemoteRead)
	fillPattern(src.Bytes(), 1)
	src.Sync()
	was := bytes.Clone(src.Bytes())
	const under = 4
	dst := a.mr(under*n, LocalWrite)
	post := func(i uint64) error {
		return qa.PostSend(SendWR{ID: i, Op: OpRead, Flags: Signaled, SGL: []SGE{dst.Slice(int(i)*n, n)}, Remote: src.Remote()})
	}
	for i := range uint64(under) {
		if err := post(i); err != nil {
			t.Fatal(err)
		}
	}
	var taken sync.WaitGroup
	defer taken.Wait()
	for reads := 0; ; reads++ {
		var wc [1]WC
		if _, err := a.cq.Wait(ctx, wc[:]); err != nil {
			t.Fatal(err)
		}
		if wc[0].Status != StatusSuccess {
			break
		}
		if got := dst.Bytes()[int(wc[0].ID)*n:][:n]; !bytes.Equal(got, was) {
			t.Fatalf("read %d differs", reads)
		}
		if reads == 10 {
			taken.Go(func() {
				if close {
					if err := src.Close(); err != nil {
						t.Error(err)
					}
				}
				if err := src.Drain(ctx); err != nil {
					t.Error(err)
				}
				clear(src.Bytes())
			})
		}
		if err := post(wc[0].ID); err != nil && !errors.Is(err, ErrQPState) {
			t.Fatal(err)
		}
	}
}

// drainLink returns two connected nodes over a link that goes with the test.
func drainLink(t *testing.T, seed uint64, link sctptest.Link) (a, b *node, qa, qb *QP, net *sctptest.Network) {
	t.Helper()
	a, b, net = newLink(t, seed, link)
	t.Cleanup(func() {
		b.tr.Close()
		a.tr.Close()
		net.Close()
	})
	qa, qb = connect(t, a, b, QPConfig{}, QPConfig{})
	return a, b, qa, qb, net
}

// TestDrainLossyLink drains while responses are being sent again: it lasts until
// they have been acknowledged.
func TestDrainLossyLink(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	for i := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			a, b, qa, _, _ := drainLink(t, seed+i, sctptest.Link{Delay: 2 * time.Millisecond, Loss: 0.1, Duplicate: 0.02,
				Reorder: 0.2, ReorderDelay: 5 * time.Millisecond})
			drain(t, a, b, qa, 20_000, i%2 == 0)
		})
	}
}

// TestDrainWaitsForTheAcknowledgement cuts the link while a response is under way:
// the memory is held until the peer is given up.
func TestDrainWaitsForTheAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, qa, qb, net := drainLink(t, 1, sctptest.Link{Delay: 10 * time.Millisecond})
		src, dst := b.mr(50_000, RemoteRead), a.mr(50_000, LocalWrite)
		if err := qa.PostSend(SendWR{ID: 1, Op: OpRead, Flags: Signaled, SGL: []SGE{dst.Slice(0, 50_000)}, Remote: src.Remote()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Millisecond) // the request is there, the response on its way
		net.SetDefault(sctptest.Link{Loss: 1})
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := src.Drain(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("drained before the response was acknowledged: %v", err)
		}
		if !src.Invalidated() {
			t.Error("not invalidated")
		}
		begin := time.Now()
		if err := src.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		clear(src.Bytes())
		<-qb.Done()
		t.Logf("held for %v more", time.Since(begin))
	})
}

// TestDrainOfWindows: what is read through a window is memory of its region.
func TestDrainOfWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, qa, qb, _ := drainLink(t, 2, sctptest.Link{Delay: 10 * time.Millisecond})
		mr, dst := b.mr(50_000, MWBind), a.mr(50_000, LocalWrite)
		mw, err := b.pd.AllocMW()
		if err != nil {
			t.Fatal(err)
		}
		if err := qb.PostSend(SendWR{ID: 1, Op: OpBindMW, Flags: Signaled, Bind: &Bind{MW: mw, MR: mr, Len: mr.Len(), Access: RemoteRead}}); err != nil {
			t.Fatal(err)
		}
		want(t, b.cq, 1, StatusSuccess)
		if err := qa.PostSend(SendWR{ID: 2, Op: OpRead, Flags: Signaled, SGL: []SGE{dst.Slice(0, 50_000)}, Remote: RemoteBuf{STag: mw.STag()}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Millisecond) // the response is on its way
		mw.Invalidate()
		drained := make(chan struct{})
		mr.AfterDrain(func() { close(drained) })
		synctest.Wait()
		select {
		case <-drained:
			t.Error("drained while a window is read")
		default:
		}
		<-drained
		clear(mr.Bytes())
	})
}

// TestCloseStopsReads: when any Close of the queue pair has returned no read places
// anything, though another one that came first has not got far.
func TestCloseStopsReads(t *testing.T) {
	for _, second := range []bool{false, true} {
		for range 5 {
			a, b := newNode(t, Config{}), newNode(t, Config{})
			qa, _ := connect(t, a, b, QPConfig{}, QPConfig{})
			const n = 4 << 20
			src, dst := b.mr(n, RemoteRead), a.mr(n, LocalWrite)
			if err := qa.PostSend(SendWR{ID: 1, Op: OpRead, Flags: Signaled, SGL: []SGE{dst.Slice(0, n)}, Remote: src.Remote()}); err != nil {
				t.Fatal(err)
			}
			if second {
				qa.mu.Lock()
				qa.closed = true // by the first
				qa.mu.Unlock()
			}
			if err := qa.Close(); errors.Is(err, ErrClosed) != second {
				t.Errorf("Close: %v", err)
			}
			for i := range dst.Bytes() { // as the race detector sees
				dst.Bytes()[i] = 1
			}
			wantDone(t, qa, ErrDisconnected)
			for i, v := range dst.Bytes() {
				if v != 1 {
					t.Fatalf("byte %d was placed after Close", i)
				}
			}
		}
	}
}
