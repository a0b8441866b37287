//go:build !linux

package emulator

import (
	"errors"

	"github.com/weftstack/weft/internal/cli"
)

// run needs network namespaces.
func run(*options, [][]string) (int, error) {
	return cli.ExitFail, errors.New("weft net requires Linux: emulated hosts are network namespaces")
}
