package core

import (
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/reconfig"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/wire"
)

// streamsFrom returns the numbers of n streams.
func streamsFrom(first, n int) []uint16 {
	list := make([]uint16, n)
	for i := range list {
		list[i] = uint16(first + i)
	}
	return list
}

// keepReconfigs collects the packets with RE-CONFIG chunks that h sends.
func (h *host) keepReconfigs() *[][]byte {
	var pkts [][]byte
	h.p.net.sniff = func(from *host, pkt []byte) {
		if from == h && hasChunk(pkt, wire.ChunkReConfig) {
			pkts = append(pkts, slices.Clone(pkt))
		}
	}
	return &pkts
}

// resetRequests returns the streams that each reset request of the given kind in
// packets named, repetitions left out.
func (h *host) resetRequests(kind wire.ParamType, pkts *[][]byte) (lists [][]uint16) {
	h.p.t.Helper()
	seen := map[uint32]bool{}
	for _, param := range reconfigs(*pkts...) {
		var v wire.Uint16s
		var seq uint32
		switch {
		case param.Type != kind:
			continue
		case kind == wire.ParamOutgoingReset:
			x, err := wire.ParseOutgoingReset(param)
			if err != nil {
				h.p.t.Fatal(err)
			}
			v, seq = x.Streams, x.ReqSeq
		default:
			x, err := wire.ParseIncomingReset(param)
			if err != nil {
				h.p.t.Fatal(err)
			}
			v, seq = x.Streams, x.ReqSeq
		}
		if seen[seq] {
			continue
		}
		seen[seq] = true
		var list []uint16
		for i := range v.Len() {
			list = append(list, v.At(i))
		}
		lists = append(lists, list)
	}
	return lists
}

// resets returns the streams that h was told are reset, or not with an error.
func (h *host) resets(kind EventKind, failed bool) (lists [][]uint16) {
	h.flush()
	for _, e := range h.events {
		if e.Kind == kind && (e.Err != nil) == failed {
			lists = append(lists, e.Streams)
		}
	}
	return lists
}

// A list that names all streams but one of the most there can be is reset with as
// many requests as it takes, for which there is one outcome and one notification.
// The messages of the streams are numbered anew, that of the stream left out is not.
func TestResetOfAnyNumberOfStreams(t *testing.T) {
	const n = reconfig.MaxStreams
	cfg := &Config{OutStreams: n, InStreams: n}
	p := connected(t, 260, cfg)
	pkts := p.a.keepReconfigs()
	probe := []uint16{0, 199, 200, 12345, n - 2, n - 1}
	for _, sid := range probe {
		p.a.send(sid, 10)
	}
	p.drive()
	all := streamsFrom(0, n-1)
	slices.Reverse(all)
	p.a.wantDone(p.a.must(p.a.assoc.ResetStreams(p.now, append(all, all[:7]...))), nil)
	lists := p.a.resetRequests(wire.ParamOutgoingReset, pkts)
	if want := (n - 1 + reconfig.MaxResetStreams - 1) / reconfig.MaxResetStreams; len(lists) != want {
		t.Errorf("%d requests, want %d", len(lists), want)
	}
	if got := slices.Concat(lists...); !slices.Equal(got, streamsFrom(0, n-1)) {
		t.Errorf("%d streams were named, want each of %d once", len(got), n-1)
	}
	if got := p.a.resets(EventOutStreamsReset, false); len(got) != 1 || len(got[0]) != n-1 {
		t.Errorf("%d notifications that streams were reset, want one", len(got))
	}
	for _, sid := range probe {
		want := uint32(0)
		if sid == n-1 {
			want = 1
		}
		if got := p.a.numberOf(sid); got != want {
			t.Errorf("stream %d goes on with %d, want %d", sid, got, want)
		}
	}
	// The same streams in the other direction.
	p.a.wantDone(p.a.must(p.a.assoc.ResetIncoming(p.now, all)), nil)
	if got := slices.Concat(p.a.resetRequests(wire.ParamIncomingReset, pkts)...); !slices.Equal(got, streamsFrom(0, n-1)) {
		t.Errorf("%d incoming streams were named, want each of %d once", len(got), n-1)
	}
	p.a.wantState(Established)
}

// RFC 6525, Section 5.1.2, A4: if "all outgoing streams be reset, stream numbers
// SHOULD NOT be put into the Outgoing SSN Reset Request Parameter".
func TestResetOfAllStreamsByNumberNamesNone(t *testing.T) {
	p := connected(t, 261)
	pkts := p.a.keepReconfigs()
	p.a.wantDone(p.a.must(p.a.assoc.ResetStreams(p.now, streamsFrom(0, 10))), nil)
	p.a.wantDone(p.a.must(p.a.assoc.ResetIncoming(p.now, streamsFrom(0, 10))), nil)
	for _, kind := range []wire.ParamType{wire.ParamOutgoingReset, wire.ParamIncomingReset} {
		if lists := p.a.resetRequests(kind, pkts); len(lists) != 1 || len(lists[0]) != 0 {
			t.Errorf("%v: streams %v were named, want one request that names none", kind, lists)
		}
	}
}

// The first request that the peer denies ends the whole: the user learns which
// streams were reset, and all of them can be used again.
func TestResetThatIsDeniedInPart(t *testing.T) {
	p := connected(t, 262, &Config{OutStreams: 1000, InStreams: 1000})
	pkts := p.a.keepReconfigs()
	for _, sid := range []uint16{10, 450, 999} {
		p.a.send(sid, 10)
	}
	p.drive()
	// The peer changes its mind when two requests are done.
	done := 0
	p.net.drop = func(from *host, pkt []byte) bool {
		if from == p.z {
			for _, x := range reconfigs(pkt) {
				if r, err := wire.ParseReConfigResponse(x); err == nil && r.Result == wire.ReConfigPerformed {
					if done++; done == 2 {
						setField(&p.z.assoc.rc, "cfg.Deny", reconfig.Streams)
					}
				}
			}
		}
		return false
	}
	p.a.wantDone(p.a.must(p.a.assoc.ResetStreams(p.now, streamsFrom(0, 999))), requests.ErrDenied)
	if n := len(p.a.resetRequests(wire.ParamOutgoingReset, pkts)); n != 3 {
		t.Errorf("%d requests, want two that were performed and the one that was denied", n)
	}
	if got := p.a.resets(EventOutStreamsReset, false); len(got) != 1 || !slices.Equal(got[0], streamsFrom(0, 400)) {
		t.Errorf("%d notifications of streams that were reset, want one of streams 0 to 399", len(got))
	}
	if got := p.a.resets(EventOutStreamsReset, true); len(got) != 1 || !slices.Equal(got[0], streamsFrom(400, 599)) {
		t.Errorf("%d notifications of streams that were not reset, want one of streams 400 to 998", len(got))
	}
	for sid, want := range map[uint16]uint32{10: 0, 450: 1, 999: 1} {
		if got := p.a.numberOf(sid); got != want {
			t.Errorf("stream %d goes on with %d, want %d", sid, got, want)
		}
	}
}

// Streams of a part that was reset go on at once, those of later parts when they
// are reset, and what else the user asked for comes after; packets are lost, and
// the peer asks for something in between.
func TestResetInPartsAmongOtherRequests(t *testing.T) {
	for seed := range uint64(10) {
		p := newPair(t, 263+seed, &Config{OutStreams: 1000, InStreams: 1200, RTOMin: 100 * time.Millisecond})
		p.connect()
		p.net.drop = func(*host, []byte) bool { return p.rng.IntN(10) == 0 }
		for _, sid := range []uint16{0, 300, 500, 700} {
			p.a.send(sid, 1000)
			p.a.send(sid, 1000)
		}
		long := p.a.must(p.a.assoc.ResetStreams(p.now, streamsFrom(0, 900)))
		again := p.a.must(p.a.assoc.ResetStreams(p.now, []uint16{0, 950}))
		add := p.a.must(p.a.assoc.AddStreams(p.now, 5, 0))
		for _, sid := range []uint16{0, 300, 700} {
			p.a.send(sid, 1000) // number 0 of after the reset
		}
		theirs := p.z.must(p.z.assoc.ResetIncoming(p.now, []uint16{500, 701}))
		p.a.wantDone(long, nil)
		p.a.wantDone(again, nil)
		p.a.wantDone(add, nil)
		p.z.wantDone(theirs, nil)
		p.net.drop = nil
		p.drive()
		for sid, want := range map[uint16]uint32{0: 1, 300: 1, 500: 0, 700: 1, 950: 0, 1004: 0} {
			if got := p.a.numberOf(sid); got != want {
				t.Errorf("seed %d: stream %d goes on with %d, want %d", seed, sid, got, want)
			}
		}
	}
}
