package sctp

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/wire"
)

// tooBig takes in an ICMP message that says that a packet to remote, which begins
// with quoted, was larger than mtu on its way. RFC 9260, Section 10: its payload
// locates the association (ICMP5), and its verification tag has to be right
// (ICMP6). It is called with the lock of a socket held.
func (t *Transport) tooBig(remote netip.AddrPort, mtu int, quoted []byte) {
	a, tag := t.locate(remote, quoted)
	size := (mtu - overhead(remote)) &^ 3
	if a == nil || size < wire.HeaderLen {
		return
	}
	a.mu.Lock()
	ok := a.core.PacketTooBig(t.now(), remote, tag, size)
	w := a.drainAndUnlock()
	if ok || w != 0 {
		go func() { a.runCallbacks(w | a.flush()) }()
	}
}

// noProtocol takes in an ICMP message that says that remote has no SCTP over IP (RFC
// 9260, Section 10, ICMP8). It is called with the lock of a socket held.
func (t *Transport) noProtocol(remote netip.AddrPort, quoted []byte) {
	a, _ := t.locate(remote, quoted)
	if a == nil {
		return
	}
	a.mu.Lock()
	ok := a.core.ProtocolUnreachable(quoted)
	if ok {
		a.rare.cause = &refusedError{fmt.Errorf("ICMP protocol unreachable: %v has no SCTP", remote.Addr())}
	}
	w := a.drainAndUnlock()
	if ok || w != 0 {
		go func() { a.runCallbacks(w | a.flush()) }()
	}
}

// noPort takes in an ICMP message that says that nothing uses the UDP port of remote
// (RFC 6951, Section 5.5: like Protocol Unreachable). It is called with the lock of a
// socket held.
func (t *Transport) noPort(remote netip.AddrPort, quoted []byte) {
	a, _ := t.locate(remote, quoted)
	if a == nil {
		return
	}
	a.mu.Lock()
	now := t.now()
	ok := a.core.PortUnreachable(now, remote, quoted)
	if ok && a.core.State() == core.Closed {
		a.rare.cause = &refusedError{fmt.Errorf("ICMP port unreachable: nothing uses UDP port %d of %v", remote.Port(), remote.Addr())}
	}
	w := a.drainAndUnlock()
	if ok || w != 0 {
		go func() { a.runCallbacks(w | a.flush()) }()
	}
}

// locate returns the association that sent a packet to remote, nil if there is none,
// and the verification tag of the packet.
func (t *Transport) locate(remote netip.AddrPort, quoted []byte) (a *Association, tag uint32) {
	if len(quoted) < 8 { // ports and tag
		return nil, 0
	}
	tag = binary.BigEndian.Uint32(quoted[4:])
	k := peerKey{remote: remote, local: binary.BigEndian.Uint16(quoted), peer: binary.BigEndian.Uint16(quoted[2:])}
	return t.demux.byPeerTag(k, tag), tag
}
