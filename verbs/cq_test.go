package verbs

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/ddp/ddptest"
	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
)

// bare makes a device without a transport.
func bare(t *testing.T) *Device {
	t.Helper()
	return newDevice(Config{})
}

// piped connects queue pairs of one device over an in-memory pipe.
func piped(t *testing.T, d *Device, ca, cb QPConfig) (qa, qb *QP, p *ddptest.Pipe) {
	t.Helper()
	p = ddptest.NewPipe(1, 1426)
	pd := d.AllocPD()
	var err error
	if qa, err = pd.NewQP(ca); err != nil {
		t.Fatal(err)
	}
	if qb, err = pd.NewQP(cb); err != nil {
		t.Fatal(err)
	}
	for i, qp := range []*QP{qa, qb} {
		end := []*ddptest.End{p.A, p.B}[i]
		end.Attach(qp.stream())
		qp.stream().Bind(end)
		qp.stream().Start(16)
	}
	return qa, qb, p
}

func TestCQOverflow(t *testing.T) {
	// RFC 5040, Section 8.1.1, item 10: streams that do not use the queue are
	// not affected.
	d := bare(t)
	small, _ := d.NewCQ(2)
	big, _ := d.NewCQ(100)
	qa, qb, p := piped(t, d, QPConfig{SendCQ: small, RecvCQ: big, SignalAll: true}, QPConfig{SendCQ: big, RecvCQ: big})
	other, _, _ := piped(t, d, QPConfig{SendCQ: big, RecvCQ: big}, QPConfig{SendCQ: big, RecvCQ: big})
	if err := qb.PostRecv(RecvWR{}, RecvWR{}, RecvWR{}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := qa.PostSend(SendWR{Op: OpImm}); err != nil {
			t.Fatal(err)
		}
	}
	<-qa.Done()
	if !errors.Is(qa.Err(), ErrCQOverflow) {
		t.Errorf("queue pair: %v", qa.Err())
	}
	var wc [4]WC
	if n, err := small.Wait(t.Context(), wc[:]); n != 2 || err != nil {
		t.Errorf("Wait: %d, %v", n, err)
	}
	if _, err := small.Wait(t.Context(), wc[:]); !errors.Is(err, ErrCQOverflow) {
		t.Errorf("Wait of the drained queue: %v", err)
	}
	p.Run()
	if other.State() != StateRTS {
		t.Errorf("other queue pair: %v", other.State())
	}
}

// A queue that overflowed serves the queue pairs that go on: the overflow is told once,
// by Wait or by Err, and what is left of the queue pair that caused it takes no room.
func TestCQGoesOnAfterAnOverflow(t *testing.T) {
	for _, tell := range []string{"Wait", "Err"} {
		t.Run(tell, func(t *testing.T) {
			d := bare(t)
			cq, _ := d.NewCQ(4)
			far, _ := d.NewCQ(100)
			guilty, g, gp := piped(t, d, QPConfig{SendCQ: cq, RecvCQ: cq}, QPConfig{SendCQ: far, RecvCQ: far})
			innocent, i, ip := piped(t, d, QPConfig{SendCQ: cq, RecvCQ: cq}, QPConfig{SendCQ: far, RecvCQ: far})
			post := func(qp *QP, n int) {
				t.Helper()
				for id := range n {
					if err := qp.PostRecv(RecvWR{ID: uint64(id)}); err != nil {
						t.Fatal(err)
					}
				}
			}
			flood := func(qp *QP, p *ddptest.Pipe, n int) {
				t.Helper()
				for range n {
					if err := qp.PostSend(SendWR{Op: OpImm}); err != nil {
						t.Fatal(err)
					}
				}
				p.Run()
			}
			ctx := testContext(t)
			var wc [64]WC
			wantWCs := func(qp *QP, ids ...uint64) {
				t.Helper()
				n, err := cq.Wait(ctx, wc[:])
				if err != nil || n != len(ids) {
					t.Fatalf("Wait: %d, %v, want %d completions", n, err, len(ids))
				}
				for i, id := range ids {
					if wc[i].QP != qp || wc[i].ID != id || wc[i].Status != StatusSuccess {
						t.Errorf("completion %d: QP %d ID %d %v, want QP %d ID %d", i, wc[i].QP.Num(), wc[i].ID, wc[i].Status, qp.Num(), id)
					}
				}
			}
			post(guilty, 16)
			post(innocent, 16)
			for round := range 2 { // a queue overflows as often as it is given reason to
				if round == 1 {
					if err := guilty.Reset(ctx); err != nil {
						t.Fatal(err)
					}
					// Beside what the innocent one has the guilty one finds no room again.
					guilty, g, gp = piped(t, d, QPConfig{SendCQ: cq, RecvCQ: cq}, QPConfig{SendCQ: far, RecvCQ: far})
					post(guilty, 16)
				}
				cq.Notify(true)
				flood(g, gp, 5)
				<-guilty.Done()
				if err := guilty.Err(); !errors.Is(err, ErrCQOverflow) {
					t.Errorf("the guilty queue pair: %v", err)
				}
				select {
				case <-cq.C():
				default:
					t.Error("an armed queue lost completions without an event")
				}
				wantWCs(guilty, 0, 1, 2, 3) // and none of the 11 that were flushed
				if tell == "Err" {
					if err := cq.Err(); !errors.Is(err, ErrCQOverflow) {
						t.Errorf("Err: %v", err)
					}
				} else if n, err := cq.Wait(ctx, wc[:]); !errors.Is(err, ErrCQOverflow) {
					t.Errorf("Wait: %d, %v", n, err)
				}
				if err := cq.Err(); err != nil {
					t.Errorf("told twice: %v", err)
				}
				flood(i, ip, 3)
				first := uint64(3 * round)
				wantWCs(innocent, first, first+1, first+2)
				if st := innocent.State(); st != StateRTS {
					t.Fatalf("the innocent queue pair is in state %v: %v", st, innocent.Err())
				}
				e, ok := d.PollEvent()
				if !ok || e.Type != EventCQError || e.CQ != cq || !errors.Is(e.Err, ErrCQOverflow) {
					t.Errorf("event %v", e)
				}
				if e, ok := d.PollEvent(); !ok || e.Type != EventQPFatal || e.QP != guilty {
					t.Errorf("event %v", e)
				}
				if e, ok := d.PollEvent(); ok {
					t.Errorf("one event too many: %v", e)
				}
			}
			// Room that Resize makes is room.
			flood(i, ip, 4)
			if err := cq.Resize(8); err != nil {
				t.Fatal(err)
			}
			flood(i, ip, 4)
			wantWCs(innocent, 6, 7, 8, 9, 10, 11, 12, 13)
		})
	}
}

func TestNotify(t *testing.T) {
	d := bare(t)
	cq, _ := d.NewCQ(100)
	qa, qb, p := piped(t, d, QPConfig{SendCQ: cq, RecvCQ: cq}, QPConfig{SendCQ: cq, RecvCQ: cq})
	fired := func() bool {
		select {
		case <-cq.C():
			return true
		default:
			return false
		}
	}
	qb.PostRecv(make([]RecvWR, 5)...)
	send := func(f Flags) {
		t.Helper()
		if err := qa.PostSend(SendWR{Op: OpSend, Flags: f}); err != nil {
			t.Fatal(err)
		}
		p.Run()
	}
	send(0)
	if fired() {
		t.Error("event without Notify")
	}
	cq.Notify(true)
	send(0)
	if fired() {
		t.Error("event for an unsolicited completion")
	}
	send(Solicited)
	if !fired() {
		t.Error("no event for a solicited completion")
	}
	send(Solicited)
	if fired() {
		t.Error("event after the armed one")
	}
	cq.Notify(false)
	send(0)
	if !fired() {
		t.Error("no event for a completion")
	}
}

func TestWait(t *testing.T) {
	d := bare(t)
	cq, _ := d.NewCQ(1000)
	qa, qb, p := piped(t, d, QPConfig{SendCQ: cq, RecvCQ: cq}, QPConfig{SendCQ: cq, RecvCQ: cq, RecvDepth: 1000})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cq.Wait(ctx, make([]WC, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait with a dead context: %v", err)
	}
	if n, err := cq.Wait(ctx, nil); n != 0 || err != nil {
		t.Errorf("Wait for nothing: %d, %v", n, err)
	}
	// Several waiters get everything between them.
	const total, waiters = 900, 3
	qb.PostRecv(make([]RecvWR, total)...)
	var mu sync.Mutex
	got := 0
	var wg sync.WaitGroup
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	for range waiters {
		wg.Go(func() {
			var wc [3]WC
			for {
				n, err := cq.Wait(ctx, wc[:])
				if err != nil {
					return
				}
				mu.Lock()
				if got += n; got == total {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	for range total / 9 {
		for range 9 {
			if err := qa.PostSend(SendWR{Op: OpImm}); err != nil {
				t.Error(err)
			}
		}
		p.Run()
	}
	wg.Wait()
	if got != total {
		t.Errorf("%d completions, want %d", got, total)
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	a, b := newNode(t, Config{}), newNode(t, Config{})
	qa, qb := connect(t, a, b, QPConfig{}, QPConfig{})
	src, dst := a.mr(8192, LocalWrite), b.mr(8192, RemoteWrite|RemoteRead|LocalWrite)
	ctx := testContext(t)
	var wc [4]WC
	sgl := []SGE{src.Slice(0, 8192)}
	rsgl := []SGE{dst.Slice(0, 64)}
	run := func() {
		if err := qb.PostRecv(RecvWR{SGL: rsgl}); err != nil {
			t.Fatal(err)
		}
		if err := qa.PostSend(
			SendWR{Op: OpWrite, SGL: sgl, Remote: dst.Remote()},
			SendWR{Op: OpRead, Flags: Signaled, SGL: sgl, Remote: dst.Remote()},
			SendWR{Op: OpSend, Flags: Signaled, SGL: sgl[:0]}); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < 2; {
			k, err := a.cq.Wait(ctx, wc[:])
			if err != nil {
				t.Fatal(err)
			}
			n += k
		}
		if _, err := b.rcq.Wait(ctx, wc[:]); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		run()
	}
	// The layers below and the runtime may allocate now and then; what is done
	// for each of the eight segments of a run may not.
	if n := testing.AllocsPerRun(300, run); n >= 4 && !testenv.Race {
		t.Errorf("%v allocations for a write, a read and a send", n)
	}
}

// A wait whose context is done ends, however long it may poll.
func TestWaitEndsWhilePolling(t *testing.T) {
	tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, BusyPoll: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	d, err := Open(Config{Transport: tr})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	cq, err := d.NewCQ(4)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := cq.Wait(ctx, make([]WC, 1))
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Wait polls on")
	}
}
