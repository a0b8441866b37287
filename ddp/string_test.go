package ddp

import (
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

func TestHandlesPrintShort(t *testing.T) {
	r := &Region{mem: make([]byte, 1000)}
	testenv.CheckHandles(t, []any{r, new(Table), new(Pool), new(Queue), new(Receiver), new(Scope), new(Snapshots)}, "Segment", "Message", "Buffer", "Source")
}
