package interop

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// envRequire, set to "require", makes a test fail that lacks what it needs, a
// peer for example. .ci/run sets it where it can install everything.
const envRequire = "WEFT_INTEROP"

// lacking ends a test that lacks something: it skips with the reason, or fails
// where everything is said to be there.
func lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	if os.Getenv(envRequire) == "require" {
		t.Fatalf("%s=require, but %s", envRequire, reason)
	}
	t.Skip(reason)
}

// TestLackingFails runs this test binary without a path to any program: with
// envRequire its tests of peers must fail, not skip.
func TestLackingFails(t *testing.T) {
	for _, require := range []bool{false, true} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestVectorsDecode$", "-test.v")
		cmd.Env = []string{"PATH=", "HOME=" + t.TempDir()}
		if require {
			cmd.Env = append(cmd.Env, envRequire+"=require")
		}
		said, err := cmd.CombinedOutput()
		if failed := err != nil; failed != require {
			t.Errorf("with %s=require %v: %v\n%s", envRequire, require, err, said)
		}
	}
}
