package sctptest

import (
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

func TestHandlesPrintShort(t *testing.T) {
	n := NewNetwork(1)
	h := n.NewHost("10.0.0.1")
	c, err := h.ListenPacket(":9899")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	end, _ := n.NewConns(Link{}, Link{})
	testenv.CheckHandles(t, []any{n, h, c, end})
}
