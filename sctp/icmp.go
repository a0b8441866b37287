package sctp

import (
	"encoding/binary"
	"net/netip"

	"github.com/weftstack/weft/sctp/wire"
)

// tooBig takes in an ICMP message that says that a packet to remote, which begins
// with quoted, was larger than mtu on its way. RFC 9260, Section 10: its payload
// locates the association (ICMP5), and its verification tag has to be right
// (ICMP6). It is called with the lock of a socket held.
func (t *Transport) tooBig(remote netip.AddrPort, mtu int, quoted []byte) {
	if len(quoted) < 8 { // ports and tag
		return
	}
	a := t.demux.byPeer(peerKey{remote: remote, local: binary.BigEndian.Uint16(quoted), peer: binary.BigEndian.Uint16(quoted[2:])})
	if a == nil {
		return
	}
	tag, size := binary.BigEndian.Uint32(quoted[4:]), (mtu-udpOverhead(remote.Addr()))&^3
	if size < wire.HeaderLen {
		return
	}
	a.mu.Lock()
	ok := a.core.PacketTooBig(t.now(), remote, tag, size)
	w := a.unlock()
	if ok || w != 0 {
		go func() { a.settle(w | a.flush()) }()
	}
}
