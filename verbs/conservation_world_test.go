package verbs

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/relaytest"
	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// world is two hosts whose devices connect queue pairs to each other, use them and end
// them, in every way at once, over a network that loses, reorders, duplicates and
// corrupts packets. It counts what goes in and what comes out.
type world struct {
	t     *testing.T
	seed  uint64
	net   *sctptest.Network
	sites *relaytest.World // not nil: the hosts are at different sites
	ids   atomic.Uint64    // of work requests
	conns atomic.Int64     // connections that were established

	mu    sync.Mutex
	over  map[uint64]*outcome // guarded by mu: of ends whose other end is not over, by salt
	whole int                 // guarded by mu: directions in which everything had to come
}

// worldStreams are the streams of an association: fewer than queue pairs want.
const worldStreams = 8

// request is a work request that was posted.
type request struct {
	e    *end // whose it is; nil for those of the shared receive queue
	what Opcode
	seq  uint32
	slot int
	buf  []byte // what it reads to
	done int    // completions
	must bool   // it has one
}

// side is a device with what its queue pairs share. After a restart of the host there is
// another.
type side struct {
	w        *world
	addr     string
	host     *sctptest.Host
	tr       *sctp.Transport
	process  *relaytest.Node // in place of tr, behind gateways
	dev      *Device
	pd       *PD
	scq, rcq *CQ
	srq      *SRQ
	inbox    *MR             // of srq
	ctx      context.Context // of workers
	stop     context.CancelFunc
	polling  context.Context // of pollers
	quit     context.CancelFunc
	pollers  sync.WaitGroup
	workers  sync.WaitGroup

	mu     sync.Mutex
	posted map[uint64]*request // guarded by mu: what has not completed
	byQP   map[*QP]*end        // guarded by mu
}

const (
	inboxes   = 24
	inboxSize = maxMessage
)

func (w *world) open(host *sctptest.Host, addr string) *side {
	t := w.t
	s := &side{w: w, addr: addr, host: host, posted: map[uint64]*request{}, byQP: map[*QP]*end{}}
	cfg := Config{Port: 5000, Streams: worldStreams, Backlog: 8}
	if w.sites != nil {
		s.attach(&cfg)
	} else {
		c, err := host.ListenPacket(addr + ":9899")
		if err != nil {
			t.Fatal(err)
		}
		if s.tr, err = sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{c}}); err != nil {
			t.Fatal(err)
		}
		cfg.Transport = s.tr
	}
	var err error
	if s.dev, err = Open(cfg); err != nil {
		t.Fatal(err)
	}
	s.pd = s.dev.AllocPD()
	for _, cq := range []**CQ{&s.scq, &s.rcq} {
		if *cq, err = s.dev.NewCQ(8192); err != nil {
			t.Fatal(err)
		}
	}
	if s.srq, err = s.pd.NewSRQ(SRQConfig{Depth: inboxes, MaxSGE: 1}); err != nil {
		t.Fatal(err)
	}
	if s.inbox, err = s.pd.Register(make([]byte, inboxes*inboxSize), LocalWrite); err != nil {
		t.Fatal(err)
	}
	for i := range inboxes {
		s.postShared(i)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.polling, s.quit = context.WithCancel(context.Background())
	l, err := s.dev.Listen()
	if err != nil {
		t.Fatal(err)
	}
	s.pollers.Go(func() { s.poll(s.scq) })
	s.pollers.Go(func() { s.poll(s.rcq) })
	s.workers.Go(func() { s.accept(l) })
	return s
}

// post notes a work request.
func (s *side) post(r *request) uint64 {
	id := s.w.ids.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posted[id] = r
	return id
}

// unpost forgets a work request that was not taken.
func (s *side) unpost(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.posted, id)
}

// postShared posts a receive of the shared queue.
func (s *side) postShared(slot int) {
	id := s.post(&request{slot: slot})
	if err := s.srq.PostRecv(RecvWR{ID: id, SGL: []SGE{s.inbox.Slice(slot*inboxSize, inboxSize)}}); err != nil {
		s.w.t.Errorf("shared receive: %v", err)
	}
}

// poll takes completions, sometimes slowly, until the side is stopped and none is left.
func (s *side) poll(cq *CQ) {
	rng := rand.New(rand.NewPCG(s.w.seed, s.w.ids.Add(1)))
	wc := make([]WC, 16)
	for {
		n, err := cq.Wait(s.polling, wc[:1+rng.IntN(len(wc))])
		if err != nil {
			if n = cq.Poll(wc); n == 0 {
				if !errors.Is(err, context.Canceled) {
					s.w.t.Errorf("seed %#x: %s: waiting for completions: %v", s.w.seed, s.addr, err)
				}
				return
			}
		}
		for i := range n {
			s.completed(&wc[i])
		}
		clear(wc)
		if rng.IntN(8) == 0 {
			time.Sleep(time.Duration(rng.IntN(5000)) * time.Microsecond)
		}
	}
}

// completed takes a completion: it is of something that was posted and has not
// completed before.
func (s *side) completed(wc *WC) {
	s.mu.Lock()
	r := s.posted[wc.ID]
	e := s.byQP[wc.QP]
	if r == nil || r.done > 0 || e == nil || r.e != nil && r.e != e {
		s.mu.Unlock()
		s.w.t.Errorf("seed %#x: %s: completion %d of nothing that was posted, or again: %+v of %+v", s.w.seed, s.addr, wc.ID, wc, r)
		return
	}
	r.done++
	delete(s.posted, wc.ID)
	s.mu.Unlock()
	if !wc.Recv {
		e.sent(wc, r)
		return
	}
	if r.e == nil {
		b := s.inbox.Bytes()[r.slot*inboxSize:][:wc.Len]
		e.received(wc, b)
		s.postShared(r.slot)
		return
	}
	e.received(wc, r.buf)
}

// accept answers requests.
func (s *side) accept(l *Listener) {
	rng := rand.New(rand.NewPCG(s.w.seed, s.w.ids.Add(1)))
	for {
		r, err := l.Accept(s.ctx)
		if err != nil {
			l.Close()
			return
		}
		answer := rng.IntN(8)
		if len(r.PrivateData) != cardLen {
			answer = 7 // see wantStreams
		}
		switch answer {
		case 0:
			r.Reject([]byte("no"))
		case 1:
			late := time.Duration(rng.IntN(40)) * time.Millisecond
			s.workers.Go(func() {
				time.Sleep(late)
				r.Reject(nil)
			})
		default:
			seed := rng.Uint64()
			s.workers.Go(func() { s.newEnd(seed).passive(r) })
		}
	}
}

// work connects to the peer n times, several at a time.
func (s *side) work(peer target, n int) *sync.WaitGroup {
	var wg sync.WaitGroup
	left := atomic.Int64{}
	left.Store(int64(n))
	for range 5 {
		seed := s.w.seed + s.w.ids.Add(1)
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 7))
			for left.Add(-1) >= 0 && s.ctx.Err() == nil {
				s.newEnd(rng.Uint64()).active(peer)
			}
		})
	}
	return &wg
}

// close ends the side and sees that nothing is left of it.
func (s *side) close() {
	t := s.w.t
	s.stop()
	s.workers.Wait()
	s.quit()
	s.pollers.Wait()
	s.mu.Lock()
	for id, r := range s.posted {
		if r.e != nil && r.must {
			t.Errorf("seed %#x: %s: %v, %d of %s, did not complete", s.w.seed, s.addr, r.what, id, r.e)
		}
	}
	s.mu.Unlock()
	if got := s.srq.Query().Posted; got != inboxes {
		t.Errorf("seed %#x: %s: %d shared receives are left, want %d", s.w.seed, s.addr, got, inboxes)
	}
	for what, f := range map[string]func() error{"shared receive queue": s.srq.Close, "send CQ": s.scq.Close, "receive CQ": s.rcq.Close} {
		if err := f(); err != nil {
			t.Errorf("seed %#x: %s: closing the %s: %v", s.w.seed, s.addr, what, err)
		}
	}
	for what, f := range map[string]func() error{"region": s.inbox.Close} {
		if err := f(); err != nil {
			t.Errorf("seed %#x: %s: closing the %s: %v", s.w.seed, s.addr, what, err)
		}
	}
	if err := s.pd.Close(); err != nil {
		t.Errorf("seed %#x: %s: closing the domain: %v", s.w.seed, s.addr, err)
	}
	if n := s.dev.Stats().Regions; n != 0 {
		t.Errorf("seed %#x: %s: %d STags are left", s.w.seed, s.addr, n)
	}
	if err := s.dev.Close(); err != nil && !errors.Is(err, sctp.ErrClosed) {
		t.Errorf("seed %#x: %s: closing the device: %v", s.w.seed, s.addr, err)
	}
	s.leave()
}

// wantStreams sees that every stream of the association can be used: as many queue
// pairs connect at a time.
func (w *world) wantStreams(from, to *side) {
	var ends []*QP
	for i := range worldStreams {
		qp, err := from.pd.NewQP(QPConfig{SendCQ: from.scq, RecvCQ: from.rcq})
		if err != nil {
			w.t.Fatal(err)
		}
		ends = append(ends, qp)
		for try := 0; ; try++ {
			_, err = from.connect(context.Background(), to.target(), qp, ConnParams{PrivateData: []byte("only a stream")})
			if err == nil {
				break
			}
			if try == 3 {
				w.t.Errorf("seed %#x: queue pair %d of %d cannot connect: %v", w.seed, i+1, worldStreams, err)
				break
			}
			if err := qp.Reset(context.Background()); err != nil {
				w.t.Errorf("seed %#x: reset: %v", w.seed, err)
			}
		}
	}
	for _, qp := range ends {
		qp.Close()
		<-qp.Done()
	}
	time.Sleep(time.Minute)
}

// TestConservation does everything at once (see world) and counts: each work request
// completes once, messages come once, in order and as they were sent, in memory there is
// what was written, and afterwards there is as much memory as before, and every STag,
// stream and receive can be used again. WEFT_SOAK has it go on, with 10,000 queue pairs
// on the devices of each round.
func TestConservation(t *testing.T) {
	until := time.Now().Add(testenv.Soak(t, time.Second))
	churn := 60
	if os.Getenv("WEFT_SOAK") != "" {
		churn = 5000
	}
	base := rand.Uint64()
	t.Logf("seed %#x", base)
	before := int64(0)
	total, rounds := int64(0), uint64(0)
	for ; rounds < 2 || time.Now().Before(until) && !t.Failed(); rounds++ {
		synctest.Test(t, func(t *testing.T) { total += liveWorld(t, base+rounds, churn) })
		if rounds == 0 {
			before = heap()
		}
	}
	wantHeap(t, before, 1<<20, "rounds that are over")
	t.Logf("%d rounds, %d connections", rounds, total)
}

// liveWorld is a round of TestConservation. It returns the number of connections.
func liveWorld(t *testing.T, seed uint64, churn int) int64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &world{t: t, seed: seed, net: sctptest.NewNetwork(seed), over: map[uint64]*outcome{}}
	defer w.net.Close()
	link := sctptest.Link{Delay: time.Duration(rng.IntN(4000)) * time.Microsecond, Loss: rng.Float64() * 0.02,
		Duplicate: 0.005, Corrupt: 0.003, Reorder: rng.Float64() * 0.1, ReorderDelay: 3 * time.Millisecond}
	w.net.SetDefault(link)
	ha, hb := w.net.NewHost("10.0.0.1"), w.net.NewHost("10.0.0.2")
	a, b := w.open(ha, "10.0.0.1"), w.open(hb, "10.0.0.2")
	// With a restart of b, and what was under way.
	wa, wb := a.work(b.target(), churn/4), b.work(a.target(), churn/4)
	time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
	w.net.Cut("10.0.0.1", "10.0.0.2")
	time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
	b.stop()
	b.tr.Close()
	wb.Wait()
	b.close()
	w.net.Restore("10.0.0.1", "10.0.0.2")
	b = w.open(hb, "10.0.0.2")
	wa.Wait()
	// Without one, on the same devices: before and after there is as much memory.
	round := func(n int) {
		wa, wb := a.work(b.target(), n/2), b.work(a.target(), n/2)
		wa.Wait()
		wb.Wait()
		time.Sleep(2 * time.Minute)
	}
	round(churn / 2)
	w.net.SetDefault(sctptest.Link{Delay: link.Delay})
	w.wantStreams(a, b)
	before := heap()
	w.net.SetDefault(link)
	round(churn)
	w.net.SetDefault(sctptest.Link{Delay: link.Delay})
	w.wantStreams(b, a)
	wantHeap(t, before, 1<<20, "queue pairs that were closed")
	b.close()
	a.close()
	if w.whole == 0 {
		t.Errorf("seed %#x: no connection ended gracefully", seed)
	}
	return w.conns.Load()
}
