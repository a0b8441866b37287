package main

import (
	"strings"
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/cli"
)

func TestMain(m *testing.M) { clitest.Main(m, program(), rank) }

func TestWrongUseExitsWithTwo(t *testing.T) {
	for _, args := range [][]string{{"dance"}, {"help", "dance"}, {"help", "run", "net"}} {
		clitest.WantMisused(t, "weft", args...)
	}
	if _, errs, status := clitest.Weft(t, ""); status != cli.ExitUsage || !strings.Contains(errs, "Usage:") {
		t.Errorf("weft without a command: status %d, want 2 and the commands", status)
	}
}

func TestHelpExitsWithZero(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"-h"}, {"version"}} {
		if out, _, status := clitest.Weft(t, "", args...); status != 0 || out == "" {
			t.Errorf("weft %q: status %d and %d bytes of output", args, status, len(out))
		}
	}
	for _, c := range program().Commands {
		for _, args := range [][]string{{"help", c.Name}, {c.Name, "-h"}} {
			if out, errs, status := clitest.Weft(t, "", args...); status != 0 || errs != "" || !strings.HasPrefix(out, "usage: weft "+c.Name) {
				t.Errorf("weft %q: status %d, want 0 and the usage", args, status)
			}
		}
	}
}
