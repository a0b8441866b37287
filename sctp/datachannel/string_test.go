package datachannel_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp/datachannel"
)

func TestHandlesPrintAsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, delay, end{}, end{})
		c, err := p.a.Open(t.Context(), strings.Repeat("long\n", 1000), datachannel.Options{})
		if err != nil {
			t.Fatal(err)
		}
		testenv.CheckHandles(t, []any{p.a, c})
	})
	if s := datachannel.State(9).String(); s != "unknown" {
		t.Error(s)
	}
}
