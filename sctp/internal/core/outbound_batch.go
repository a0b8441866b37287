package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// PollTransmit appends up to maxSegs datagrams of equal size to buf, of which
// the last may be shorter, all for one destination; it returns the extended
// slice and what is in it. It reports false when there is nothing to send now;
// it is to be called again after anything else was, and on NextTimeout. No more
// datagrams than buf has capacity for are appended, save for the first.
//
// A packet is begun, each part of the association adds what it has for the
// packet's path, and if that is nothing the packet is dropped again.
func (a *Assoc) PollTransmit(now clock.Time, buf []byte, maxSegs int) (out []byte, tx Transmit, ok bool) {
	if out, tx, ok = a.pollTransmit(now, buf, maxSegs); !a.tx.deferredSack.on {
		return out, tx, ok
	}
	if ok {
		tx.Last = tx.Last && !a.tx.q.Pending() // the next call finds the room that the SACK makes
		return out, tx, true
	}
	a.ProcessDeferredSack() // it may make room for what waits
	return a.pollTransmit(now, buf, maxSegs)
}

func (a *Assoc) pollTransmit(now clock.Time, buf []byte, maxSegs int) (out []byte, tx Transmit, ok bool) {
	start, first := len(buf), -1
	a.tx.segSize, a.tx.sackAtEnd = 0, false
	open := a.tx.sb != nil && a.tx.sb.Retaining()
	if a.tx.cork = corkNone; a.ShouldCork(maxSegs, cap(buf)-len(buf)) {
		if a.tx.cork = corkAll; open {
			a.tx.cork = corkTail
		}
	}
	largest := a.largestPacket()
	fast, full := false, false
	var header [wire.HeaderLen]byte
	var p built           // the last packet; nextData's differ from it in their data only
	var next seq.TSN      // the first TSN in the open batch
	bytes, chunks := 0, 0 // of that
	late := false         // it may not stay open
	if open {
		next = a.tx.sb.FirstUnsent()
		if a.BatchOpen() {
			o := a.tx.openBatch
			buf, tx, fast = a.resumeBatch(now)
			bytes, chunks = o.bytes, o.chunks
			start, first, p = 0, 0, built{Tuple: tx.Tuple, ecn: tx.ECN}
			a.tx.segSize = tx.SegSize
			copy(header[:], o.header[:])
			if *o = (openBatch{}); !fast {
				a.tx.closeBatch(&tx)
				a.stats.PacketsSent += uint64(tx.Segs)
				return buf, tx, true
			}
		} else {
			late = a.rx.sack.Due(now) // it goes along
		}
		bytes -= a.tx.sb.Flight(0)
		chunks -= a.tx.sb.FlightChunks(0)
	}
	for tx.Segs < max(maxSegs, 1) {
		// The next packet may be larger than the first, and then goes by itself: it
		// has to fit, too.
		if tx.Segs > 0 && cap(buf)-len(buf) < largest {
			tx.Last = a.Idle(now) && !a.tx.spread()
			full = true
			break
		}
		if fast {
			var n int
			if buf, n = a.bulkData(now, buf, first, header[:], tx.SegSize, maxSegs-tx.Segs, largest); n > 0 {
				tx.Segs += n
				continue
			}
		}
		at := len(buf)
		ok = false
		switch {
		case tx.Segs == 0:
			buf, p, ok = a.firstData(now, buf)
		case fast:
			buf, _, ok = a.nextData(now, buf, first, header[:])
		}
		if !ok && (tx.Segs == 0 || !a.Idle(now)) {
			buf, p, ok = a.nextPacket(now, buf)
			a.recheckSlow()
		}
		if !ok {
			// With multipath another path may come next. A SACK that waited for the end of the batch
			// may leave with the next packet for which data waits, even if the peer's window is too
			// small for that data.
			tx.Last = tx.Segs > 0 && !a.tx.spread() && !(a.tx.sackAtEnd && a.rx.sack.Pending())
			break
		}
		n := len(buf) - at
		switch {
		case tx.Segs == 0:
			first = p.path
			tx = Transmit{Tuple: p.Tuple, ECN: p.ecn, DSCP: a.dscpOf(&p), SegSize: n, Fragment: p.oversize}
			a.tx.segSize = n
		case n > tx.SegSize || p.oversize || p.path != first || p.path < 0 || p.ecn != tx.ECN:
			// It does not go with the others: keep it for the next call.
			a.tx.sb.FillIOVecs(buf, at)
			a.tx.carry.put(p, buf[at:])
			a.slow |= slowReplies
			buf = buf[:at]
			if open {
				a.tx.closeBatch(&tx)
			}
			a.stats.PacketsSent += uint64(tx.Segs)
			return buf, tx, true
		}
		tx.Segs++
		if n < tx.SegSize || p.path < 0 || p.oversize {
			full = true
			break
		}
		if !a.tx.q.Pending() && a.Idle(now) {
			tx.Last = !a.tx.spread()
			break
		}
		if tx.Segs == 1 && a.restIsNewData(now, first, &tx, false) {
			fast = true
			copy(header[:], buf[start:start+checksumField])
		}
	}
	if open && tx.Segs > 0 {
		if n := a.tx.sb.NextTSN().Sub(next); fast && !full && !late && n > 0 && tx.Segs < maxSegs && a.tx.cork == corkTail {
			if a.tx.openBatch == nil {
				a.tx.openBatch = new(openBatch)
			}
			*a.tx.openBatch = openBatch{tx: tx, n: len(buf), bytes: bytes + a.tx.sb.Flight(0),
				chunks: chunks + a.tx.sb.FlightChunks(0), header: [checksumField]byte(header[:])}
			a.tx.sb.SetUnsent(n)
			return buf[:start], Transmit{}, false
		}
		a.tx.closeBatch(&tx)
	}
	a.stats.PacketsSent += uint64(tx.Segs)
	return buf, tx, len(buf) > start
}

// smallPacket is more than an acknowledgement takes that reports no gaps.
const smallPacket = 256

// Room returns how large the next packet may be: small if there is nothing to send
// but an acknowledgement.
func (a *Assoc) Room() int {
	if a.onlyAcks() && a.rx.reasm != nil && !a.rx.tsns.HasGaps() && len(a.rx.tsns.Duplicates()) == 0 {
		return smallPacket
	}
	return a.largestPacket()
}

// Idle reports whether PollTransmit has certainly nothing to send. It is cheaper than
// PollTransmit, and errs on the safe side: it may report false although there is
// nothing to send.
func (a *Assoc) Idle(now clock.Time) bool { return !a.rx.sack.Due(now) && a.onlyAcks() }

// onlyAcks is Idle that does not look at whether a SACK is due.
func (a *Assoc) onlyAcks() bool {
	t := &a.tx
	return a.slow&slowToSend == 0 && !t.q.Pending() && !t.q.HasUnblocked() && !(t.busy && t.q.Empty()) &&
		!t.sb.HasRtx() && !t.sb.ForwardDue() && !a.BatchOpen() && a.paths[a.dataPath()].confirmed
}

// largestPacket returns the size of the largest packet that PollTransmit makes,
// save for one that has to be fragmented.
func (r *reachability) largestPacket() (n int) {
	for i := range r.paths {
		n = max(n, r.paths[i].mtu)
	}
	return n
}
