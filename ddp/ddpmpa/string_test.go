package ddpmpa

import (
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

func TestHandlesPrintShort(t *testing.T) {
	testenv.CheckHandles(t, []any{new(Channel), new(Framer), new(Deframer), new(Request)})
}
