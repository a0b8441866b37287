package launch

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/cli"
)

// A job ends at the limit of -timeout or, without that, of MPIEXEC_TIMEOUT, with status 124 and a message that
// names the option or the variable.
func TestRunEndsAtItsTimeLimit(t *testing.T) {
	for _, tt := range []struct {
		name, variable string
		flags          []string
		status         int
		says           string
	}{
		{"option", "", []string{"-timeout", "300ms"}, exitTimeout, "weft run: the job did not end within 300ms, the limit of -timeout\n"},
		{"variable", "1", nil, exitTimeout, "weft run: the job did not end within 1s, the limit of MPIEXEC_TIMEOUT\n"},
		{"both", "600", []string{"--timeout=300ms"}, exitTimeout, "within 300ms, the limit of -timeout\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(envTimeout, tt.variable)
			args := append(append([]string{"run", "-n", "2"}, tt.flags...), os.Args[0], "sleep")
			_, errs, status := clitest.Weft(t, "", args...)
			if status != tt.status || !strings.Contains(errs, tt.says) {
				t.Errorf("status %d, want %d and %q", status, tt.status, tt.says)
			}
		})
	}
	t.Run("not passed", func(t *testing.T) {
		t.Setenv(envTimeout, "600")
		if _, _, status := clitest.Weft(t, "", "run", "-n", "2", os.Args[0], "alone"); status != cli.ExitOK {
			t.Errorf("status %d of a job that ends before its limit, want 0", status)
		}
	})
}

// Values of the option and of the variable are read alike; one that makes no sense is refused with words.
func TestTimeLimitIsRead(t *testing.T) {
	for text, want := range map[string]string{
		"": "0s", "0": "0s", "90": "1m30s", "1500ms": "1.5s", "2h": "2h0m0s",
		"x": "want a time", "2x": "want a time", "1.5": "want a time", "-1": "want a time", "-1s": "is negative", " 5": "want a time",
	} {
		t.Setenv(envTimeout, text)
		var l timeLimit
		err := l.complete(false)
		switch got := l.after.String(); {
		case err == nil && got != want:
			t.Errorf("%s=%q: %s, want %s", envTimeout, text, got, want)
		case err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), envTimeout)):
			t.Errorf("%s=%q: %v, want an error with %q and the name", envTimeout, text, err, want)
		}
		if text == "" {
			continue
		}
		var s seconds
		if flagErr := s.Set(text); flagErr == nil && err == nil && s.String() != want {
			t.Errorf("-timeout %s: %s, want %s", text, s.String(), want)
		}
		l = timeLimit{}
		if err := l.complete(true); err != nil || l.after != 0 {
			t.Errorf("%s=%q beside -timeout: %v, %v; want it ignored", envTimeout, text, l.after, err)
		}
		if err != nil {
			clitest.WantMisused(t, "weft run", "run", "-dry-run", "x")
			t.Setenv(envTimeout, "")
			clitest.WantMisused(t, "weft run", "run", "-timeout="+text, "-dry-run", "x")
		}
	}
}

// The limit is also that of the programs' build.
func TestTimeLimitWhileBuilding(t *testing.T) {
	l := timeLimit{after: 1, from: "-timeout"}
	ctx, cancel := context.WithCancelCause(t.Context())
	if status, err := stopped(ctx, os.ErrNotExist); status != cli.ExitFail || err != os.ErrNotExist {
		t.Errorf("before it: %d, %v", status, err)
	}
	cancel(l.passed())
	if status, err := stopped(ctx, os.ErrNotExist); status != exitTimeout || !strings.Contains(err.Error(), "within 1ns, the limit of -timeout") {
		t.Errorf("after it: %d, %v", status, err)
	}
}
