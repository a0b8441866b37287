package testenv

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// envLack has this test binary lack something.
const envLack = "WEFT_TESTENV_LACK"

// TestLackingSkipsOrFails runs itself, lacking something: with EnvRequire it must
// fail, else skip, with the reason.
func TestLackingSkipsOrFails(t *testing.T) {
	if os.Getenv(envLack) != "" {
		Lacking(t, "no %s", "pigeon")
	}
	for _, require := range []string{"", "require"} {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), envLack+"=1", EnvRequire+"="+require)
		said, err := cmd.CombinedOutput()
		if failed := err != nil; failed != (require != "") || !strings.Contains(string(said), "no pigeon") {
			t.Errorf("with %s=%s: %v\n%s", EnvRequire, require, err, said)
		}
	}
}
