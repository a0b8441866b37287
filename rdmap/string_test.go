package rdmap

import (
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

func TestHandlesPrintShort(t *testing.T) { testenv.CheckHandles(t, []any{new(Stream)}, "Op") }
