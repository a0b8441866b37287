package mpi

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
)

// chaosLink is a link whose streams run at different, random speeds: the test
// decides when the next message of which stream arrives, and in which pieces.
type chaosLink struct {
	to      *peer // the sender as the receiver knows it
	rng     *rand.Rand
	streams [][]chaosFrame
	waiting int
}

type chaosFrame struct {
	data []byte
	own  owner
}

func (l *chaosLink) send(stream uint16, hdr, body []byte, own owner) error {
	if own == nil && len(body) > 0 && l.rng.IntN(4) == 0 {
		return errLinkFull
	}
	for int(stream) >= len(l.streams) {
		l.streams = append(l.streams, nil)
	}
	data := append(append([]byte(nil), hdr...), body...)
	l.streams[stream] = append(l.streams[stream], chaosFrame{data, own})
	l.waiting++
	return nil
}

func (l *chaosLink) flush()                         {}
func (l *chaosLink) copyLimit(bool) int             { return 1000 }
func (l *chaosLink) shutdown(context.Context) error { return nil }
func (l *chaosLink) abort(string)                   {}

// step delivers the first message of a random stream.
func (l *chaosLink) step(t *testing.T) {
	t.Helper()
	var busy []int
	for s := range l.streams {
		if len(l.streams[s]) > 0 {
			busy = append(busy, s)
		}
	}
	l.deliver(t, busy[l.rng.IntN(len(busy))])
}

// deliver delivers the first message of stream s.
func (l *chaosLink) deliver(t *testing.T, s int) {
	t.Helper()
	fr := l.streams[s][0]
	l.streams[s] = l.streams[s][1:]
	l.waiting--
	f := &l.to.flows[s]
	for rest := fr.data; len(rest) > 0; {
		n := len(rest)
		if l.rng.IntN(2) == 0 {
			n = 1 + l.rng.IntN(n)
		}
		k, err := f.feed(rest[:n])
		if err != nil {
			t.Fatalf("stream %d: %v", s, err)
		}
		rest = rest[k:]
	}
	if f.busy {
		t.Fatalf("stream %d: message of %d bytes (%+v) has no end", s, len(fr.data), f.env)
	}
	if fr.own != nil {
		fr.own.Released(nil)
	}
}

// chaos is a job whose links are chaosLinks, driven by one goroutine.
type chaos struct {
	t      *testing.T
	rng    *rand.Rand
	worlds []*World
	links  []*chaosLink
}

func newChaos(t *testing.T, n int, rng *rand.Rand, opts ...Option) *chaos {
	t.Helper()
	o, err := buildOptions(TransportInproc, false, opts)
	if err != nil {
		t.Fatal(err)
	}
	k := &chaos{t: t, rng: rng}
	job := newLocalJob(n)
	for r := range n {
		k.worlds = append(k.worlds, newWorld(r, n, o, &localBoot{job: job}))
	}
	for _, a := range k.worlds {
		for _, b := range k.worlds {
			if a != b {
				l := &chaosLink{to: b.eng.peers[a.Rank()], rng: rng}
				k.links = append(k.links, l)
				a.eng.peers[b.Rank()].link = l
				a.eng.peers[b.Rank()].credit.Store(b.eng.window)
			}
		}
	}
	return k
}

// link returns the link from rank a to rank b.
func (k *chaos) link(a, b int) *chaosLink {
	for _, l := range k.links {
		if l.to == k.worlds[b].eng.peers[a] {
			return l
		}
	}
	k.t.Fatalf("no link from %d to %d", a, b)
	return nil
}

// step delivers one message and reports whether there was one.
func (k *chaos) step() bool {
	k.t.Helper()
	var busy []*chaosLink
	for _, l := range k.links {
		if l.waiting > 0 {
			busy = append(busy, l)
		}
	}
	if len(busy) == 0 {
		return false
	}
	busy[k.rng.IntN(len(busy))].step(k.t)
	return true
}

// chaosMsg and chaosRecv are what the model knows of one message and receive.
type chaosMsg struct {
	src, tag, serial int // serial counts the messages of src
	to               *chaosRecv
	req              *Request
}

type chaosRecv struct {
	src, tag  int
	order     int
	buf       []byte
	req       *Request
	got       *chaosMsg
	cancelled bool
}

func (r *chaosRecv) accepts(m *chaosMsg) bool {
	return (r.src == AnySource || r.src == m.src) && (r.tag == AnyTag || r.tag == m.tag)
}

// TestMatchingOrder runs random schedules over links that reorder, and checks
// the outcome against the rules of MPI-5.0, Section 3.5.
func TestMatchingOrder(t *testing.T) {
	base := rand.Uint64()
	runs := 400
	if testing.Short() {
		runs = 100
	}
	for i := range runs {
		seed := base + uint64(i)
		if !runChaos(t, seed, 2+i%3, i%2 == 0) {
			t.Fatalf("seed %d, %d ranks, cancel %v", seed, 2+i%3, i%2 == 0)
		}
	}
}

// runChaos has rank 0 receive what the others send.
func runChaos(t *testing.T, seed uint64, n int, cancel bool) bool {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	k := newChaos(t, n, rng, WithEager(3000), WithUnexpected(n*9000), WithStreams(1+rng.IntN(5)))
	c := k.worlds[0].Comm()
	tags := 1 + rng.IntN(4)
	var recvs []*chaosRecv
	msgs := make([][]*chaosMsg, n)
	var sends []*Request

	settle := func(r *chaosRecv) bool { // reads what r got
		st, done, err := r.req.Test()
		if !done || r.got != nil || r.cancelled {
			return true
		}
		if errors.Is(err, ErrCanceled) {
			r.cancelled = true
			return true
		}
		if err != nil {
			t.Errorf("receive %d: %v", r.order, err)
			return false
		}
		serial := int(r.buf[0]) | int(r.buf[1])<<8
		m := msgs[st.Source][serial]
		if m.to != nil || m.tag != st.Tag || !r.accepts(m) {
			t.Errorf("receive %+v got message %+v, status %+v", r, m, st)
			return false
		}
		if err := checkPattern(r.buf[2:st.Bytes], m.src*10000+serial); err != nil {
			t.Errorf("receive %d: %v", r.order, err)
			return false
		}
		r.got, m.to = m, r
		return true
	}
	post := func(src, tag int) bool {
		r := &chaosRecv{src: src, tag: tag, order: len(recvs), buf: make([]byte, 8000)}
		var err error
		if r.req, err = Irecv(c, r.buf, src, tag); err != nil {
			t.Error(err)
			return false
		}
		recvs = append(recvs, r)
		return settle(r)
	}
	pick := func() (src, tag int) {
		src, tag = 1+rng.IntN(n-1), rng.IntN(tags)
		if rng.IntN(3) == 0 {
			src = AnySource
		}
		if rng.IntN(3) == 0 {
			tag = AnyTag
		}
		return src, tag
	}
	send := func() bool {
		src := 1 + rng.IntN(n-1)
		m := &chaosMsg{src: src, tag: rng.IntN(tags), serial: len(msgs[src])}
		msgs[src] = append(msgs[src], m)
		b := make([]byte, 2+rng.IntN([]int{10, 2000, 6000}[rng.IntN(3)]))
		b[0], b[1] = byte(m.serial), byte(m.serial>>8)
		pattern(b[2:], src*10000+m.serial)
		start := Isend[byte]
		if rng.IntN(4) == 0 {
			start = Issend[byte]
		}
		r, err := start(k.worlds[src].Comm(), b, 0, m.tag)
		if err != nil {
			t.Error(err)
			return false
		}
		m.req = r
		sends = append(sends, r)
		return true
	}

	for range 300 {
		ok := true
		switch x := rng.IntN(20); {
		case x < 6:
			ok = send()
		case x < 11:
			ok = post(pick())
		case x < 18:
			k.step()
		case x == 18:
			ok = chaosProbe(t, c, pick, post, &recvs)
		case cancel && len(recvs) > 0:
			recvs[rng.IntN(len(recvs))].req.Cancel()
		}
		for _, r := range recvs {
			ok = ok && settle(r)
		}
		if !ok {
			return false
		}
	}
	// Receive everything that is left.
	for rest := true; rest; {
		for k.step() {
		}
		rest = false
		for _, r := range recvs {
			if !settle(r) {
				return false
			}
		}
		total := 0
		for src := range msgs {
			for _, m := range msgs[src] {
				if m.to == nil {
					total++
				}
			}
		}
		if total > 0 {
			rest = true
			if !post(AnySource, AnyTag) {
				return false
			}
		}
		if len(recvs) > 2000 {
			t.Errorf("%d messages are never received", total)
			return false
		}
	}
	for i, r := range sends {
		if !r.done.Load() || r.err != nil {
			t.Errorf("send %d: done %v, %v", i, r.done.Load(), r.err)
			return false
		}
	}
	return checkOrder(t, n, recvs, msgs) && checkEmpty(t, k)
}

// chaosProbe checks that a receive gets the message that a probe announced.
func chaosProbe(t *testing.T, c *Comm, pick func() (int, int), post func(int, int) bool, recvs *[]*chaosRecv) bool {
	t.Helper()
	src, tag := pick()
	st, found, err := Iprobe(c, src, tag)
	if err != nil || !found {
		return err == nil
	}
	if !post(src, tag) {
		return false
	}
	r := (*recvs)[len(*recvs)-1]
	if r.req.ctx == nil || r.req.status.Source != st.Source || r.req.status.Tag != st.Tag || r.req.status.Bytes != st.Bytes {
		t.Errorf("receive after probe of (%d, %d) got %+v, want %+v", src, tag, r.req.status, st)
		return false
	}
	return true
}

// checkOrder checks the final matching. With one sender it is unique: in the
// order of posting, each receive takes the first message left that it
// accepts. With several the order among them is free.
func checkOrder(t *testing.T, n int, recvs []*chaosRecv, msgs [][]*chaosMsg) bool {
	t.Helper()
	if n == 2 {
		taken := make([]bool, len(msgs[1]))
		for _, r := range recvs {
			if r.cancelled {
				continue
			}
			var want *chaosMsg
			for i, m := range msgs[1] {
				if !taken[i] && r.accepts(m) {
					want = m
					taken[i] = true
					break
				}
			}
			if r.got != want {
				t.Errorf("receive %d (%d, %d) got %+v, want %+v", r.order, r.src, r.tag, r.got, want)
				return false
			}
		}
		return true
	}
	for _, r := range recvs {
		if r.got == nil {
			continue
		}
		for _, m := range msgs[r.got.src][:r.got.serial] {
			if r.accepts(m) && m.to.order > r.order {
				t.Errorf("receive %d (%d, %d) got message %d of %d, though it accepts the earlier message %d, which went to receive %d",
					r.order, r.src, r.tag, r.got.serial, r.got.src, m.serial, m.to.order)
				return false
			}
		}
	}
	return true
}

// checkEmpty checks that nothing is left behind.
func checkEmpty(t *testing.T, k *chaos) bool {
	t.Helper()
	for _, w := range k.worlds {
		e := w.eng
		if n := e.ids.len(); n != 0 {
			t.Errorf("rank %d: %d ids left", e.rank, n)
			return false
		}
		for _, x := range e.contexts {
			if x.early != 0 || x.unexp.n != 0 {
				t.Errorf("rank %d: %d early messages, %d message queues left", e.rank, x.early, x.unexp.n)
				return false
			}
			for _, s := range x.sources {
				if s.ahead != 0 || len(s.held) != 0 {
					t.Errorf("rank %d: gap left", e.rank)
					return false
				}
			}
		}
		for _, p := range e.peers {
			if a, r := p.announced.Load(), p.ready.Load(); a != 0 || r != 0 {
				t.Errorf("rank %d: %d sends to %d wait, %d of its", e.rank, a, p.rank, r)
				return false
			}
			if used, owed := p.used.Load(), p.owed.Load(); used != owed {
				t.Errorf("rank %d: peer %d uses %d bytes of which it is owed %d", e.rank, p.rank, used, owed)
				return false
			}
		}
	}
	return true
}
