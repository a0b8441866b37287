// Package testenv tells tests what to do where something is missing that they
// need: another program, root, a feature of the kernel.
package testenv

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// EnvRequire is the environment variable that, if set, enables slow tests, see [Slow]. Set
// to "require", a test that lacks a peer or another prerequisite fails; .ci/run sets it where
// it can install everything.
const EnvRequire = "WEFT_INTEROP"

// Slow ends a test that takes a minute because of its peer, as does one that boots
// a guest, unless EnvRequire is set or tests were chosen with -run.
func Slow(t testing.TB, why string) {
	t.Helper()
	if os.Getenv(EnvRequire) == "" && flag.Lookup("test.run").Value.String() == "" {
		t.Skipf("%s, which takes long: name it with -run, or set %s=run", why, EnvRequire)
	}
}

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

// Networks ends a test that makes network namespaces, and joins them, where that
// is not possible.
func Networks(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Lacking(t, "not root: network namespaces cannot be made")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		Lacking(t, "no /dev/net/tun: hosts cannot be joined")
	}
}
