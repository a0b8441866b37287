package verbs

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp/sctptest"
)

// ledger counts the work requests of one side: each ID is posted once and completes once.
type ledger struct {
	mu   sync.Mutex
	next uint64
	open map[uint64]Opcode // posted and not completed; 0 is a receive
	ends map[Status]int
}

// post runs f with a fresh ID, which counts as posted unless f returns an error.
func (l *ledger) post(op Opcode, f func(id uint64) error) error {
	l.mu.Lock()
	l.next++
	id := l.next
	l.open[id] = op
	l.mu.Unlock()
	err := f(id)
	if err != nil {
		l.mu.Lock()
		delete(l.open, id)
		l.mu.Unlock()
	}
	return err
}

// completed takes a completion.
func (l *ledger) completed(t *testing.T, wc *WC) {
	l.mu.Lock()
	defer l.mu.Unlock()
	op, ok := l.open[wc.ID]
	if !ok || wc.Recv != (op == 0) || !wc.Recv && op != wc.Op {
		t.Errorf("completion of what was not posted, or twice: ID %d, %v, receive %v, %v", wc.ID, wc.Op, wc.Recv, wc.Status)
	}
	delete(l.open, wc.ID)
	l.ends[wc.Status]++
}

// Everything at once: queue pairs come and go on a network that loses, duplicates and
// reorders, both sides send, write, read and update, some of it wrongly, contexts end at
// random, connections are closed by either side in the midst of it, and one process ends
// and begins again. Each work request that was posted completes exactly once, and at the
// end nothing is in use.
func TestEachWorkRequestCompletesOnce(t *testing.T) {
	begun, long := time.Now(), testenv.Soak(t, time.Second)
	base := rand.Uint64()
	total := map[Status]int{}
	for round := uint64(0); round == 0 || time.Since(begun) < long; round++ {
		seed := base + round
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %#x", seed)
				}
			}()
			for st, n := range conserve(t, seed) {
				total[st] += n
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("completions: %v", total)
	if total[StatusSuccess] == 0 || total[StatusFlush] == 0 {
		t.Errorf("completions %v: some kind of end is missing", total)
	}
}

func conserve(t *testing.T, seed uint64) map[Status]int {
	net := sctptest.NewNetwork(seed)
	defer net.Close()
	net.SetDefault(sctptest.Link{Delay: time.Millisecond, Loss: 0.02, Duplicate: 0.01, Reorder: 0.1, ReorderDelay: 3 * time.Millisecond})
	a, b := newRestartable(t, net, "10.0.0.1"), newRestartable(t, net, "10.0.0.2")
	ledgers := map[*node]*ledger{}
	var reapers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reap := func(n *node) {
		l := &ledger{open: map[uint64]Opcode{}, ends: map[Status]int{}}
		ledgers[n] = l
		for _, cq := range []*CQ{n.cq, n.rcq} {
			reapers.Go(func() {
				var wc [16]WC
				for {
					k, err := cq.Wait(ctx, wc[:])
					if err != nil {
						if !errors.Is(err, context.Canceled) {
							t.Errorf("Wait: %v", err)
						}
						return
					}
					for i := range k {
						l.completed(t, &wc[i])
					}
				}
			})
		}
	}
	reap(a.node)
	reap(b.node)
	lives := func(b *node, n int, rng *rand.Rand) {
		l, err := b.dev.Listen()
		if err != nil {
			t.Error(err)
			return
		}
		// Apart, so that nothing is read while it changes.
		source, sink, read, written := map[*node]*MR{}, map[*node]*MR{}, map[*node]*MR{}, map[*node]*MR{}
		for _, n := range []*node{a.node, b} {
			source[n], sink[n] = n.mr(1<<16, 0), n.mr(1<<16, LocalWrite)
			read[n], written[n] = n.mr(1<<16, RemoteRead|ReadSnapshot), n.mr(1<<16, RemoteWrite|RemoteAtomic)
		}
		// work posts at random until the queue pair ends.
		work := func(n, peer *node, qp *QP, rng *rand.Rand) {
			led := ledgers[n]
			for range 8 {
				led.post(0, func(id uint64) error {
					return qp.PostRecv(RecvWR{ID: id, SGL: []SGE{sink[n].Slice(0, 4096)}})
				})
			}
			ops := []Opcode{OpSend, OpWrite, OpWrite, OpWriteImm, OpRead, OpRead, OpFetchAdd, OpCompareSwap, OpImm}
			for range rng.IntN(40) {
				op, size, local, remote := ops[rng.IntN(len(ops))], 1+rng.IntN(20000), source[n], written[peer].Remote()
				switch op {
				case OpRead:
					local, remote = sink[n], read[peer].Remote()
				case OpFetchAdd, OpCompareSwap:
					size, local = 8, sink[n]
				case OpImm:
					size = 0
				case OpSend:
					size = min(size, 4096)
				}
				if rng.IntN(60) == 0 {
					remote.STag++ // which the peer does not know
				}
				wr := SendWR{Op: op, Flags: Signaled, Remote: remote}
				if op != OpImm {
					wr.SGL = []SGE{local.Slice(0, size)}
				}
				err := led.post(op, func(id uint64) error {
					wr.ID = id
					return qp.PostSend(wr)
				})
				if errors.Is(err, ErrQPState) {
					break
				}
				led.post(0, func(id uint64) error {
					return qp.PostRecv(RecvWR{ID: id, SGL: []SGE{sink[n].Slice(0, 4096)}})
				})
				time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
			}
			if rng.IntN(2) == 0 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(200))*time.Millisecond)
				qp.Disconnect(ctx)
				cancel()
			}
			qp.Close()
			<-qp.Done()
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				r, err := l.Accept(ctx)
				if err != nil {
					return
				}
				qp, rng := b.qp(QPConfig{SendDepth: 8, RecvDepth: 64}), rand.New(rand.NewPCG(seed, uint64(len(ledgers))))
				if err := r.Accept(qp, ConnParams{}); err != nil {
					qp.Close()
					continue
				}
				wg.Go(func() { work(b, a.node, qp, rng) })
			}
		})
		var dials sync.WaitGroup
		for range n {
			rng := rand.New(rand.NewPCG(seed, rng.Uint64()))
			dials.Go(func() {
				time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
				qp := a.qp(QPConfig{SendDepth: 8, RecvDepth: 64})
				p := ConnParams{Timeout: time.Duration(5+rng.IntN(2000)) * time.Millisecond}
				if _, err := a.dev.Connect(t.Context(), b.dev.Addr(), qp, p); err == nil {
					work(a.node, b, qp, rng)
				}
				qp.Close()
				<-qp.Done()
			})
		}
		dials.Wait()
		l.Close()
		wg.Wait()
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	lives(b.node, 12, rng)
	old := b.node
	b.kill(a)
	b.start()
	reap(b.node)
	lives(b.node, 12, rng)
	time.Sleep(time.Minute) // what is on its way arrives, or is given up
	ends := map[Status]int{}
	for n, l := range ledgers {
		l.mu.Lock()
		if len(l.open) > 0 {
			t.Errorf("%d work requests have not completed: %v", len(l.open), l.open)
		}
		for st, k := range l.ends {
			ends[st] += k
		}
		l.mu.Unlock()
		if n.cq.Len() > 0 || n.rcq.Len() > 0 {
			t.Error("completions are left")
		}
	}
	cancel()
	reapers.Wait()
	for _, n := range []*node{a.node, old, b.node} {
		for _, cq := range []*CQ{n.cq, n.rcq} {
			if err := cq.Close(); err != nil {
				t.Error(err)
			}
		}
		n.tr.Close()
	}
	return ends
}
