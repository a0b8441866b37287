// Package testenv tells tests what to do where something is missing that they
// need: another program, root, a feature of the kernel.
package testenv

import (
	"fmt"
	"os"
	"testing"
)

// EnvRequire, set to "require", makes a test fail that lacks what it needs, a
// peer for example. .ci/run sets it where it can install everything.
const EnvRequire = "WEFT_INTEROP"

// Lacking ends a test that lacks something: it skips with the reason, or fails
// where everything is said to be there.
func Lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	if os.Getenv(EnvRequire) == "require" {
		t.Fatalf("%s=require, but %s", EnvRequire, reason)
	}
	t.Skip(reason)
}
