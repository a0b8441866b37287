package sctp

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/wire"
)

// RFC 8261, Section 5: the INIT chunk has no addresses and no list of address types.
func TestInitWithoutAddresses(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	go func() { _, _ = ClientContext(ctx, WithNetConn(near)) }()
	pkt := make([]byte, 2000)
	far.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := far.Read(pkt)
	if err != nil {
		t.Fatal(err)
	}
	it := wire.NewChunks(pkt[wire.HeaderLen:n])
	if !it.Next() {
		t.Fatal("no chunk")
	}
	in, err := wire.ParseInit(it.Chunk())
	if err != nil {
		t.Fatal(err)
	}
	params := wire.NewParams(in.Params)
	for params.Next() {
		switch p := params.Param(); p.Type {
		case 5, 6, 12: // RFC 9260, Section 3.3.2: IPv4, IPv6, Supported Address Types
			t.Errorf("INIT has a parameter of type %d", p.Type)
		default:
			t.Logf("parameter %v", p.Type)
		}
	}
}
