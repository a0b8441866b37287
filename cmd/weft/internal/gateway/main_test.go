package gateway

import (
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/cli"
)

func TestMain(m *testing.M) {
	clitest.Main(m, &cli.Program{Name: "weft", Commands: []cli.Command{{Name: "gateway", Run: Main}}}, nil)
}
