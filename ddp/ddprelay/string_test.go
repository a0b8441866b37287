package ddprelay

import (
	"testing"
	"testing/synctest"

	"github.com/weftstack/weft/internal/relaytest"
	"github.com/weftstack/weft/internal/testenv"
)

func TestHandlesPrintShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := relaytest.New(t, 1, 1, 1)
		defer w.Close()
		n := w.Node(1, 1, nil)
		defer n.Close()
		e, err := Listen(n.Node, 3, Config{})
		if err != nil {
			t.Fatal(err)
		}
		testenv.CheckHandles(t, []any{e})
		if s := e.String(); s != "ddprelay.Endpoint 1/1/1 service 3" {
			t.Error(s)
		}
	})
}
