package sctp

import (
	"fmt"
	"net/netip"
	"strings"
)

// The String methods of this package take no lock, so that they may be called from
// anywhere, upcalls and TransportConfig.Tap included.

// String names the transport by its local addresses.
func (t *Transport) String() string { return "sctp.Transport " + addrList(t.shownLocals()) }

// String names the endpoint by its local address.
func (e *Endpoint) String() string { return "sctp.Endpoint " + e.line() }

func (e *Endpoint) line() string {
	return fmt.Sprintf("%s/%d", addrList(e.t.shownLocals()), e.port)
}

// String names the association by the address of this side and the one that it was
// opened with, and tells whether it has ended.
func (a *Association) String() string { return "sctp.Association " + a.line() }

func (a *Association) line() string {
	peer := ""
	if a.t.conn == nil {
		peer = a.rare.origin.remote.String()
	}
	s := fmt.Sprintf("%s -> %s/%d", a.ep.line(), peer, a.rare.origin.peer)
	if a.gone.Load() {
		s += ", ended"
	}
	return s
}

// String names the connection as its association.
func (c *Conn) String() string { return "sctp.Conn " + c.a.line() }

// String names the listener by its address.
func (l *Listener) String() string { return "sctp.Listener " + l.e.line() }

// String names the association and the stream.
func (w *MessageWriter) String() string {
	return fmt.Sprintf("sctp.MessageWriter %s, stream %d", w.a.line(), w.opts.Stream)
}

// String names the transport.
func (w *Waiter) String() string { return "sctp.Waiter of " + w.t.String() }

// String names the transport.
func (w Wait) String() string {
	if w.t == nil {
		return "sctp.Wait"
	}
	return "sctp.Wait of " + w.t.String()
}

// String tells the length of the message fragment and where it belongs.
func (p *Piece) String() string {
	return fmt.Sprintf("sctp.Piece of %d bytes at %d of message %d, stream %d", len(p.Data), p.Offset, p.Message, p.Stream)
}

// String tells whether something is leased.
func (l Lease) String() string {
	if l.buf == nil {
		return "sctp.Lease of nothing"
	}
	return "sctp.Lease"
}

// shownAddrs is how many addresses of a transport are printed.
const shownAddrs = 2

// addrList is like Addr.String without the port, and cut short.
func addrList(list []netip.AddrPort) string {
	var b strings.Builder
	for i, a := range list {
		if i == shownAddrs {
			fmt.Fprintf(&b, ",and %d more", len(list)-i)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(a.String())
	}
	return b.String()
}
