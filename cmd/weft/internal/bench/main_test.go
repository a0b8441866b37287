package bench

import (
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/cmd/weft/internal/launch"
	"github.com/weftstack/weft/internal/cli"
)

func TestMain(m *testing.M) {
	clitest.Main(m, &cli.Program{Name: "weft", Commands: []cli.Command{
		{Name: "bench", Run: Main}, {Name: "run", Run: launch.Main},
	}}, nil)
}
