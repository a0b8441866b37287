package core

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// twins are two pairs of associations to which the same happens: the first does at once
// what can be, the second one after the other.
type twins struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	now  clock.Time
	p    [2]*pair
	ends [2][2]*Assoc // by pair, then by end
	fly  [2][]flown   // by the end that they go to
	bufs [2][]byte
	log  []string

	rough bool // a lot happens

	sent, received, fast int // messages; fast: packets taken in at once
}

// flown is a packet under way.
type flown struct {
	tx  Transmit
	pkt []byte
}

// odds reports true once in calm times, where nothing else happens, else once in rough.
func (w *twins) odds(calm, rough int) bool {
	if w.rough {
		return w.rng.IntN(rough) == 0
	}
	return w.rng.IntN(calm) == 0
}

func (w *twins) fatal(format string, args ...any) {
	w.t.Helper()
	for _, l := range w.log[max(0, len(w.log)-12):] {
		w.t.Log(l)
	}
	w.t.Fatalf("seed %d: "+format, append([]any{w.seed}, args...)...)
}

// same checks that both pairs are alike.
func (w *twins) same(what string) {
	w.t.Helper()
	w.log = append(w.log, fmt.Sprint(w.now, " ", what))
	if !w.odds(10, 4) {
		return // it takes its time, and they do not become alike again
	}
	for i := range 2 {
		x, y := w.ends[0][i], w.ends[1][i]
		if x.state == Closed && y.state == Closed {
			continue
		}
		if s := diffState(x, y); s != "" {
			w.fatal("%s: end %d at once and step by step: %s", what, i, s)
		}
	}
}

// flush puts what an end has to send on its way.
func (w *twins) flush(i int) {
	w.t.Helper()
	for range 1000 {
		var out [2][]byte
		var tx [2]Transmit
		var ok [2]bool
		for k := range 2 {
			out[k], tx[k], ok[k] = w.ends[k][i].PollTransmit(w.now, w.bufs[k][:0], 8)
		}
		w.leaves(i, out, tx, ok)
		if !ok[0] {
			return
		}
	}
	w.fatal("there is always more to send")
}

func (w *twins) leaves(i int, out [2][]byte, tx [2]Transmit, ok [2]bool) {
	w.t.Helper()
	if ok[0] != ok[1] || ok[0] && (tx[0] != tx[1] || !bytes.Equal(out[0], out[1])) {
		w.fatal("end %d sends\n%+v %x\nand step by step\n%+v %x", i, tx[0], out[0], tx[1], out[1])
	}
	if ok[0] {
		w.p[0].checkTransmit(out[0], tx[0])
		for pkt := range slices.Chunk(out[0], tx[0].SegSize) {
			w.fly[1-i] = append(w.fly[1-i], flown{tx[0], bytes.Clone(pkt)})
		}
	}
}

// send has an end send a message.
func (w *twins) send(i int) {
	w.t.Helper()
	r := w.rng
	m := tx.Message{SID: uint16(r.IntN(2)), PPID: r.Uint32()}
	kind := r.IntN(40)
	if w.rough {
		kind = r.IntN(12)
	}
	switch kind {
	case 0:
		m.Unordered = true
	case 1:
		m.Immediate = true
	case 2:
		m.Lifetime = clock.Time(time.Second)
	case 3:
		m.LimitRtx = true
	case 4:
		m.SID = uint16(r.IntN(12)) // there are ten
	case 5:
		m.Droppable, m.Priority = true, 1
	}
	n := 1 + r.IntN(100)
	if r.IntN(6) == 0 {
		n = r.IntN(2000)
	}
	data := make([]byte, n)
	for k := range data {
		data[k] = byte(r.Uint32())
	}
	if n <= tx.MaxHeader && r.IntN(3) > 0 {
		m.Header = data
	} else {
		m.Header, m.Body = data[:min(n, r.IntN(20))], data[min(n, 20):]
	}
	if m.PPID&3 == 0 {
		m.SetRuns(cutIn(m.Body, 1+n/3))
	}
	more := w.odds(30, 8)
	var out [2][]byte
	var tx [2]Transmit
	var ok [2]bool
	x, y := w.ends[0][i], w.ends[1][i]
	if !more && x.CanSendSmall(&m) {
		out[0], ok[0] = x.SendSmall(w.now, &m, w.bufs[0][:0], &tx[0])
	}
	if ok[0] {
		w.sent++
		if err := y.Send(w.now, &m); err != nil {
			w.fatal("sent at once, but step by step: %v", err)
		}
		out[1], tx[1], ok[1] = y.PollTransmit(w.now, w.bufs[1][:0], 8)
		w.leaves(i, out, tx, ok)
	} else if a, b := x.Send(w.now, &m), y.Send(w.now, &m); a != b {
		w.fatal("errors %v and %v", a, b)
	}
	if !more {
		w.flush(i)
	}
	w.same(fmt.Sprintf("%d sends %d bytes, at once %v", i, n, ok[0]))
}

// arrive has the first packet arrive that is under way to an end, unless something
// happens to it.
func (w *twins) arrive(i int) {
	w.t.Helper()
	if len(w.fly[i]) == 0 {
		return
	}
	r := w.rng
	k := 0
	if w.odds(200, 20) {
		k = r.IntN(len(w.fly[i])) // it overtakes
	}
	f := w.fly[i][k]
	ecn := f.tx.ECN
	if w.odds(500, 30) {
		ecn = ECNCE
	}
	switch {
	case w.odds(300, 20): // somebody else's comes first
		f.pkt = bytes.Clone(f.pkt)
		w.forge(f.pkt)
	case w.odds(600, 100):
		f.pkt = f.pkt[:r.IntN(len(f.pkt))]
	case !w.odds(300, 30): // else it comes once more
		w.fly[i] = slices.Delete(w.fly[i], k, k+1)
	}
	if w.odds(300, 30) {
		w.same(fmt.Sprintf("%d loses a packet", i))
		return
	}
	later, waits := r.IntN(10) > 0, !w.odds(10, 5)
	stream, room := AnyStream, 5000
	if r.IntN(3) == 0 {
		stream = r.IntN(3)
	}
	if r.IntN(10) == 0 {
		room = r.IntN(100)
	}
	from, to := f.tx.Remote, f.tx.Local
	if w.odds(300, 60) {
		to = netip.MustParseAddrPort("10.0.0.9:9899")
	}
	x, y := w.ends[0][i], w.ends[1][i]
	post := PostedBuffer{Stream: stream, Dst: make([]byte, room)}
	at := from.Addr()
	fast := later && waits && x.HandleSmall(w.now, &SmallPacket{Data: bytes.Clone(f.pkt), Local: &at, Remote: &to, ECN: ecn}, &post)
	for k, a := range []*Assoc{x, y} {
		if k == 0 && fast {
			continue
		}
		a.HandlePacket(w.now, &Packet{Tuple: Tuple{Local: from, Remote: to}, ECN: ecn, Data: bytes.Clone(f.pkt), DeferSack: later})
		a.EndBatch(w.now)
	}
	what := fmt.Sprintf("%d takes in %s, at once %v", i, wire.Describe(f.pkt), fast)
	if fast {
		w.fast++
		var info reasm.RecvInfo
		dst := make([]byte, room)
		n, ok := y.read(stream, dst, &info)
		if !ok || n != post.N || info != post.Info || !bytes.Equal(dst, post.Dst) {
			w.fatal("%s\n%d bytes %+v, step by step %d (%v) %+v", what, post.N, post.Info, n, ok, info)
		}
		if y.Readable() {
			w.fatal("%s\nand there is more to read", what)
		}
	}
	if waits {
		w.read(i)
	}
	w.same(what)
}

// forge makes a packet that is hardly another one.
func (w *twins) forge(pkt []byte) {
	r := w.rng
	at := wire.HeaderLen
	if pkt[at] == byte(wire.ChunkSack) && len(pkt) > 2*wire.SackHeaderLen && r.IntN(2) == 0 {
		at += wire.SackHeaderLen
	}
	fields := []int{0, 2, 4, 7, at, at + 1, at + 2, at + 3, at + 7, at + 8, at + 9, at + 11, at + 12, at + 13, at + 15, at + 16, at + 19}
	k := min(fields[r.IntN(len(fields))], len(pkt)-1)
	switch r.IntN(8) {
	case 0:
		pkt[r.IntN(len(pkt))] ^= 1 << r.IntN(8)
		return // the checksum is wrong
	case 1:
		clear(pkt[8:12])
		return
	case 2:
		pkt[k]--
	case 3:
		pkt[k] = 0
	case 4:
		pkt[k] ^= 1 << r.IntN(8)
	default:
		pkt[k]++
	}
	wire.SetChecksum(pkt)
}

// read reads what there is to read.
func (w *twins) read(i int) {
	w.t.Helper()
	x, y := w.ends[0][i], w.ends[1][i]
	if a, b := received(x), received(y); !bytes.Equal(a, b) {
		w.fatal("read %q and %q", a, b)
	} else if len(a) > 0 {
		w.received++
	}
}

func (w *twins) each(i int, f func(a *Assoc)) {
	f(w.ends[0][i])
	f(w.ends[1][i])
}

// age has both ends of a pair have sent so much that the numbers of messages are about to
// start anew.
func (w *twins) age(k int) {
	for i, a := range w.ends[k] {
		peer := w.ends[k][1-i].rx.reasm
		n := uint32(1<<16 - 5)
		if peer.Interleaved() {
			n = 1<<32 - 5
		}
		for sid := range uint16(2) {
			a.tx.q.SetNext(sid, n)
			peer.SetNext(sid, n)
		}
	}
}

// What SendSmall and HandleSmall do at once leaves everything as what they stand for does.
// WEFT_SMALLMSG is how many seeds are tried, 120 by default.
func TestSmallMessageFastPathMatchesSlowPath(t *testing.T) {
	sent, fast := 0, 0
	seeds := uint64(withRace(120, 24))
	if s := os.Getenv("WEFT_SMALLMSG"); s != "" {
		seeds, _ = strconv.ParseUint(s, 10, 64)
	}
	for seed := range seeds {
		cfg := Config{NoInterleaving: seed%4 >= 2, NoPartialReliability: seed%3 == 0, TellDry: seed%11 == 5, Bundle: seed%13 == 3,
			NoRACK: seed%17 == 4, NoFragmentation: seed%23 == 7, NoECN: seed%5 == 2, ZeroChecksum: seed%7 == 4, Scheduler: tx.Scheduler(seed % 6), DSCP: uint8(seed % 3)}
		switch seed % 19 {
		case 1:
			cfg.SendBuffer = 1000
		case 2:
			cfg.RecvBuffer = 2000
		case 3:
			cfg.SackEvery = 8
		case 4:
			cfg.SackDelay = -1
		case 5:
			cfg.MTU, cfg.MaxMTU, cfg.Discover = 600, 1452, seed%2 == 1
		case 6:
			cfg.NoPacing, cfg.MaxBurst = true, 4
		}
		w := &twins{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 11)), rough: seed%2 == 0, bufs: [2][]byte{make([]byte, 0, MaxPacket), make([]byte, 0, MaxPacket)}}
		for k := range w.p {
			c := cfg
			p := newPair(t, seed, &c)
			p.zeroSum = cfg.ZeroChecksum
			p.connect()
			p.advance(time.Second)
			w.p[k], w.ends[k], w.now = p, [2]*Assoc{p.a.assoc, p.z.assoc}, p.now
			if seed%19 == 7 {
				w.age(k)
			}
		}
		w.same("up")
		turn := 0
		for range 400 {
			op := w.rng.IntN(120)
			if w.rough {
				op = w.rng.IntN(20)
			}
			switch op {
			case 0, 1:
				w.send(w.rng.IntN(2))
			case 2:
				w.each(w.rng.IntN(2), func(a *Assoc) { a.ProcessDeferredSack() })
			case 3:
				w.read(w.rng.IntN(2))
			case 4:
				w.now += clock.Time(w.rng.IntN(500)) * msec
			case 5:
				if i := w.rng.IntN(2); w.rng.IntN(40) == 0 {
					w.each(i, func(a *Assoc) { a.Shutdown(w.now) })
				}
			case 6:
				if i := w.rng.IntN(2); w.rng.IntN(10) == 0 {
					w.each(i, func(a *Assoc) { a.ResetStreams(w.now, []uint16{0}) })
				}
			case 7:
				if i := w.rng.IntN(2); w.rng.IntN(5) == 0 {
					on := w.rng.IntN(2) == 0
					w.each(i, func(a *Assoc) { a.PausePieces(0, on) })
				}
			case 8:
				if i := w.rng.IntN(2); w.rng.IntN(5) == 0 {
					w.each(i, func(a *Assoc) { a.RequestHeartbeat(w.now, a.paths[0].Remote) })
				}
			default: // question and answer
				w.send(turn)
				turn = 1 - turn
				for len(w.fly[turn]) > 0 && w.rng.IntN(20) > 0 {
					w.now += clock.Time(w.rng.IntN(20_000))
					w.arrive(turn)
				}
			}
			w.now += clock.Time(w.rng.IntN(30_000))
			for i := range 2 {
				if w.rng.IntN(8) == 0 {
					w.each(i, func(a *Assoc) { a.ProcessDeferredSack() })
				}
				if at := w.ends[0][i].NextTimeout(); at != 0 && at <= w.now {
					w.each(i, func(a *Assoc) { a.HandleTimeout(w.now) }) // which processes a deferred SACK, too
				}
				if w.rough && w.rng.IntN(3) == 0 || w.ends[0][i].Idle(w.now) {
					continue // flush processes a deferred SACK, too
				}
				w.flush(i)
				for k := range 2 {
					w.p[k].checkAssoc(w.ends[k][i])
				}
				w.each(i, func(a *Assoc) {
					for a.HasEvents() {
						a.PollEvent()
					}
					a.TakeReleases(nil)
				})
			}
			w.same("time passes")
			if w.ends[0][0].state == Closed || w.ends[0][1].state == Closed {
				break
			}
		}
		sent += w.sent
		fast += w.fast
	}
	if t.Logf("%d messages were sent at once, %d taken in", sent, fast); uint64(sent) < 33*seeds || uint64(fast) < 8*seeds {
		t.Error("hardly any")
	}
}

// Whatever might call for more than the message and an acknowledgement takes the slow path.
func TestSmallSendRefused(t *testing.T) {
	for i, edit := range []func(a *Assoc, m *tx.Message){
		nil,
		func(a *Assoc, m *tx.Message) { m.Header = nil },
		func(a *Assoc, m *tx.Message) { m.Header = make([]byte, tx.MaxHeader+1) },
		func(a *Assoc, m *tx.Message) {
			m.Body = make([]byte, a.MaxPayload()-wire.SackHeaderLen-len(m.Header)+1)
		},
		func(a *Assoc, m *tx.Message) { m.Unordered = true },
		func(a *Assoc, m *tx.Message) { m.Immediate = true },
		func(a *Assoc, m *tx.Message) { m.Borrowed = true },
		func(a *Assoc, m *tx.Message) { m.Keyed = true },
		func(a *Assoc, m *tx.Message) { m.LimitRtx = true },
		func(a *Assoc, m *tx.Message) { m.Droppable = true },
		func(a *Assoc, m *tx.Message) { m.Of = new(tx.OpenMessage) },
		func(a *Assoc, m *tx.Message) { m.SegmentSize = 1 },
		func(a *Assoc, m *tx.Message) { m.Lifetime = 1 },
		func(a *Assoc, m *tx.Message) { m.Remote = a.paths[0].Remote },
		func(a *Assoc, m *tx.Message) { m.SID = 2 }, // nothing was sent there yet
		func(a *Assoc, m *tx.Message) { private(a.tx.q, "nstreams").SetInt(1) },
		func(a *Assoc, m *tx.Message) { a.state = ShutdownPending },
		func(a *Assoc, m *tx.Message) { a.shut.wanted = true },
		func(a *Assoc, m *tx.Message) { a.shut.sendReq = true },
		func(a *Assoc, m *tx.Message) { a.shut.sendAck = true },
		func(a *Assoc, m *tx.Message) { a.auth.On = true },
		func(a *Assoc, m *tx.Message) { a.cfg.slowPath = true },
		func(a *Assoc, m *tx.Message) { a.paths = append(a.paths, a.paths[0]) },
		func(a *Assoc, m *tx.Message) { a.paths[0].confirmed = false },
		func(a *Assoc, m *tx.Message) { a.paths[0].active = false },
		func(a *Assoc, m *tx.Message) { a.paths[0].pf = true },
		func(a *Assoc, m *tx.Message) { a.paths[0].Local = a.paths[0].Remote },
		func(a *Assoc, m *tx.Message) { a.paths[0].hb.pending = true },
		func(a *Assoc, m *tx.Message) { setField(&a.paths[0].plpmtu, "pending", true) },
		func(a *Assoc, m *tx.Message) { a.tx.carry.full = true },
		func(a *Assoc, m *tx.Message) { a.standalone.n = 1 },
		func(a *Assoc, m *tx.Message) { a.ctl.n = 1 },
		func(a *Assoc, m *tx.Message) { a.hs.sendAck = true },
		func(a *Assoc, m *tx.Message) { a.ecn.cwr = true },
		func(a *Assoc, m *tx.Message) { a.ecn.echo = true },
		func(a *Assoc, m *tx.Message) { private(&a.asc, "mute").SetBool(true) },
		func(a *Assoc, m *tx.Message) { private(&a.asc, "sent").SetBool(true) },
		func(a *Assoc, m *tx.Message) { private(&a.asc, "send").SetBool(true) },
		func(a *Assoc, m *tx.Message) { a.asc.Add(netip.MustParseAddrPort("10.0.0.8:1")) },
		func(a *Assoc, m *tx.Message) { a.rc.AddStreams(0, 1, 1, 0) },
		func(a *Assoc, m *tx.Message) { a.rc.AddStreams(0, 1, 1, 0); a.rc.Append(nil) },
		func(a *Assoc, m *tx.Message) { a.tx.openBatch = &openBatch{tx: Transmit{Segs: 1}} },
		func(a *Assoc, m *tx.Message) { private(a.tx.q, "messages").SetInt(2) },
		func(a *Assoc, m *tx.Message) { a.tx.deferredSack.on = false },
		func(a *Assoc, m *tx.Message) { private(a.tx.q, "waiting").SetInt(1) },
		func(a *Assoc, m *tx.Message) { private(a.tx.q, "opened").SetInt(1) },
		func(a *Assoc, m *tx.Message) { private(a.tx.q, "routed").SetInt(1) },
		func(a *Assoc, m *tx.Message) { fill(private(a.tx.q, "borrowed")) },
		func(a *Assoc, m *tx.Message) { private(a.tx.q, "held").SetBool(true) },
		func(a *Assoc, m *tx.Message) { private(a.tx.q, "blocked").SetBool(true) },
		func(a *Assoc, m *tx.Message) { private(a.tx.q, "stalled").SetBool(true) },
		func(a *Assoc, m *tx.Message) { private(a.tx.q, "kind").SetUint(uint64(tx.SchedFair)) },
		func(a *Assoc, m *tx.Message) { private(a.tx.q, "kind").SetUint(uint64(tx.SchedWFQ)) },
		func(a *Assoc, m *tx.Message) { private(a.tx.q, "limit").SetInt(10) },
		func(a *Assoc, m *tx.Message) { private(a.tx.q, "streams.1.paused").SetBool(true) },
		func(a *Assoc, m *tx.Message) { fill(private(a.tx.q, "streams.1.open")) },
		func(a *Assoc, m *tx.Message) { fill(private(a.tx.q, "streams.1.head")) },
		func(a *Assoc, m *tx.Message) {
			a.tx.q.SetInterleaving(false)
			private(a.tx.q, "streams.1.ordered").SetInt(1<<15 - 1)
		},
		func(a *Assoc, m *tx.Message) { a.rx.tsns.Observe(a.rx.tsns.Highest() + 2) },
		func(a *Assoc, m *tx.Message) { a.rx.tsns.Observe(a.rx.tsns.CumTSN()) },
		func(a *Assoc, m *tx.Message) { a.cfg.Bundle = true },
		func(a *Assoc, m *tx.Message) {
			private(a.tx.sb, "marked").Addr().Interface().(*seq.Set).Add(a.tx.sb.NextTSN())
		},
		func(a *Assoc, m *tx.Message) { private(a.tx.sb, "permit").SetBool(true) },
		func(a *Assoc, m *tx.Message) { private(a.tx.sb, "awnd").SetInt(0) },
		func(a *Assoc, m *tx.Message) { private(a.tx.sb, "rwnd").SetInt(int64(len(m.Header) - 1)) },
		func(a *Assoc, m *tx.Message) { private(a.tx.sb, "rtxCopies.open").SetBool(true) },
		func(a *Assoc, m *tx.Message) { private(a.tx.sb, "recs").SetLen(1) },
		func(a *Assoc, m *tx.Message) { a.paths[0].single = true },
		func(a *Assoc, m *tx.Message) { a.cfg.MaxBurst, a.paths[0].burstFrom = 1, -2000 },
	} {
		l := newDeferredHarness(t, nil)
		l.answer(nil)
		l.wantDeferred(true)
		m := &tx.Message{SID: 1, Header: []byte("question")}
		if edit != nil {
			edit(l.a, m)
			l.a.slow = l.a.findSlowReasons()
		}
		got := l.a.CanSendSmall(m)
		if got {
			_, got = l.a.SendSmall(l.now, m, l.buf[:0], new(Transmit))
		}
		if got != (edit == nil) {
			t.Errorf("%d: sent at once: %v", i, got)
		}
	}
}

// Packets that are not eligible take the slow path, and leave nothing in the buffer that
// a reader posted.
func TestSmallPacketRefused(t *testing.T) {
	for i, edit := range []func(a *Assoc, p *SmallPacket, post *PostedBuffer){
		nil,
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { p.ECN = ECNCE },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) {
			at := netip.MustParseAddrPort("10.0.0.9:9899")
			p.Remote = &at
		},
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) {
			at := netip.MustParseAddr("10.0.0.9")
			p.Local = &at
		},
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { post.Stream = 2 },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { post.Dst = post.Dst[:4] },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.state = ShutdownPending },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.cfg.slowPath = true },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.auth.On = true },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.local.Remove(netip.AddrPort{}, 0) },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.paths = append(a.paths, a.paths[0]) },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.in.path = 1 },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.tag++ },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.port++ },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.peer.port++ },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.rx.tsns.Observe(a.rx.tsns.Highest() + 2) },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.rx.tsns.ObserveNext(1) },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.rx.tsns.Observe(a.rx.tsns.CumTSN()) },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { setField(&a.rc, "in.deferred", true) },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { setField(&a.rc, "in.holding", true) },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.rc.AddStreams(0, 1, 1, 0); a.rc.Append(nil) },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.rx.sack.SetNoDelay(true) },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.rx.sack.Force() },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.rx.sack.SetMultipath(true) },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.PausePieces(1, true) },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.rx.reasm.SetNext(1, 77) },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { a.rx.reasm = nil },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { private(a.tx.sb, "awnd").SetInt(0) }, // the SACK cannot wait
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) {
			p.Data[wire.HeaderLen+13] = 1
			wire.SetChecksum(p.Data)
		}, // gaps
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) {
			p.Data[wire.HeaderLen+15] = 1
			wire.SetChecksum(p.Data)
		}, // duplicates
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { p.Data[8] ^= 1 },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { clear(p.Data[8:12]) },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { p.Data = p.Data[:len(p.Data)-4] },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { p.Data = p.Data[:len(p.Data)-1] },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) { p.Data = append(p.Data, 0, 0, 0, 4) },
		func(a *Assoc, p *SmallPacket, post *PostedBuffer) {
			p.Data = p.Data[:wire.HeaderLen+wire.SackHeaderLen]
		},
	} {
		for _, plain := range []bool{false, true} {
			l := newDeferredHarness(t, &Config{NoInterleaving: plain})
			received(l.a)
			out, tx, ok := l.z.PollTransmit(l.now, l.buf[:0], 1)
			if !ok {
				t.Fatal("no answer")
			}
			local := tx.Remote.Addr()
			p := &SmallPacket{Data: slices.Clone(out), Local: &local, Remote: &tx.Local, ECN: tx.ECN}
			post := &PostedBuffer{Stream: 1, Dst: make([]byte, 5)}
			if edit != nil {
				edit(l.a, p, post)
				l.a.slow = l.a.findSlowReasons()
			}
			if got := l.a.HandleSmall(l.now, p, post); got != (edit == nil) {
				t.Errorf("%d, I-DATA %v: taken in at once: %v", i, !plain, got)
			}
			if want := map[bool]string{true: "short", false: "\x00\x00\x00\x00\x00"}[edit == nil]; string(post.Dst) != want[:len(post.Dst)] {
				t.Errorf("%d: %q where the reader waits", i, post.Dst)
			}
		}
	}
}
