package ddpsctp

import (
	"testing"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

func TestHandlesPrintShort(t *testing.T) {
	pc, err := sctptest.NewNetwork(1).NewHost("10.0.0.1").ListenPacket(":9899")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	e, err := tr.Listen(5000, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := new(Session)
	ep := &Endpoint{ep: e}
	testenv.CheckHandles(t, []any{ep, &Association{ep: ep}, s, &Request{s: s}, NewAcceptor(0, nil)})
}
