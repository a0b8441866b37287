package core

import "github.com/weftstack/weft/sctp/internal/core/pace"

// Corking. On a path with a round-trip time of less than PaceMinRTT that is busy anyway, a
// short GSO batch waits for more to send, as TCP defers segmentation offload: each batch
// costs a system call and a wake-up of the peer, whatever its size. It waits until
// acknowledgements, which come at once there, have drained what is in flight to corkMinBytes;
// then it goes as it is. If they do not come it goes as a tail loss probe, so nothing is
// corked without RACK.
const (
	// corkMinBytes is how many bytes in flight keep a path busy: a full batch.
	corkMinBytes = 64 << 10
	// corkMinChunks is how many chunks in flight do, for packets that would not be
	// full.
	corkMinChunks = 32
	// corkStreamChunks is how many chunks in flight tell of a stream of small messages:
	// then packets go in batches of half of what is in flight.
	corkStreamChunks = 128
	// corkMinMessages is how many messages must be under way: the end of a single
	// message need not wait for another one. Two do where the last corkPipelined messages
	// were sent while others were under way: then the next one is to be expected.
	corkMinMessages = 4
	corkPipelined   = 16
	// corkMinPackets is how many packets with data must have left since the last
	// SACK: so many are acknowledged at once, while a single one may be after 200
	// ms (RFC 9260, Section 6.2), however much is in it.
	corkMinPackets = 4
)

// cork says which new data waits.
type cork uint8

const (
	corkNone cork = iota
	corkTail      // what does not fill a packet; the batch stays open, see openBatch
	corkAll
)

// shouldCork is ShouldCork for data that goes to path i.
func (t *sender) shouldCork(i, segs, room int) bool {
	bytes, chunks := 0, 0
	if o := t.openBatch; o != nil {
		bytes, chunks = o.bytes, o.chunks
	}
	unsent := t.q.Unsent() + int64(bytes)
	if unsent == 0 || t.cfg.NoRACK || t.spread() || t.q.Routed() || t.sb.ZeroWindow() {
		return false
	}
	if t.sb.Permit() {
		return false // it is the probe for the loss of what is in flight
	}
	if n := t.q.Messages(); n < 2 || n < corkMinMessages && t.pipelined < corkPipelined {
		return false
	}
	if t.dataPackets() < t.sackAt+corkMinPackets {
		return false
	}
	p := t.path(i)
	if rtt := t.baseRTT(i); rtt == 0 || rtt >= pace.MinRTT {
		return false
	}
	full := int64(p.pmdcs())
	if unsent < full && t.sb.FlightChunks(i)-chunks >= corkMinChunks {
		return true
	}
	segs = max(min(segs, room/p.mtu), 1)
	batch, flight := full*int64(segs), t.sb.Flight(i)-bytes
	if flight < corkMinBytes {
		return t.sb.FlightChunks(i)-chunks >= corkStreamChunks && unsent < min(batch, int64(flight/2))
	}
	return unsent < batch
}

// dataPackets returns how many packets with data were sent.
func (t *sender) dataPackets() (n uint64) {
	if o := t.openBatch; o != nil {
		n = -uint64(o.tx.Segs)
	}
	for i := range *t.paths {
		n += t.path(i).count.packets
	}
	return n
}
