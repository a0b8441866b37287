package sctp_test

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
)

// ootbPacket returns a packet with a DATA chunk for nobody.
func ootbPacket() []byte {
	b := wire.AppendHeader(nil, wire.Header{SrcPort: 1, DstPort: 2, VTag: 0x12345678})
	b = wire.AppendData(b, wire.Data{TSN: 1, Begin: true, End: true, Payload: []byte("abcd")})
	wire.SetChecksum(b)
	return b
}

// RFC 6951, Section 5.3: the UDP ports are the encapsulation ports, not those of
// SCTP, and the payload is the SCTP packet with its checksum and nothing else.
func TestDatagramIsThePacket(t *testing.T) {
	peer, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	tr := newTransport(t, loopback())
	e, err := tr.Listen(4711, &sctp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	to := peer.LocalAddr().(*net.UDPAddr).AddrPort()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.Connect(ctx, sctp.Addr{Addrs: []netip.AddrPort{to}, Port: 4712})
	}()
	defer func() { cancel(); <-done }()
	peer.SetReadDeadline(time.Now().Add(5 * time.Minute))
	buf := make([]byte, 1<<16)
	n, from, err := peer.ReadFromUDPAddrPort(buf)
	if err != nil {
		t.Fatal(err)
	}
	if want := tr.LocalAddrs()[0]; from != want {
		t.Errorf("the datagram comes from %v, want %v", from, want)
	}
	h, err := wire.ParseHeader(buf[:n])
	if err != nil || h.SrcPort != 4711 || h.DstPort != 4712 || !wire.VerifyChecksum(buf[:n]) {
		t.Errorf("header %+v, %v", h, err)
	}
	it := wire.NewChunks(buf[wire.HeaderLen:n])
	if !it.Next() || it.Chunk().Type != wire.ChunkInit || len(it.Rest()) != 0 {
		t.Fatalf("not an INIT alone: %s", wire.Describe(buf[:n]))
	}
	if want := wire.HeaderLen + wire.Padded(len(it.Chunk().Raw)); n != want {
		t.Errorf("a datagram of %d bytes, want %d", n, want)
	}
}
