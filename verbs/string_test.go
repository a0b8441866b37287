package verbs

import (
	"context"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

func TestHandlesPrintShort(t *testing.T) {
	n := newCMNode(t, Config{})
	mr := n.mr(1000, LocalWrite)
	mw, err := n.pd.AllocMW()
	if err != nil {
		t.Fatal(err)
	}
	srq, err := n.pd.NewSRQ(SRQConfig{Depth: 4})
	if err != nil {
		t.Fatal(err)
	}
	ch, err := n.dev.NewCompChannel()
	if err != nil {
		t.Fatal(err)
	}
	l, err := n.dev.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tcp, err := n.dev.ListenTCP(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	without, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	testenv.CheckHandles(t, []any{n.dev, without, n.pd, mr, mw, n.cq, n.qp(QPConfig{}), srq, ch, n.ch, n.id(nil), l, tcp,
		&ConnRequest{PrivateData: make([]byte, 500), Remote: n.dev.Addr()}, &ConnRequest{RemoteTCP: tcp.Addr()}})
}
