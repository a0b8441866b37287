package core

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/wire"
)

// withRace returns how many repetitions there are: few with the race detector, which is slow and finds
// nothing in what one goroutine does alone.
func withRace(all, few int) int {
	if testenv.Race {
		return few
	}
	return all
}

// pair is two associations, or a client and a listener that becomes one, joined
// by a queue of packets with a clock of its own. Nothing runs by itself: a test
// says what happens, or calls drive and lets the network's faults decide.
type pair struct {
	t   testing.TB
	now clock.Time
	rng *rand.Rand
	// later decides for which packets DeferSack is set.
	later *rand.Rand
	net   faults
	a, z  *host
	wire  []flying
	seq   int
	// zeroSum tells that packets need no checksum.
	zeroSum bool
	slabs   slab.Pool
}

// faults are chances in 1000 per packet, and delays.
type faults struct {
	loss, dup, reorder, corrupt int
	delay, jitter               time.Duration
	// drop, if not nil, decides about a packet first: it is dropped if drop says
	// so. mangle may change it.
	drop func(from *host, pkt []byte) bool
	// sniff, if not nil, sees every packet sent; onFragment is told of those that
	// IP is to fragment.
	sniff      func(from *host, pkt []byte)
	onFragment func()
	// slow adds to the delay of the network that the receiver's address of this
	// index is in.
	slow map[int]time.Duration
	// batches has packets that arrive at the same time be received as one GRO batch, and
	// slabs in the buffers of a driver.
	batches, slabs bool
	// deaf, if not nil, loses the packets it reports.
	deaf func(*Packet) bool
	// mtu, if not 0, is the largest IPv4 packet that is not lost, unless IP may
	// fragment it.
	mtu int
	// cut are addresses that packets neither reach nor leave.
	cut    map[netip.AddrPort]bool
	mangle func(from *host, pkt []byte) []byte
}

type flying struct {
	at  clock.Time
	seq int
	to  *host
	p   Packet
}

func newPair(t testing.TB, seed uint64, cfg ...*Config) *pair {
	p := &pair{t: t, now: clock.Time(time.Second), rng: rand.New(rand.NewPCG(seed, 7)), later: rand.New(rand.NewPCG(seed, 8))}
	p.net.delay = 5 * time.Millisecond
	var ca, cz *Config
	if len(cfg) > 0 {
		ca, cz = cfg[0], cfg[0]
	}
	if len(cfg) > 1 {
		cz = cfg[1]
	}
	p.a = p.newHost("A", ca, "10.0.0.1:9899")
	p.z = p.newHost("Z", cz, "10.0.0.2:9899")
	return p
}

func (p *pair) seed() (s [32]byte) {
	for i := range s {
		s[i] = byte(p.rng.Uint32())
	}
	return s
}

// checkTransmit checks what PollTransmit promises.
func (p *pair) checkTransmit(buf []byte, tx Transmit) {
	p.t.Helper()
	if n := (len(buf) + tx.SegSize - 1) / max(tx.SegSize, 1); n != tx.Segs || tx.Segs == 0 {
		p.t.Fatalf("PollTransmit: %d bytes in segments of %d are not %d", len(buf), tx.SegSize, tx.Segs)
	}
	for rest := buf; len(rest) > 0; {
		n := min(tx.SegSize, len(rest))
		if !p.zeroSum && !wire.VerifyChecksum(rest[:n]) || n%4 != 0 {
			p.t.Fatalf("PollTransmit: bad checksum or length %d", n)
		}
		it := wire.NewChunks(rest[wire.HeaderLen:n])
		for it.Next() {
		}
		if it.Err() != nil {
			p.t.Fatalf("PollTransmit: malformed packet %s", wire.Describe(rest[:n]))
		}
		rest = rest[n:]
	}
}

// checkAssoc checks what must hold of an association at any time.
func (p *pair) checkAssoc(a *Assoc) {
	p.t.Helper()
	sb := a.tx.sb
	total := 0
	for i := range a.paths {
		f := sb.Flight(i)
		if f < 0 || (f == 0) != (sb.FlightChunks(i) == 0) {
			p.t.Fatalf("path %d: %d bytes in %d chunks in flight", i, f, sb.FlightChunks(i))
		}
		total += f
		if a.state.canSendData() && sb.FlightChunks(i) > 0 && !a.timers.RunningPath(timer.T3, i) {
			p.t.Fatalf("path %d has %d bytes in flight and no T3 runs", i, f)
		}
	}
	if total != sb.TotalFlight() {
		p.t.Fatalf("in flight: %d on paths, %d in all", total, sb.TotalFlight())
	}
	if q := a.tx.q; q.Buffered() < 0 || q.Unsent() < 0 || q.Unsent() > q.Buffered() {
		p.t.Fatalf("queue: %d bytes buffered, %d unsent", q.Buffered(), q.Unsent())
	}
	if a.rx.reasm != nil && a.rx.reasm.Payload() < 0 {
		p.t.Fatalf("receive window: %d bytes of payload held", a.rx.reasm.Payload())
	}
}

// post puts a packet on the network, which may lose it or worse.
func (p *pair) post(from *host, pkt Packet) {
	d := wire.Describe(pkt.Data)
	from.sent = append(from.sent, d)
	if from.dests != nil && (hasChunk(pkt.Data, wire.ChunkData) || hasChunk(pkt.Data, wire.ChunkIData)) {
		from.dests[pkt.Local]++
	}
	to := p.z
	if from == p.z {
		to = p.a
	}
	pkt.Data = bytes.Clone(pkt.Data)
	if p.net.sniff != nil {
		p.net.sniff(from, pkt.Data)
	}
	if p.net.drop != nil && p.net.drop(from, pkt.Data) {
		p.t.Logf("%v %s>%s LOST %s", time.Duration(p.now), from.name, to.name, d)
		return
	}
	if p.net.cut[pkt.Local] || p.net.cut[pkt.Remote] || p.net.deaf != nil && p.net.deaf(&pkt) {
		return
	}
	if p.net.mangle != nil {
		pkt.Data = p.net.mangle(from, pkt.Data)
	}
	chance := func(n int) bool { return n > 0 && p.rng.IntN(1000) < n }
	if chance(p.net.loss) {
		return
	}
	copies := 1
	if chance(p.net.dup) {
		copies = 2
	}
	for range copies {
		c := pkt
		c.Data = bytes.Clone(pkt.Data)
		if chance(p.net.corrupt) {
			c.Data[p.rng.IntN(len(c.Data))] ^= 1 << p.rng.IntN(8)
		}
		at := p.now + clock.Time(p.net.delay)
		for k, d := range p.net.slow {
			if k < len(to.local) && to.local[k].Addr() == pkt.Local.Addr() {
				at += clock.Time(d)
			}
		}
		if p.net.jitter > 0 {
			at += clock.Time(p.rng.Int64N(int64(p.net.jitter)))
		}
		if chance(p.net.reorder) {
			at += clock.Time(p.net.delay) / 2
		}
		p.seq++
		p.wire = append(p.wire, flying{at, p.seq, to, c})
	}
}

// step does the next thing that is due: a packet that arrives, or a timer. It
// reports false when nothing is due before until.
func (p *pair) step(until clock.Time) bool {
	p.a.flush()
	p.z.flush()
	at, which := until+1, -1
	for i, f := range p.wire {
		if f.at < at || f.at == at && which >= 0 && f.seq < p.wire[which].seq {
			at, which = f.at, i
		}
	}
	timers := at
	for _, h := range []*host{p.a, p.z} {
		if h.assoc != nil {
			if t := h.assoc.NextTimeout(); t != 0 && t < timers {
				timers = t
			}
		}
	}
	switch {
	case timers < at:
		p.now = max(p.now, timers)
		for _, h := range []*host{p.a, p.z} {
			if h.assoc != nil {
				h.assoc.HandleTimeout(p.now)
			}
		}
	case which >= 0:
		p.now = max(p.now, at)
		f := p.take(which)
		if p.net.batches {
			f.to.deliverBatch(&f.p, p.behind(&f))
			break
		}
		f.to.deliver(&f.p)
	default:
		p.now = until
		return false
	}
	return true
}

// take takes packet i off the wire.
func (p *pair) take(i int) flying {
	f := p.wire[i]
	p.wire = append(p.wire[:i], p.wire[i+1:]...)
	return f
}

// behind takes the packets off the wire that arrive in one batch with f, behind it.
func (p *pair) behind(f *flying) (batch []Packet) {
	for len(batch) < maxBatch {
		which := -1
		for i, g := range p.wire {
			if g.at == f.at && (which < 0 || g.seq < p.wire[which].seq) {
				which = i
			}
		}
		if which < 0 {
			break
		}
		g := &p.wire[which]
		if g.to != f.to || g.p.Tuple != f.p.Tuple || g.p.ECN != f.p.ECN || len(g.p.Data) > len(f.p.Data) {
			break
		}
		short := len(g.p.Data) < len(f.p.Data)
		batch = append(batch, p.take(which).p)
		if short {
			break
		}
	}
	return batch
}

// maxBatch bounds the packets of a batch that is received.
const maxBatch = 40

// advance lets d pass.
func (p *pair) advance(d time.Duration) {
	p.t.Helper()
	until := p.now + clock.Time(d)
	for n := 0; p.step(until); n++ {
		if n > 2_000_000 {
			p.t.Fatal("two million steps: the pair goes round in circles")
		}
	}
}

// driveUntil lets time pass until cond holds, for at most limit.
func (p *pair) driveUntil(limit time.Duration, cond func() bool) bool {
	p.t.Helper()
	until := p.now + clock.Time(limit)
	for n := 0; !cond(); n++ {
		if !p.step(until) {
			return cond()
		}
		if n > 5_000_000 {
			p.t.Fatal("five million steps: the pair goes round in circles")
		}
	}
	return true
}

// idle reports whether both ends have sent everything and had it acknowledged.
func (p *pair) idle() bool {
	for _, h := range []*host{p.a, p.z} {
		if h.assoc == nil || !h.assoc.tx.dry() {
			return false
		}
	}
	return true
}

// drive lets time pass until everything is delivered.
func (p *pair) drive() {
	p.t.Helper()
	if !p.driveUntil(time.Hour, p.idle) {
		p.t.Fatalf("not everything was delivered within an hour: A %+v\nZ %+v", p.a.assoc.Stats(), p.z.assoc.Stats())
	}
	p.a.flush()
	p.z.flush()
	p.a.read()
	p.z.read()
}

// connect establishes the association from A to Z's listener.
func (p *pair) connect() {
	p.t.Helper()
	p.z.listen()
	p.a.dial(p.z)
	if !p.driveUntil(10*time.Minute, func() bool {
		return p.a.assoc.State() == Established && p.z.assoc != nil && p.z.assoc.State() == Established
	}) {
		p.t.Fatalf("not established: A is %v", p.a.assoc.State())
	}
}

// wantDelivered checks that each end got exactly what the other sent.
func (p *pair) wantDelivered() {
	p.t.Helper()
	p.wantOneWay(p.a, p.z)
	p.wantOneWay(p.z, p.a)
}

func (p *pair) wantOneWay(from, to *host) {
	p.t.Helper()
	for sid, out := range from.out {
		in := ledgerOf(to.in, sid)
		if len(in.ordered) != len(out.ordered) {
			p.t.Fatalf("%s stream %d: %d of %d ordered messages arrived", from.name, sid, len(in.ordered), len(out.ordered))
		}
		for i := range out.ordered {
			if !bytes.Equal(in.ordered[i], out.ordered[i]) {
				p.t.Fatalf("%s stream %d: message %d is not what was sent", from.name, sid, i)
			}
		}
		x, y := sorted(in.unordered), sorted(out.unordered)
		if len(x) != len(y) {
			p.t.Fatalf("%s stream %d: %d of %d unordered messages arrived", from.name, sid, len(x), len(y))
		}
		for i := range x {
			if x[i] != y[i] {
				p.t.Fatalf("%s stream %d: unordered messages differ", from.name, sid)
			}
		}
	}
	for b := range from.released {
		if b.n != 1 || b.err != nil {
			p.t.Fatalf("%s: an owner was released %d times, error %v", from.name, b.n, b.err)
		}
	}
}

func sorted(list [][]byte) []string {
	var s []string
	for _, b := range list {
		s = append(s, string(b))
	}
	sort.Strings(s)
	return s
}

// chunkTypes returns the types of the chunks of a packet.
func chunkTypes(pkt []byte) (list []wire.ChunkType) {
	it := wire.NewChunks(pkt[wire.HeaderLen:])
	for it.Next() {
		list = append(list, it.Chunk().Type)
	}
	return list
}

func hasChunk(pkt []byte, t wire.ChunkType) bool {
	for _, x := range chunkTypes(pkt) {
		if x == t {
			return true
		}
	}
	return false
}

// lose loses the packet of the given number of those with chunks of some types;
// again, also the next of them, and it has packets come twice now and then.
func (p *pair) lose(number int, again bool, types ...wire.ChunkType) {
	n := 0
	p.net.drop = func(_ *host, pkt []byte) bool {
		if !slices.ContainsFunc(types, func(t wire.ChunkType) bool { return hasChunk(pkt, t) }) {
			return false
		}
		n++
		return n-1 == number || again && n-1 == number+1
	}
	if again {
		p.net.dup = 300
	}
}

func seedName(seed int) string { return fmt.Sprintf("seed=%d", seed) }

func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
