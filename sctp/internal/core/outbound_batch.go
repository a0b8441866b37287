package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/tx"
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
			*a.tx.openBatch = openBatch{tx: tx, n: len(buf), bytes: bytes + a.tx.sb.Flight(0), chunks: chunks + a.tx.sb.FlightChunks(0),
				header: [checksumField]byte(header[:])}
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

// restIsNewData reports whether the packets of a batch behind the first, on path i, hold
// nothing but new data, so that nextData may build them: all else that was due is in the
// first one, and more falls due with other calls only. A SACK that need not leave yet may
// wait, if bundlesSack said so or an earlier call began the batch.
func (a *Assoc) restIsNewData(now clock.Time, i int, tx *Transmit, begun bool) bool {
	if p := &a.paths[i]; a.slow&slowBatch != 0 || !p.usable() || tx.Local != p.home {
		return false
	}
	if a.tx.spread() || i != a.dataPath() || tx.ECN != a.dataECN() || !begun && a.rx.sack.Pending() && !a.tx.sackAtEnd || a.authDue(i) {
		return false
	}
	_, due := a.duePath(now, i)
	return !due
}

// firstData appends the first packet of a batch if new data, with a SACK if one waits, is all
// that there is to send. nextPacket would append the same, and take longer to find that out.
// It reports false if nextPacket has to be asked.
func (a *Assoc) firstData(now clock.Time, b []byte) (_ []byte, p built, ok bool) {
	t := &a.tx
	if !t.q.Pending() || t.q.Routed() || a.slow != 0 {
		return b, p, false
	}
	t.q.SendAnywhere()
	var header [wire.HeaderLen]byte
	p.Tuple = a.paths[0].Tuple
	b, p.ecn, ok = a.nextData(now, b, 0, wire.AppendHeader(header[:0], a.header()))
	return b, p, ok
}

// nextData appends a packet of new data for path i with the common header given: the
// first of a batch, or one after others for which restIsNewData held. A SACK goes along with the
// first or, if it waited, the last. It reports false, and appends nothing, if nextPacket
// has to see what is to be sent.
func (a *Assoc) nextData(now clock.Time, b []byte, i int, header []byte) (_ []byte, ecn uint8, ok bool) {
	t, p, at := &a.tx, &a.paths[i], len(b)
	sb, end, full := t.sb, at+p.mtu, p.pmdcs()
	if !sb.OnlyNew() || !t.q.Pending() || !a.tx.mayFill(now, i) || !a.tx.windowOpen(now, i) {
		return b, 0, false
	}
	b = append(b, header...)
	if (t.segSize == 0 || t.sackAtEnd) && a.rx.sack.Pending() && a.bundlesSack(now) {
		b = a.appendAck(b, end-len(b))
	}
	least, begin := t.q.HeaderLen(), len(b)
	for ok := true; ok && end-len(b) > least; {
		b, ok = sb.AppendNew(b, now, i, tx.Room{Space: end - len(b), Full: full})
	}
	t.q.EndPacket()
	switch {
	case len(b) > begin:
		a.dataSent(now, i, len(b)-begin, 1)
		ecn = a.dataECN()
	case len(b)-at == wire.HeaderLen:
		return b[:at], 0, false
	}
	a.seal(b, at, i, false)
	return b, ecn, true
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
