package cabi

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// plan says how a program runs, see the package documentation.
type plan struct {
	ranks      []int
	transports []string
	env, flags []string
	args       []string
	status     int
	says       []string
}

// transports maps the names of a plan to the environment of the ranks.
var transports = map[string][]string{
	"shm":    {"WEFT_TRANSPORT=hybrid"},
	"hybrid": {"WEFT_TRANSPORT=hybrid", "WEFT_SHARED=0"},
	"sctp":   {"WEFT_TRANSPORT=sctp", "WEFT_SHARED=0"},
	"tcp":    {"WEFT_TRANSPORT=tcp", "WEFT_SHARED=0"},
}

// parsePlan reads the plan of a source.
func parsePlan(text string) (plan, error) {
	p := plan{ranks: []int{1, 2, 4}, transports: []string{"shm", "hybrid", "sctp", "tcp"}}
	s := bufio.NewScanner(strings.NewReader(text))
	for line := 0; line < 10 && s.Scan(); line++ {
		_, rest, ok := strings.Cut(s.Text(), "cabi:")
		if !ok {
			continue
		}
		for _, field := range strings.Fields(strings.TrimSuffix(strings.TrimSpace(rest), "*/")) {
			key, value, _ := strings.Cut(field, "=")
			switch list := strings.Split(value, ","); key {
			case "ranks":
				p.ranks = nil
				for _, v := range list {
					n, err := strconv.Atoi(v)
					if err != nil || n < 1 {
						return p, fmt.Errorf("ranks=%q", value)
					}
					p.ranks = append(p.ranks, n)
				}
			case "transports":
				p.transports = list
				for _, v := range list {
					if transports[v] == nil {
						return p, fmt.Errorf("transport %q", v)
					}
				}
			case "env":
				p.env = append(p.env, value)
			case "flags":
				p.flags = append(p.flags, list...)
			case "args":
				p.args = list
			case "says":
				p.says = append(p.says, strings.ReplaceAll(value, "_", " "))
			case "status":
				n, err := strconv.Atoi(value)
				if err != nil {
					return p, fmt.Errorf("status=%q", value)
				}
				p.status = n
			default:
				return p, fmt.Errorf("unknown field %q", field)
			}
		}
	}
	return p, nil
}

func TestPlans(t *testing.T) {
	p, err := parsePlan("// a program\n// cabi: ranks=2,8 transports=tcp env=A=B flags=-lm,-pthread args=x status=3 says=one_two\n")
	if got, want := fmt.Sprint(p, err), "{[2 8] [tcp] [A=B] [-lm -pthread] [x] 3 [one two]} <nil>"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, text := range []string{"// cabi: ranks=0", "// cabi: transports=smoke", "// cabi: color=red", "// cabi: status=x"} {
		if p, err := parsePlan(text); err == nil {
			t.Errorf("%q: %v", text, p)
		}
	}
}

// TestPrograms compiles all programs of testdata and runs them.
func TestPrograms(t *testing.T) {
	weft := filepath.Join(prefix(t), "bin", "weft")
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if wrappers[filepath.Ext(e.Name())][0] == "" {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			source := filepath.Join("testdata", e.Name())
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			p, err := parsePlan(string(text))
			if err != nil {
				t.Fatal(err)
			}
			exe := compile(t, source, p.flags...)
			run := func(n int, transport string) {
				t.Run(fmt.Sprintf("%s/ranks=%d", transport, n), func(t *testing.T) {
					p.check(t, append(transports[transport], p.env...), weft, "run", "-n", strconv.Itoa(n), "-timeout", "50s", exe)
				})
			}
			for i, n := range p.ranks {
				for j, transport := range p.transports {
					if j == 0 || i == len(p.ranks)-1 {
						run(n, transport)
					}
				}
			}
		})
	}
}

// check runs a program by a launcher and compares what it says and its exit status with the plan.
func (p plan) check(t *testing.T, env []string, launcher string, args ...string) {
	t.Helper()
	// Files of the program go where the test removes them.
	env = append(env, "TMPDIR="+t.TempDir())
	out, errs, status := command(t, runTime, env, launcher, append(args, p.args...)...)
	if status != p.status || status == 0 && !strings.Contains("\n"+out, "\nok\n") {
		t.Errorf("status %d, want %d and ok\n%s%s", status, p.status, out, errs)
	}
	for _, text := range p.says {
		if !strings.Contains(out+errs, text) {
			t.Errorf("%q is not said\n%s%s", text, out, errs)
		}
	}
}
