package topology

import (
	"testing"

	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
)

func TestMain(m *testing.M) { ctest.Main(m) }
