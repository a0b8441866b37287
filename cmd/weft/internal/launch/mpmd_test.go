package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/cli"
)

func TestSections(t *testing.T) {
	first := section{n: 2, wdir: "/d"}
	for in, want := range map[string][]section{
		"a x y":                        {{n: 2, wdir: "/d", argv: []string{"a", "x", "y"}}},
		"a : b":                        {{n: 2, wdir: "/d", argv: []string{"a"}}, {n: 1, wdir: "/d", argv: []string{"b"}}},
		"a x : -n 3 -wdir /e b -n : c": {{n: 2, wdir: "/d", argv: []string{"a", "x"}}, {n: 3, wdir: "/e", argv: []string{"b", "-n"}}, {n: 1, wdir: "/d", argv: []string{"c"}}},
		"a a:b :c":                     {{n: 2, wdir: "/d", argv: []string{"a", "a:b", ":c"}}},
	} {
		if got, err := sections(first, strings.Fields(in)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v; want %v", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"":                          "no program",
		"a :":                       "no program",
		": b":                       "no program",
		"a : -n 0 b":                "-n 0",
		"a : -ft b":                 "put the others before",
		"a : -n 4000 b : -n 4000 c": "8002 ranks in total",
	} {
		if got, err := sections(first, strings.Fields(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want an error with %q", in, got, err, want)
		}
	}
}

// Several programs make one job, each in its directory and with its arguments.
func TestRunOfSeveralPrograms(t *testing.T) {
	rsh := fakeShell(t)
	one, dir := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "other")
	for _, d := range []string{one, dir} {
		if err := os.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	common := []string{"-n", "1", "-l", "-wdir", one, os.Args[0], "where", "first", ":", "-n", "2", "-wdir", dir, os.Args[0], "where", "second"}
	for _, where := range [][]string{nil, {"-rsh", rsh, "-addr", "127.0.0.1", "-hosts", "one:2,two:2"}} {
		out, _, status := clitest.Weft(t, "", append(append([]string{"run"}, where...), common...)...)
		if status != 0 {
			t.Errorf("status %d", status)
		}
		for rank, want := range []string{"in one, X=, first", "in other, X=, second", "in other, X=, second"} {
			found := false
			for line := range strings.Lines(out) {
				found = found || strings.HasPrefix(line, fmt.Sprintf("[%d] rank %[1]d of 3 ", rank)) && strings.HasSuffix(line, " "+want+"\n")
			}
			if !found {
				t.Errorf("output lacks rank %d %q", rank, want)
			}
		}
	}
}

// A working directory that is missing is named, not the program.
func TestRunNamesTheMissingDirectory(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	_, errs, status := clitest.Weft(t, "", "run", "-wdir", missing, os.Args[0], "alone")
	if status != cli.ExitFail || !strings.Contains(errs, "-wdir: ") || !strings.Contains(errs, missing) || strings.Contains(errs, "starting rank") {
		t.Errorf("status %d, %q", status, errs)
	}
}

// Ranks of a job on one host use its loopback interface, unless told otherwise.
func TestRunOnOneHostIsLocal(t *testing.T) {
	rsh := fakeShell(t)
	t.Setenv("WEFT_NAMESERVER", "")
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"one host", nil, "127.0.0.1"},
		{"named localhost", []string{"-hosts", "localhost:2"}, "127.0.0.1"},
		{"told an address", []string{"-addr", "127.0.0.7"}, "127.0.0.7"},
		{"told by a variable", []string{"-x", "WEFT_ADDRS=127.0.0.9"}, "127.0.0.9"},
		{"other hosts", []string{"-rsh", rsh, "-addr", "127.0.0.1", "-hosts", "one"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, _, status := clitest.Weft(t, "", append(append([]string{"run"}, tt.args...), os.Args[0], "addrs")...)
			if want := "WEFT_ADDRS=" + tt.want + "\n"; status != 0 || !strings.HasPrefix(out, want) {
				t.Errorf("status %d, output %q, want %q", status, out, want)
			}
		})
	}
	for names, want := range map[string]int{"127.0.0.1:5/x": 1, "192.0.2.1:5/x": 0, "head.example:5/x": 0} {
		t.Setenv("WEFT_NAMESERVER", names)
		if got := (&runOptions{}).localAddrs(nil); len(got) != want {
			t.Errorf("with the name server at %s: %q, want %d variables", names, got, want)
		}
	}
}
