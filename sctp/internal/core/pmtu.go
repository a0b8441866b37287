package core

import (
	"encoding/binary"
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/wire"
)

// followMTU has the association follow what path MTU discovery of path i changed: the size of
// packets, the timer, and whether a probe is due.
func (r *reachability) followMTU(i int) {
	p := &r.paths[i]
	d := &p.plpmtu
	r.timers.StartPath(timer.PathMTU, i, d.Deadline())
	if d.Due() {
		r.slow |= slowHeartbeat
	}
	if !d.TakeResized() {
		return
	}
	changed := d.MTU() != p.mtu
	p.mtu = d.MTU()
	if r.sb != nil {
		r.watchSizes(i)
	}
	if !changed {
		return
	}
	p.cc.SetMTU(p.pmdcs())
	if p.count.packets == 0 {
		p.cc.Reset() // the initial window depends on the packet size
	}
	r.events.push(Event{Kind: EventPathMTU, Addr: p.Remote})
}

// watchSizes tells the scoreboard which packets of path i to watch.
func (r *reachability) watchSizes(i int) {
	p := &r.paths[i]
	r.sb.WatchSizes(i, p.mtu, p.mtu-p.plpmtu.Unquestioned(), p.plpmtu.Wanted())
}

// startPMTU begins path MTU discovery on a confirmed path, if that is wanted.
func (r *reachability) startPMTU(now clock.Time, i int) {
	if p := &r.paths[i]; p.par.discover && p.confirmed && r.state.heartbeating() {
		p.plpmtu.Start(now, p.par.maxMTU)
		r.followMTU(i)
	}
}

// pmtuTimeout handles the expiry of timer.PathMTU of path i.
func (r *reachability) pmtuTimeout(now clock.Time, i int) {
	p := &r.paths[i]
	if p.plpmtu.Timeout(now, r.state.heartbeating(), p.active) {
		p.hb.pending = p.par.hbInterval >= 0
	}
	r.followMTU(i)
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
func (r *reachability) probeAcked(now clock.Time, i int, nonce uint64) bool {
	if !r.paths[i].plpmtu.Acked(now, nonce) {
		return false
	}
	r.pathAlive(i)
	r.followMTU(i)
	return true
}

// checkSizes acts upon what became of large packets: it lets go of path MTUs that do not
// work any more, and takes note of sizes that do.
func (r *reachability) checkSizes(now clock.Time) {
	for i := range r.paths {
		p := &r.paths[i]
		if p.gone {
			continue
		}
		if n := r.sb.TakeProvenSize(i); n > 0 {
			p.plpmtu.DataAcked(now, p.rto.SRTT(), n)
			r.followMTU(i)
		}
		if r.sb.BlackHole(i) {
			r.suspectHole(now, i)
		}
	}
}

// suspectHole is called when path i lost large packets several times in a row. If nothing
// has come back by it meanwhile, the path may be at fault rather than the size: a
// heartbeat, which is short, is to tell.
func (r *reachability) suspectHole(now clock.Time, i int) {
	p := &r.paths[i]
	if p.aliveAt > r.sb.BigLossesBegan(i) {
		r.blackHole(now, i)
	} else if p.mtu > p.plpmtu.Unquestioned() && !p.suspect {
		p.suspect, p.hb.pending = true, true
		r.slow |= slowHeartbeat
	}
}

// blackHole gives up the path MTU of path i: large packets do not arrive any more.
func (r *reachability) blackHole(now clock.Time, i int) {
	p := &r.paths[i]
	p.suspect = false
	if p.plpmtu.BlackHole(now, p.rto.SRTT()) {
		p.count.holes++
		r.followMTU(i)
	}
}

// PacketTooBig takes in an ICMP message that says that a packet with a
// verification tag was longer than size on the path to an address. It reports
// whether that changed anything; PollTransmit is due then. RFC 9260, Section 10,
// ICMP6: the tag must be the peer's.
func (r *reachability) PacketTooBig(now clock.Time, addr netip.AddrPort, tag uint32, size int) bool {
	i := r.pathByAddr(address.Unmap(addr))
	if i < 0 || tag == 0 || tag != r.peer.tag || !r.state.heartbeating() {
		return false
	}
	p := &r.paths[i]
	changed, hole := p.plpmtu.PacketTooBig(now, p.rto.SRTT(), size)
	if hole {
		p.count.holes++
	}
	r.followMTU(i)
	return changed
}

// fixMTU sets the size of the largest packet for path i and stops discovery.
func (r *reachability) fixMTU(i, size int) {
	p := &r.paths[i]
	p.par.discover = false
	p.plpmtu.Fix(clampMTU(size))
	r.followMTU(i)
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
func (r *reachability) SetPathLimit(now clock.Time, addr netip.AddrPort, size int) error {
	i := r.pathByAddr(address.Unmap(addr))
	if i < 0 {
		return ErrPath
	}
	p := &r.paths[i]
	if size = clampMTU(size); size == p.par.maxMTU {
		return nil
	}
	p.par.maxMTU = size
	if p.plpmtu.On() {
		r.startPMTU(now, i)
	} else if p.mtu > size {
		p.plpmtu.Fix(size)
		r.followMTU(i)
	}
	return nil
}

// mtuProbe returns a path on which a probe is due.
func (r *reachability) mtuProbe() int {
	for i := range r.paths {
		if p := &r.paths[i]; p.plpmtu.Due() && p.active && r.state.heartbeating() {
			return i
		}
	}
	return -1
}
