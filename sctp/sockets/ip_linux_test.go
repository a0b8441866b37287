package sockets

import (
	"errors"
	"net"
	"os"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// Directly over IP, with two addresses, also for clients that name none: listeners share the raw
// sockets of their addresses.
func TestDirectlyOverIP(t *testing.T) {
	testenv.OwnNetwork(t) // other stacks of the host answer what they see
	cfg := &SocketConfig{Encap: EncapIP, PPID: PPIDHost}
	at := &SCTPAddr{Port: 2905, IPAddrs: []net.IPAddr{{IP: net.IPv4(127, 77, 5, 1)}, {IP: net.IPv4(127, 77, 5, 2)}}}
	l, err := cfg.Listen("sctp", at)
	if errors.Is(err, os.ErrPermission) {
		testenv.Lacking(t, "no raw sockets: %v; run as root or with CAP_NET_RAW", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	go serve(l)
	other, err := cfg.Listen("sctp", &SCTPAddr{Port: 38412, IPAddrs: at.IPAddrs})
	if err != nil {
		t.Fatal(err)
	}
	if other.port.tr != l.port.tr {
		t.Error("two listeners do not share their raw sockets")
	}
	for _, from := range []*SCTPAddr{nil, {IPAddrs: []net.IPAddr{{IP: net.IPv4(127, 77, 5, 3)}}}, {Port: 7000, IPAddrs: at.IPAddrs}} {
		c, err := cfg.Dial("sctp", from, at)
		if err != nil {
			t.Fatalf("from %v: %v", from, err)
		}
		if got := c.RemoteAddr().(*SCTPAddr); len(got.IPAddrs) != 2 || got.Port != 2905 {
			t.Errorf("from %v: peer %v", from, got)
		}
		if err := echo(c, "over IP"); err != nil {
			t.Errorf("from %v: %v", from, err)
		}
		c.Close()
	}
	l.Close()
	other.Close()
	noTransports(t)
}
