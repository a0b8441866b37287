package rconn

import (
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

func TestHandlesPrintShort(t *testing.T) {
	p := newPair(t, Config{}, Config{})
	a, b, err := p.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	testenv.CheckHandles(t, []any{a, b, a.Stream(), p.l, p.l.Streams()})
}
