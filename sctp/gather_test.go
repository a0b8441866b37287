package sctp_test

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// stallConn is a socket that, once told to, takes its time to send datagrams.
type stallConn struct {
	net.PacketConn
	stalls atomic.Bool
	stall  chan struct{}
}

func (c *stallConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if c.stalls.Load() && len(b) > 4096 {
		<-c.stall
	}
	return c.PacketConn.WriteTo(b, to)
}

// A message that a batch under way refers to stays the association's until the
// batch has left, even if that ends meanwhile.
func TestNoMessageIsReleasedUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		pc, err := n.NewHost(addrA).ListenPacket(netip.AddrPortFrom(netip.MustParseAddr(addrA), sctp.DefaultUDPPort).String())
		if err != nil {
			t.Fatal(err)
		}
		slow := &stallConn{PacketConn: pc, stall: make(chan struct{})}
		p := &pair{t: t, net: n, ta: newTransport(t, sctp.TransportConfig{Conns: []net.PacketConn{slow}}), tb: memTransport(t, n.NewHost(addrB))}
		p.connect(&sctp.Config{MTU: 9000}, &sctp.Config{MTU: 9000})

		slow.stalls.Store(true)
		own := newOwner()
		go func() {
			if err := p.a.Send(context.Background(), make([]byte, 8000), sctp.SendOptions{Owner: own}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		go p.a.Abort("over")
		synctest.Wait()
		if own.n.Load() > 0 {
			t.Error("the message was released while it was being sent")
		}
		select {
		case <-p.a.Done():
			t.Error("the association ended before its message was released")
		default:
		}
		close(slow.stall)
		<-own.ch
		<-p.a.Done()
	})
}
