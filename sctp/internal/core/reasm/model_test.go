package reasm

import (
	"bytes"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/wire"
	"pgregory.net/rapid"
)

// sentMsg is a message of the reference model: a list of its chunks and which of
// them arrived.
type sentMsg struct {
	sid       uint16
	num       uint32
	ppid      uint32
	unordered bool
	chunks    []wire.Data
	arrived   []bool
	abandoned bool // by the sender
	skipped   bool // the receiver was told
	lost      bool // was unfinished when it was skipped
	got       []byte
	begun     bool // the user got some of it
	done      bool // the user got all of it, or the notice of its abort
}

func (m *sentMsg) body() []byte {
	var b []byte
	for i := range m.chunks {
		b = append(b, m.chunks[i].Payload...)
	}
	return b
}

// prefix returns how many bytes are there from the beginning without a gap.
func (m *sentMsg) prefix() int {
	n := 0
	for i := range m.chunks {
		if !m.arrived[i] {
			return n
		}
		n += len(m.chunks[i].Payload)
	}
	return n
}

func (m *sentMsg) complete() bool { return m.prefix() == len(m.body()) }

// sender draws messages and turns them into chunks as a peer would.
type sender struct {
	idata bool
	tsn   seq.TSN
	next  map[uint64]uint32 // by sid and U bit
	msgs  []*sentMsg
	sent  []chunkRef // in TSN order
}

type chunkRef struct {
	m *sentMsg
	i int
}

func (c chunkRef) data() *wire.Data { return &c.m.chunks[c.i] }

func drawSender(t *rapid.T, idata bool, initial seq.TSN, firstNum uint32) *sender {
	s := &sender{idata: idata, tsn: initial, next: map[uint64]uint32{}}
	for i := range rapid.IntRange(1, 25).Draw(t, "messages") {
		m := &sentMsg{
			sid:       uint16(rapid.IntRange(0, 3).Draw(t, "sid")),
			unordered: rapid.Bool().Draw(t, "unordered"),
			ppid:      uint32(i) + 1000,
		}
		k := messageKey(m.sid, m.unordered, 0)
		m.num = s.next[k]
		if !m.unordered || idata {
			m.num += firstNum
			s.next[k]++
		}
		if !idata {
			m.num = uint32(uint16(m.num))
		}
		n := rapid.SampledFrom([]int{1, 1, 1, 2, 3, 10, 40}).Draw(t, "fragments")
		for j := range n {
			size := rapid.SampledFrom([]int{1, 7, 64, 65, 255, 256, 300}).Draw(t, "size")
			m.chunks = append(m.chunks, wire.Data{
				SID: m.sid, SSN: uint16(m.num), MID: m.num, FSN: uint32(j), PPID: m.ppid,
				Begin: j == 0, End: j == n-1, Unordered: m.unordered,
				Payload: bytes.Repeat([]byte{byte(i), byte(j)}, size)[:size],
			})
			if idata && j > 0 {
				m.chunks[j].PPID = 0
			}
		}
		if m.unordered && !idata {
			m.num = 0
		}
		m.arrived = make([]bool, n)
		s.msgs = append(s.msgs, m)
	}
	s.assign(t)
	return s
}

// assign gives TSNs: message after message, or, with I-DATA, interleaving those
// at the head of each stream and U bit.
func (s *sender) assign(t *rapid.T) {
	pos := map[*sentMsg]int{}
	rest := append([]*sentMsg(nil), s.msgs...)
	for len(rest) > 0 {
		k := 0
		if s.idata {
			k = rapid.IntRange(0, len(rest)-1).Draw(t, "pick")
			for j := range k { // the first of the same stream goes first
				if rest[j].sid == rest[k].sid {
					k = j
					break
				}
			}
		}
		m := rest[k]
		n := len(m.chunks)
		if s.idata {
			n = rapid.IntRange(1, n-pos[m]).Draw(t, "quantum")
		}
		for range n {
			m.chunks[pos[m]].TSN = uint32(s.tsn)
			s.sent = append(s.sent, chunkRef{m, pos[m]})
			s.tsn++
			pos[m]++
		}
		if pos[m] == len(m.chunks) {
			rest = append(rest[:k:k], rest[k+1:]...)
		}
	}
}

// receiver is the code under test with what surrounds it in an association.
type receiver struct {
	*rapid.T
	*Queue
	m    *seq.Map
	pool slab.Pool
	buf  *slab.Buf
	used int
	byID map[uint64]*sentMsg
	s    *sender
}

func newReceiver(t *rapid.T, s *sender, cfg Config, initial seq.TSN, firstNum uint32) *receiver {
	r := &receiver{T: t, s: s, m: newTSNMap(initial), byID: map[uint64]*sentMsg{}}
	r.Queue = newQueue(cfg, initial)
	for sid := range cfg.Streams {
		st := r.stream(uint16(sid))
		st.next = firstNum
		if !cfg.Interleaved {
			st.next = uint32(uint16(firstNum))
		}
	}
	return r
}

// arrive takes one chunk through tracker and reassembly, in a slab shared by a
// few chunks.
func (r *receiver) arrive(c chunkRef) Result {
	d := *c.data()
	if r.m.Check(seq.TSN(d.TSN)) != seq.New {
		r.m.Observe(seq.TSN(d.TSN))
		return taken
	}
	if r.buf == nil || r.used > 2000 {
		if r.buf != nil {
			r.buf.Release()
		}
		r.buf, r.used = r.pool.Get(), 0
	}
	r.used += copy(r.buf.B[r.used:], d.Payload)
	d.Payload = r.buf.B[r.used-len(d.Payload) : r.used : r.used]
	res := r.Add(&d, r.buf)
	if res.Violation() || res == Full {
		r.Fatalf("add(%+v) = %v", d, res)
	}
	r.m.Observe(seq.TSN(d.TSN))
	c.m.arrived[c.i] = true
	if res := r.CheckUpTo(r.m.CumTSN()); res != taken {
		r.Fatalf("CheckUpTo(%d) = %v", r.m.CumTSN(), res)
	}
	return res
}

// find returns the message of the model that the user sees as id.
func (r *receiver) find(id uint64, sid uint16, unordered bool, ppid uint32) *sentMsg {
	m := r.byID[id]
	if m == nil {
		m = r.s.msgs[ppid-1000]
		if m.begun {
			r.Fatalf("message %d under two ids", ppid)
		}
		r.byID[id], m.begun = m, true
	}
	if m.sid != sid || m.unordered != unordered || m.ppid != ppid {
		r.Fatalf("message %d of stream %d (unordered %v) came as %d of stream %d (%v)",
			m.ppid, m.sid, m.unordered, ppid, sid, unordered)
	}
	if m.done {
		r.Fatalf("message %d goes on after its end", ppid)
	}
	return m
}

// drainPieces pops everything there is.
func (r *receiver) drainPieces() {
	var out []Piece
	for {
		var p Piece
		if !r.PopPiece(&p) {
			break
		}
		m := r.find(p.Message, p.SID, p.Unordered, p.PPID)
		if p.Begin != (p.Offset == 0 && !p.Aborted) || p.Offset != uint64(len(m.got)) {
			r.Fatalf("piece at %d (begin %v) after %d bytes", p.Offset, p.Begin, len(m.got))
		}
		m.got = append(m.got, p.Data...)
		m.done = p.End
		if p.Aborted != (m.lost && p.End) {
			r.Fatalf("message %d: aborted %v, want %v", p.PPID, p.Aborted, m.lost)
		}
		out = append(out, p)
	}
	for i := range out {
		out[i].Release()
	}
}

// drainRead reads everything there is, in buffers of the given size.
func (r *receiver) drainRead(size int) {
	dst := make([]byte, size)
	for {
		want, wantInfo, peeked := r.Peek(AnyStream)
		var info RecvInfo
		n, ok := r.Read(AnyStream, dst, &info)
		if ok != peeked || ok && (n != min(want, size) || info.Message != wantInfo.Message) {
			r.Fatalf("read = %d %+v %v, peek = %d %+v %v", n, info, ok, want, wantInfo, peeked)
		}
		if !ok {
			return
		}
		m := r.find(info.Message, info.SID, info.Unordered, info.PPID)
		if info.Offset != uint64(len(m.got)) {
			r.Fatalf("read at %d after %d bytes", info.Offset, len(m.got))
		}
		m.got = append(m.got, dst[:n]...)
		m.done = info.EOR
		if info.Aborted && (!m.lost || n != 0 || !info.EOR) {
			r.Fatalf("message %d: aborted %+v, want %v", info.PPID, info, m.lost)
		}
	}
}

// verify compares what the user got with what the model says is deliverable.
func (r *receiver) verify(pieces bool) {
	r.Helper()
	blocked := map[uint16]bool{} // stream has an ordered message before that is not complete
	for _, m := range r.s.msgs {
		want := 0
		switch {
		case m.lost:
			if m.begun != m.done {
				r.Fatalf("message %d: begun %v, but abort told %v", m.ppid, m.begun, m.done)
			}
			continue
		case !m.unordered && blocked[m.sid]:
		case pieces || m.complete():
			want = m.prefix()
		}
		if !bytes.Equal(m.got, m.body()[:want]) {
			r.Fatalf("message %d (stream %d, unordered %v): got %d bytes, want %d", m.ppid, m.sid, m.unordered, len(m.got), want)
		}
		if m.done != (want > 0 && m.complete()) {
			r.Fatalf("message %d: done %v, complete %v", m.ppid, m.done, m.complete())
		}
		if !m.unordered && !m.complete() {
			blocked[m.sid] = true
		}
	}
}

// finish checks that nothing is left and nothing leaks.
func (r *receiver) finish(empty bool) {
	r.Helper()
	if empty && (r.window.held != r.msgs*messageRecord || r.frags != 0 || r.loose.n != 0 || r.numbered.n != 0) {
		r.Fatalf("left over: %d bytes, %d fragments, %d loose, %d numbered", r.window.held, r.frags, r.loose.n, r.numbered.n)
	}
	if r.buf != nil {
		r.buf.Release()
	}
	r.Close()
	if r.window.held != 0 || r.frags != 0 || r.pool.Live() != 0 || r.mem.pinned != 0 {
		r.Fatalf("after close: %d bytes, %d fragments, %d slabs, %d pins", r.window.held, r.frags, r.pool.Live(), r.mem.pinned)
	}
}

func drawMode(t *rapid.T) (cfg Config, initial seq.TSN, firstNum uint32) {
	cfg = Config{
		Interleaved: rapid.Bool().Draw(t, "idata"), Pieces: rapid.Bool().Draw(t, "pieces"),
		Streams: 4, Limit: 4 << 20, Seed: rapid.Uint64().Draw(t, "seed"),
	}
	initial = seq.TSN(rapid.SampledFrom([]uint32{1, 0xfffffff0, 0x7ffffff0}).Draw(t, "tsn"))
	firstNum = rapid.SampledFrom([]uint32{0, 0xfffffffe, 0x7ffffffe}).Draw(t, "number")
	return
}

// order draws an order of arrival: the chunks of sent within a window of
// reordering, some of them twice.
func order(t *rapid.T, sent []chunkRef) []chunkRef {
	spread := rapid.SampledFrom([]int{0, 3, 1000}).Draw(t, "reorder")
	out := append([]chunkRef(nil), sent...)
	for i := range out {
		if spread > 0 {
			j := min(len(out)-1, i+rapid.IntRange(0, spread).Draw(t, "swap"))
			out[i], out[j] = out[j], out[i]
		}
	}
	for range rapid.IntRange(0, 5).Draw(t, "duplicates") {
		out = append(out, out[rapid.IntRange(0, len(out)-1).Draw(t, "duplicate")])
	}
	return out
}

func TestReassemblyAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, initial, firstNum := drawMode(t)
		s := drawSender(t, cfg.Interleaved, initial, firstNum)
		r := newReceiver(t, s, cfg, initial, firstNum)
		drainEach := rapid.Bool().Draw(t, "drain each")
		size := rapid.SampledFrom([]int{1 << 16, 100, 17}).Draw(t, "buffer")
		drain := func() {
			if cfg.Pieces && size > 1<<10 {
				r.drainPieces()
			} else {
				r.drainRead(size)
				if cfg.Pieces {
					return // read stays in an unfinished message: compare at the end
				}
			}
			r.verify(cfg.Pieces)
		}
		for _, c := range order(t, s.sent) {
			r.arrive(c)
			if drainEach {
				drain()
			}
		}
		drain()
		r.verify(cfg.Pieces)
		if r.m.CumTSN() != s.tsn-1 {
			t.Fatalf("cum = %d, want %d", r.m.CumTSN(), s.tsn-1)
		}
		r.finish(true)
	})
}

// TestReassemblyClosesAnywhere stops in the middle of everything.
func TestReassemblyClosesAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, initial, firstNum := drawMode(t)
		s := drawSender(t, cfg.Interleaved, initial, firstNum)
		r := newReceiver(t, s, cfg, initial, firstNum)
		arrivals := order(t, s.sent)
		var out []Piece
		for _, c := range arrivals[:rapid.IntRange(0, len(arrivals)).Draw(t, "stop")] {
			r.arrive(c)
			if p := (Piece{}); r.PopPiece(&p) {
				out = append(out, p)
			}
		}
		r.Close()
		for i := range out {
			m := r.find(out[i].Message, out[i].SID, out[i].Unordered, out[i].PPID)
			if !bytes.HasPrefix(m.body()[out[i].Offset:], out[i].Data) {
				t.Fatal("a piece changed when the queue was closed")
			}
			out[i].Release()
			out[i].Release()
		}
		r.finish(true)
	})
}

// TestReassemblyForwardAgainstModel lets the sender abandon messages and
// announce it with FORWARD-TSN or I-FORWARD-TSN.
func TestReassemblyForwardAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, initial, firstNum := drawMode(t)
		s := drawSender(t, cfg.Interleaved, initial, firstNum)
		r := newReceiver(t, s, cfg, initial, firstNum)
		drain := func() {
			if cfg.Pieces {
				r.drainPieces()
			} else {
				r.drainRead(1 << 16)
			}
			r.verify(cfg.Pieces)
		}
		for _, c := range order(t, s.sent) {
			if rapid.IntRange(0, 9).Draw(t, "lose") == 0 {
				continue
			}
			if c.m.skipped {
				// Still under way when the receiver was told to skip it.
				if res := r.arrive(c); res == taken && r.m.Check(seq.TSN(c.data().TSN)) == seq.New {
					t.Fatalf("late fragment of a skipped message taken")
				}
				continue
			}
			r.arrive(c)
			drain()
			if rapid.IntRange(0, 9).Draw(t, "abandon") == 0 {
				s.msgs[rapid.IntRange(0, len(s.msgs)-1).Draw(t, "which")].abandoned = true
				s.forward(r)
				drain()
			}
		}
		for range len(s.msgs) + 1 {
			for _, c := range s.sent { // retransmit, or give up, the rest
				if r.m.Check(seq.TSN(c.data().TSN)) == seq.New && !c.m.abandoned {
					r.arrive(c)
					drain()
				}
			}
			for _, m := range s.msgs {
				m.abandoned = m.abandoned || !m.complete()
			}
			s.forward(r)
			drain()
		}
		if r.m.CumTSN() != s.tsn-1 {
			t.Fatalf("cum = %d, want %d", r.m.CumTSN(), s.tsn-1)
		}
		r.finish(true)
	})
}

// forward sends what RFC 3758, Section 3.5, C1 to C4 say.
func (s *sender) forward(r *receiver) {
	to, first := r.m.CumTSN(), s.sent[0].data().TSN
	var over []*sentMsg
	for {
		i := to.Sub(seq.TSN(first)) + 1
		if i >= len(s.sent) || !s.sent[i].m.abandoned {
			break
		}
		over = append(over, s.sent[i].m)
		to++
	}
	if !r.m.Forward(to) {
		return
	}
	for _, m := range over {
		if !m.skipped {
			m.skipped, m.lost = true, !m.complete()
		}
		if !m.unordered || s.idata {
			r.SkipMessages(m.sid, m.unordered, m.num)
		}
	}
	if !s.idata { // an entry of a stream that does not exist
		r.SkipMessages(99, false, 0)
	}
	r.Forward(to)
	if res := r.CheckUpTo(r.m.CumTSN()); res != taken {
		r.Fatalf("CheckUpTo(%d) after forward = %v", r.m.CumTSN(), res)
	}
}
