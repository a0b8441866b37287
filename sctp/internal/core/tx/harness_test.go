package tx

import (
	"slices"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

const (
	ms     clock.Time = 1_000_000
	second            = 1000 * ms
)

// txTest drives a send queue and a scoreboard one verb per step.
type txTest struct {
	t   testing.TB
	q   *Queue
	sb  *Scoreboard
	now clock.Time
	mtu int // bytes for chunks in a packet
	buf []byte
}

type txOption func(*ScoreboardConfig, *txTest)

func withRACK(c *ScoreboardConfig, _ *txTest)  { c.RACK = true }
func withPaths(n int) txOption                 { return func(c *ScoreboardConfig, _ *txTest) { c.Paths = n } }
func withCMT(c *ScoreboardConfig, _ *txTest)   { c.CMT = true }
func withTSN(t seq.TSN) txOption               { return func(c *ScoreboardConfig, _ *txTest) { c.TSN = t } }
func withRWND(n int) txOption                  { return func(c *ScoreboardConfig, _ *txTest) { c.RWND = n } }
func withIData(_ *ScoreboardConfig, h *txTest) { h.q.SetInterleaving(true) }
func withPR(_ *ScoreboardConfig, h *txTest)    { h.q.SetPartialReliability(true) }
func withLimit(n int) txOption                 { return func(_ *ScoreboardConfig, h *txTest) { h.q.SetLimit(n) } }
func withScheduler(k Scheduler) txOption {
	return func(_ *ScoreboardConfig, h *txTest) { h.q.SetScheduler(k) }
}

func newTxTest(t testing.TB, opts ...txOption) *txTest {
	h := &txTest{t: t, now: second, mtu: 1400, q: NewQueue(1<<30, 1<<16-1, SchedRR)}
	c := ScoreboardConfig{TSN: 100, RWND: 1 << 30}
	for _, o := range opts {
		o(&c, h)
	}
	h.sb = NewScoreboard(h.q, c)
	return h
}

func (h *txTest) logf(format string, args ...any) {
	h.t.Helper()
	h.t.Logf("%v: "+format, append([]any{h.now}, args...)...)
}

func (h *txTest) advance(d clock.Time) { h.now += d }

// push queues n bytes on stream sid.
func (h *txTest) push(sid uint16, n int) {
	h.t.Helper()
	h.pushMsg(Message{SID: sid, Body: make([]byte, n)})
}

func (h *txTest) pushMsg(m Message) {
	h.t.Helper()
	if err := h.q.Push(h.now, &m); err != nil {
		h.t.Fatalf("Push on stream %d: %v", m.SID, err)
	}
}

// packet sends one packet of new data on a path and returns its chunks.
func (h *txTest) packet(path int) (chunks []wire.Data) {
	h.t.Helper()
	b := h.buf[:0]
	for {
		var ok bool
		if b, ok = h.sb.AppendNew(b, h.now, path, Room{h.mtu - len(b), h.mtu}); !ok {
			break
		}
	}
	h.q.EndPacket()
	h.buf = b
	return parseDataChunks(h.t, b)
}

// sendTSNs sends n messages of one chunk each, one per packet, on path 0.
func (h *txTest) sendTSNs(n int) { h.t.Helper(); h.sendOn(0, n) }

func (h *txTest) sendOn(path, n int) {
	h.t.Helper()
	for range n {
		h.push(0, 1000)
		c := h.packet(path)
		if len(c) != 1 {
			h.t.Fatalf("sent %d chunks, want 1", len(c))
		}
		h.logf("send TSN %d on path %d", c[0].TSN, path)
	}
}

// rtx sends one packet of retransmissions on a path and returns the TSNs.
func (h *txTest) rtx(path int) (tsns []seq.TSN) {
	h.t.Helper()
	b := h.buf[:0]
	for {
		var ok bool
		if b, ok = h.sb.AppendRtx(b, h.now, path, h.mtu-len(b)); !ok {
			break
		}
	}
	h.buf = b
	for _, d := range parseDataChunks(h.t, b) {
		tsns = append(tsns, seq.TSN(d.TSN))
	}
	h.logf("retransmit %v on path %d", tsns, path)
	return tsns
}

func (h *txTest) wantRtx(path int, want ...seq.TSN) {
	h.t.Helper()
	if got := h.rtx(path); !slices.Equal(got, want) {
		h.t.Fatalf("retransmitted %v, want %v", got, want)
	}
}

func (h *txTest) wantMarked(want ...seq.TSN) {
	h.t.Helper()
	var got []seq.TSN
	for t := h.sb.base; t != h.sb.next; t++ {
		if h.sb.marked.Has(t) {
			got = append(got, t)
		}
	}
	if !slices.Equal(got, want) {
		h.t.Fatalf("marked for retransmission: %v, want %v", got, want)
	}
}

// sackOf builds a SACK as it would come from the wire. gaps are pairs of first
// and last TSN.
func sackOf(cum seq.TSN, rwnd int, gaps []seq.TSN, dups []uint32) *wire.Sack {
	var g []wire.GapBlock
	for i := 0; i+1 < len(gaps); i += 2 {
		g = append(g, wire.GapBlock{Start: uint16(gaps[i] - cum), End: uint16(gaps[i+1] - cum)})
	}
	it := wire.NewChunks(wire.AppendSack(nil, uint32(cum), uint32(rwnd), g, dups))
	it.Next()
	x, err := wire.ParseSack(it.Chunk())
	if err != nil {
		panic(err)
	}
	return &x
}

func (h *txTest) sack(cum seq.TSN, gaps ...seq.TSN) *SackResult {
	h.t.Helper()
	return h.sackDup(cum, nil, gaps...)
}

func (h *txTest) sackDup(cum seq.TSN, dups []uint32, gaps ...seq.TSN) *SackResult {
	h.t.Helper()
	h.logf("SACK cum %d gaps %v dups %v", cum, gaps, dups)
	res, err := h.sb.HandleSack(h.now, sackOf(cum, 1<<30, gaps, dups))
	if err != nil {
		h.t.Fatalf("HandleSack: %v", err)
	}
	return res
}

func (h *txTest) wantFlight(path, want int) {
	h.t.Helper()
	if got := h.sb.Flight(path); got != want {
		h.t.Fatalf("bytes in flight on path %d = %d, want %d", path, got, want)
	}
}

// tsnChunk is the size of the chunk of a 1000-byte message.
const tsnChunk = 1016

func parseDataChunks(t testing.TB, b []byte) (out []wire.Data) {
	t.Helper()
	it := wire.NewChunks(b)
	for it.Next() {
		c := it.Chunk()
		var d wire.Data
		var err error
		if c.Type == wire.ChunkIData {
			d, err = wire.ParseIData(c)
		} else {
			d, err = wire.ParseData(c)
		}
		if err != nil {
			t.Fatalf("a chunk we built does not parse: %v", err)
		}
		out = append(out, d)
	}
	if err := it.Err(); err != nil {
		t.Fatalf("chunks we built do not parse: %v", err)
	}
	return out
}

// ownerLog is an Owner that writes down what it is told.
type ownerLog struct {
	n   int
	err error
}

func (o *ownerLog) Released(err error) { o.n++; o.err = err }

// release calls the owners whose turn has come.
func (h *txTest) release() {
	for _, r := range h.q.TakeReleases(nil) {
		r.Owner.Released(r.Err)
	}
}
