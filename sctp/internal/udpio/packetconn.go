package udpio

import (
	"net"
	"net/netip"
	"sync"

	"github.com/weftstack/weft/sctp/internal/slab"
)

// addrPortConn is what *net.UDPConn and the links of sctptest have.
type addrPortConn interface {
	ReadFromUDPAddrPort(b []byte) (n int, addr netip.AddrPort, err error)
	WriteToUDPAddrPort(b []byte, addr netip.AddrPort) (int, error)
}

// batchConn is what packet connections may have to carry batches, local
// addresses and ECN codepoints.
type batchConn interface {
	ReadTrain(b []byte) (n, size int, local netip.Addr, remote netip.AddrPort, ecn uint8, err error)
	WriteTrain(b []byte, size int, local netip.Addr, remote netip.AddrPort, ecn uint8) error
	WriteFragmented(b []byte, local netip.Addr, remote netip.AddrPort, ecn uint8) error
}

// packetConn is a Conn on any net.PacketConn: one datagram per call.
type packetConn struct {
	pc    net.PacketConn
	ap    addrPortConn  // nil if pc does not have it
	batch batchConn     // nil if pc does not have it
	df    func(on bool) // sets DF, nil if pc cannot
	local netip.AddrPort
	ip    bool // of SCTP over IP
}

// FromPacketConn returns a Conn on pc, which it owns from then on. A
// *net.UDPConn becomes a socket with all that the system offers.
func FromPacketConn(pc net.PacketConn, o Options) (Conn, error) {
	switch pc := pc.(type) {
	case *net.UDPConn:
		return fromUDPConn(pc, o)
	case *net.IPConn:
		return fromIPConn(pc, o)
	}
	return newPacketConn(pc), nil
}

func newPacketConn(pc net.PacketConn) *packetConn {
	c := &packetConn{pc: pc, local: addrPortOf(pc.LocalAddr())}
	c.ap, _ = pc.(addrPortConn)
	c.batch, _ = pc.(batchConn)
	_, c.ip = pc.(ipConn)
	return c
}

func addrPortOf(a net.Addr) netip.AddrPort {
	switch a := a.(type) {
	case *net.UDPAddr:
		ap := a.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	case *net.IPAddr:
		ip, _ := netip.AddrFromSlice(a.IP)
		return netip.AddrPortFrom(ip.Unmap().WithZone(a.Zone), 0)
	case nil:
		return netip.AddrPort{}
	default:
		ap, _ := netip.ParseAddrPort(a.String())
		return ap
	}
}

func (c *packetConn) Read(mu sync.Locker, bufs []*slab.Buf, metas []Meta) (int, error) {
	buf, m := bufs[0], &metas[0]
	buf.B = buf.B[:slab.Size]
	var n int
	var err error
	*m = Meta{}
	switch {
	case c.batch != nil:
		n, m.SegSize, m.Local, m.Remote, m.ECN, err = c.batch.ReadTrain(buf.B)
	case c.ap != nil:
		n, m.Remote, err = c.ap.ReadFromUDPAddrPort(buf.B)
	default:
		var from net.Addr
		n, from, err = c.pc.ReadFrom(buf.B)
		m.Remote = addrPortOf(from)
	}
	if err != nil {
		return 0, err
	}
	m.Remote = netip.AddrPortFrom(m.Remote.Addr().Unmap(), m.Remote.Port())
	buf.B = buf.B[:n]
	if m.SegSize == 0 {
		m.SegSize = n
	}
	if !m.Local.IsValid() && !c.local.Addr().IsUnspecified() {
		m.Local = c.local.Addr()
	}
	mu.Lock()
	return 1, nil
}

func (c *packetConn) TryRead([]*slab.Buf, []Meta) (int, error) { return 0, nil }

// Poll implements Conn.
func (c *packetConn) Poll([]*slab.Buf, []Meta) (int, error) { return 0, nil }
func (c *packetConn) CanPoll() bool                         { return false }

// WriteGather implements Conn.
func (c *packetConn) WriteGather(b []byte, holes []slab.IOVec, m *Meta) error {
	slab.Fill(b, holes)
	return c.Write(b, m)
}

func (c *packetConn) Polled(bool) bool          { return true }
func (c *packetConn) Unwatch()                  {}
func (c *packetConn) Segments() int             { return MaxSegments }
func (c *packetConn) Direct() bool              { return c.ip }
func (c *packetConn) LocalAddr() netip.AddrPort { return c.local }
func (c *packetConn) Info() Info                { return Info{} }
func (c *packetConn) Close() error              { return c.pc.Close() }

func (c *packetConn) Write(b []byte, m *Meta) error {
	if c.batch != nil {
		if m.Fragment {
			return c.batch.WriteFragmented(b, m.Local, m.Remote, m.ECN)
		}
		return c.batch.WriteTrain(b, m.SegSize, m.Local, m.Remote, m.ECN)
	}
	if m.Fragment && c.df != nil {
		c.df(false)
		defer c.df(true)
	}
	var first error
	for len(b) > 0 {
		n := len(b)
		if m.SegSize > 0 {
			n = min(n, m.SegSize)
		}
		if err := c.write(b[:n], m); err != nil && first == nil {
			first = err
		}
		b = b[n:]
	}
	return first
}

func (c *packetConn) write(b []byte, m *Meta) error {
	var err error
	if c.ap != nil {
		_, err = c.ap.WriteToUDPAddrPort(b, m.Remote)
	} else {
		_, err = c.pc.WriteTo(b, net.UDPAddrFromAddrPort(m.Remote))
	}
	return err
}
