package interop

import (
	"os"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// TestLackingFails runs this test binary without a path to any program: with
// testenv.EnvRequire its tests of peers must fail, not skip.
func TestLackingFails(t *testing.T) {
	bounded(t)
	for _, require := range []bool{false, true} {
		cmd := command(t, os.Args[0], "-test.run", "^TestVectorsDecode$", "-test.v")
		cmd.Env = []string{"PATH=", "HOME=" + t.TempDir()}
		if require {
			cmd.Env = append(cmd.Env, testenv.EnvRequire+"=require")
		}
		said, err := cmd.CombinedOutput()
		if failed := err != nil; failed != require {
			t.Errorf("with %s=require %v: %v\n%s", testenv.EnvRequire, require, err, said)
		}
	}
}
