package sctp_test

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/pion/logging"
	"github.com/pion/transport/v3/vnet"
	"github.com/weftstack/weft/sctp"
)

// natWorld is a server on a wide area network, and a client behind a router that
// translates addresses and ports.
type natWorld struct {
	wan            *vnet.Router
	server, client *sctp.Transport
}

const (
	natServer = "1.2.3.4"
	natRouter = "1.2.3.100"
	natClient = "192.168.0.7"
)

func newNATWorld(t *testing.T, kind vnet.NATType) *natWorld {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	wan, err := vnet.NewRouter(&vnet.RouterConfig{CIDR: "1.2.3.0/24", LoggerFactory: logging.NewDefaultLoggerFactory()})
	check(err)
	lan, err := vnet.NewRouter(&vnet.RouterConfig{
		StaticIPs: []string{natRouter}, CIDR: "192.168.0.0/24", NATType: &kind, LoggerFactory: logging.NewDefaultLoggerFactory(),
	})
	check(err)
	host := func(r *vnet.Router, ip string) *vnet.Net {
		n, err := vnet.NewNet(&vnet.NetConfig{StaticIPs: []string{ip}})
		check(err)
		check(r.AddNet(n))
		return n
	}
	server, client := host(wan, natServer), host(lan, natClient)
	check(wan.AddRouter(lan))
	check(wan.Start())
	t.Cleanup(func() { wan.Stop() })
	listen := func(n *vnet.Net, addr string) *sctp.Transport {
		pc, err := n.ListenPacket("udp4", addr)
		check(err)
		return newTransport(t, sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})
	}
	return &natWorld{wan, listen(server, natServer+":9899"), listen(client, natClient+":9899")}
}

// RFC 6951, Section 5.4: the server answers to the port from which valid packets
// come, which a NAT chose; Section 3.1: that is what encapsulation is for.
func TestAssociationThroughNAT(t *testing.T) {
	for _, tt := range []struct {
		name string
		kind vnet.NATType
	}{
		{"cone", vnet.NATType{MappingBehavior: vnet.EndpointIndependent, FilteringBehavior: vnet.EndpointIndependent}},
		{"symmetric", vnet.NATType{MappingBehavior: vnet.EndpointAddrPortDependent, FilteringBehavior: vnet.EndpointAddrPortDependent}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newNATWorld(t, tt.kind)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			le, err := w.server.Listen(serverPort, nil)
			if err != nil {
				t.Fatal(err)
			}
			ce, err := w.client.Listen(0, nil)
			if err != nil {
				t.Fatal(err)
			}
			peer, err := sctp.ParseAddr(natServer + ":9899/5000")
			if err != nil {
				t.Fatal(err)
			}
			a, err := ce.Connect(ctx, peer)
			if err != nil {
				t.Fatal(err)
			}
			b, err := le.Accept(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if from := b.RemoteAddr().Addrs[0].Addr().String(); from != natRouter {
				t.Errorf("the server sees the client at %s, want the router %s", from, natRouter)
			}
			for _, dir := range []struct{ from, to *sctp.Association }{{a, b}, {b, a}} {
				msg := pattern(100_000)
				if err := dir.from.Send(ctx, msg, sctp.SendOptions{}); err != nil {
					t.Fatal(err)
				}
				got, _ := recvMessage(t, dir.to, make([]byte, len(msg)))
				if !bytes.Equal(got, msg) {
					t.Error("the message was changed on its way")
				}
			}
			if err := a.Shutdown(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

var _ net.PacketConn = (*vnet.UDPConn)(nil)
