package core

import (
	"encoding/binary"
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// followMTU has the association follow what path MTU discovery of path i changed: the size of
// packets, the timer, and whether a probe is due.
func (a *Assoc) followMTU(i int) {
	p := &a.paths[i]
	d := &p.plpmtu
	a.timers.setPath(timerMTU, i, d.Deadline())
	if d.Due() {
		a.slow |= slowHeartbeat
	}
	if !d.TakeResized() {
		return
	}
	changed := d.MTU() != p.mtu
	p.mtu = d.MTU()
	if a.tx.sb != nil {
		a.tx.watchSizes(i, p)
	}
	if !changed {
		return
	}
	p.cc.SetMTU(p.pmdcs())
	if p.count.packets == 0 {
		p.cc.Reset() // the initial window depends on the packet size
	}
	a.events.push(Event{Kind: EventPathMTU, Addr: p.Remote})
}

// watchSizes tells the scoreboard which packets of path i to watch.
func (t *sender) watchSizes(i int, p *path) {
	t.sb.WatchSizes(i, p.mtu, p.mtu-p.plpmtu.Unquestioned(), p.plpmtu.Wanted())
}

// startPMTU begins path MTU discovery on a confirmed path, if that is wanted.
func (a *Assoc) startPMTU(now clock.Time, i int) {
	if p := &a.paths[i]; p.par.discover && p.confirmed && a.state.heartbeating() {
		p.plpmtu.Start(now, p.par.maxMTU)
		a.followMTU(i)
	}
}

// pmtuTimeout handles the expiry of timerMTU of path i.
func (a *Assoc) pmtuTimeout(now clock.Time, i int) {
	p := &a.paths[i]
	if p.plpmtu.Timeout(now, a.state.heartbeating(), p.active) {
		p.hb.pending = p.par.hbInterval >= 0
	}
	a.followMTU(i)
}

// appendProbe appends the packet with the probe that is due on path i: see [pmtu.Discovery.Probe].
func (a *Assoc) appendProbe(b []byte, now clock.Time, i int) []byte {
	p, at := &a.paths[i], len(b)
	nonce := a.rng.uint64()
	size, pad := p.plpmtu.Probe(now, p.rto.Value(), nonce)
	var info [heartbeatInfoLen]byte
	binary.BigEndian.PutUint64(info[0:], nonce)
	binary.BigEndian.PutUint32(info[8:], p.id)
	binary.BigEndian.PutUint64(info[12:], uint64(now))
	b = wire.AppendHeader(b, a.header())
	if a.auth.Always {
		b = a.auth.Begin(b)
	}
	if pad {
		b = wire.AppendHeartbeat(b, wire.Heartbeat{Info: info[:]})
		b = wire.AppendPad(b, size-(len(b)-at))
	} else {
		long := make([]byte, size-(len(b)-at)-2*wire.ChunkHeaderLen)
		copy(long, info[:])
		b = wire.AppendHeartbeat(b, wire.Heartbeat{Info: long})
	}
	if a.auth.Always {
		a.auth.Finish(b[at+wire.HeaderLen:])
	}
	a.seal(b, at, i, false)
	p.count.probes++
	a.followMTU(i)
	return b
}

// probeAcked takes in a HEARTBEAT ACK of path i, if it answers a probe.
func (a *Assoc) probeAcked(now clock.Time, i int, nonce uint64) bool {
	if !a.paths[i].plpmtu.Acked(now, nonce) {
		return false
	}
	a.pathAlive(i)
	a.followMTU(i)
	return true
}

// checkSizes acts upon what became of large packets: it lets go of path MTUs that do not
// work any more, and takes note of sizes that do.
func (a *Assoc) checkSizes(now clock.Time) {
	for i := range a.paths {
		p := &a.paths[i]
		if p.gone {
			continue
		}
		if n := a.tx.sb.TakeProvenSize(i); n > 0 {
			p.plpmtu.DataAcked(now, p.rto.SRTT(), n)
			a.followMTU(i)
		}
		if a.tx.sb.BlackHole(i) {
			a.suspectHole(now, i)
		}
	}
}

// suspectHole is called when path i lost large packets several times in a row. If nothing
// has come back by it meanwhile, the path may be at fault rather than the size: a
// heartbeat, which is short, is to tell.
func (a *Assoc) suspectHole(now clock.Time, i int) {
	p := &a.paths[i]
	if p.aliveAt > a.tx.sb.BigLossesBegan(i) {
		a.blackHole(now, i)
	} else if p.mtu > p.plpmtu.Unquestioned() && !p.suspect {
		p.suspect, p.hb.pending = true, true
		a.slow |= slowHeartbeat
	}
}

// blackHole gives up the path MTU of path i: large packets do not arrive any more.
func (a *Assoc) blackHole(now clock.Time, i int) {
	p := &a.paths[i]
	p.suspect = false
	if p.plpmtu.BlackHole(now, p.rto.SRTT()) {
		p.count.holes++
		a.followMTU(i)
	}
}

// PacketTooBig takes in an ICMP message that says that a packet with a
// verification tag was longer than size on the path to an address. It reports
// whether that changed anything; PollTransmit is due then. RFC 9260, Section 10,
// ICMP6: the tag must be the peer's.
func (a *Assoc) PacketTooBig(now clock.Time, addr netip.AddrPort, tag uint32, size int) bool {
	i := a.pathByAddr(address.Unmap(addr))
	if i < 0 || tag == 0 || tag != a.peer.tag || !a.state.heartbeating() {
		return false
	}
	p := &a.paths[i]
	changed, hole := p.plpmtu.PacketTooBig(now, p.rto.SRTT(), size)
	if hole {
		p.count.holes++
	}
	a.followMTU(i)
	return changed
}

// fixMTU sets the size of the largest packet for path i and stops discovery.
func (a *Assoc) fixMTU(i, size int) {
	p := &a.paths[i]
	p.par.discover = false
	p.plpmtu.Fix(clampMTU(size))
	a.followMTU(i)
}

// SetPathMTU fixes the size of the largest SCTP packet for the path to addr. It
// returns ErrPath if there is no such path.
func (a *Assoc) SetPathMTU(addr netip.AddrPort, size int) error {
	i := a.pathByAddr(address.Unmap(addr))
	if i < 0 {
		return ErrPath
	}
	a.fixMTU(i, size)
	a.recheckSlow()
	return nil
}

// SetPathLimit tells the size of the largest SCTP packet that the interface
// towards addr takes: where path MTU discovery ends. It returns ErrPath if there
// is no such path. PollTransmit is due afterwards.
func (a *Assoc) SetPathLimit(now clock.Time, addr netip.AddrPort, size int) error {
	i := a.pathByAddr(address.Unmap(addr))
	if i < 0 {
		return ErrPath
	}
	p := &a.paths[i]
	if size = clampMTU(size); size == p.par.maxMTU {
		return nil
	}
	p.par.maxMTU = size
	if p.plpmtu.On() {
		a.startPMTU(now, i)
	} else if p.mtu > size {
		p.plpmtu.Fix(size)
		a.followMTU(i)
	}
	return nil
}

// mtuProbe returns a path on which a probe is due.
func (a *Assoc) mtuProbe() int {
	for i := range a.paths {
		if p := &a.paths[i]; p.plpmtu.Due() && p.active && a.state.heartbeating() {
			return i
		}
	}
	return -1
}
