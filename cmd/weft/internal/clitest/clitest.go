// Package clitest lets the tests of a command family run weft, and programs that
// weft starts, as processes of the test binary.
package clitest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/pmi"
)

// EnvRole is the environment variable that selects what the test binary does: it
// runs the tests if the variable is empty, weft if it is [RoleWeft], and a program
// that weft has started otherwise.
const EnvRole = "WEFT_TEST_ROLE"

// RoleWeft is the value of [EnvRole] that makes the test binary act as weft.
const RoleWeft = "weft"

// Main is the body of TestMain: it plays the role that [EnvRole] names. weft has the
// commands that the tests use. rank is the program that weft starts, with its
// arguments; it may be nil if the tests start no other program than weft itself.
func Main(m *testing.M, weft *cli.Program, rank func(args []string) int) {
	switch os.Getenv(EnvRole) {
	case "":
		os.Exit(m.Run())
	case RoleWeft:
		os.Setenv(EnvRole, "rank")
		os.Exit(weft.Main(os.Args[1:]))
	default:
		if rank == nil || weft.Lookup(os.Args[1]) != nil { // the command starts itself again
			os.Exit(weft.Main(os.Args[1:]))
		}
		os.Exit(rank(os.Args[1:]))
	}
}

// Weft runs weft with args in a process of its own, which reads stdin, and waits
// for it.
func Weft(t *testing.T, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := Command(t, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("weft %q: status %d\n%s%s", args, cmd.ProcessState.ExitCode(), out.String(), errs.String())
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Command returns the command that runs weft with args, not started. It is killed
// when the test ends.
func Command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), EnvRole+"="+RoleWeft, pmi.EnvFD+"=", pmi.EnvPort+"=")
	return cmd
}

// WantMisused runs weft, which must refuse the arguments: status 2, at most two
// lines that say what is wrong, and a line that refers to the -h of a command.
func WantMisused(t *testing.T, command string, args ...string) {
	t.Helper()
	out, errs, status := Weft(t, "", args...)
	if status != cli.ExitUsage || out != "" || strings.Count(errs, "\n") > 3 ||
		!strings.HasPrefix(errs, command+": ") || !strings.HasSuffix(errs, "\n`"+command+" -h` explains how it is used.\n") {
		t.Errorf("weft %q: status %d, want 2, what is wrong, and the usage of %q", args, status, command)
	}
}
