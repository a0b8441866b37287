package launch

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/pmi"
)

func TestParseHosts(t *testing.T) {
	for in, want := range map[string][]host{
		"a":                 {{"a", 1, 0}},
		"a:3,b.example:2,c": {{"a", 3, 0}, {"b.example", 2, 0}, {"c", 1, 0}},
		"[fe80::1]:4,::1":   {{"fe80::1", 4, 0}, {"::1", 1, 0}},
		"user@h:2":          {{"user@h", 2, 0}},
	} {
		if got, err := parseHosts(in); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "a,", "a:", "a:0", "a:x", ":2", "-oProxyCommand=x", "a b", "a;b", "a:100000", "$(x)"} {
		if got, err := parseHosts(in); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
}

func TestReadHostFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "hosts")
	write := func(s string) { os.WriteFile(name, []byte(s), 0o666) }
	write("# comment\na slots=2\n\n  b:3 # more\nc\nd slots=2 max_slots=4\ne max-slots=1\n")
	got, err := readHostFile(name)
	if want := []host{{"a", 2, 0}, {"b", 3, 0}, {"c", 1, 0}, {"d", 2, 4}, {"e", 1, 1}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for _, s := range []string{"", "# none\n", "a slots=0\n", "a cores=2\n", "a slots=2 x\n", "a slots=x\n", "a slots=3 max_slots=2\n",
		"a max_slots=0\n", "-a\n", "-a slots=2\n", strings.Repeat("h\n", maxJobHosts+1)} {
		write(s)
		if got, err := readHostFile(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%.20q: %v, %v", s, got, err)
		}
	}
}

// fakeShell is a remote shell whose hosts are all this one: each name is told
// to the program in HERE.
func fakeShell(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	name := filepath.Join(t.TempDir(), "rsh")
	text := "#!/bin/sh\n[ \"$1\" = -q ] || exit 90\nhost=$2\nshift 2\n[ $host = down ] && { echo no route to $host >&2; exit 255; }\n" +
		"unset X; HERE=$host; export HERE\nexec sh -c \"$*\"\n"
	if err := os.WriteFile(name, []byte(text), 0o777); err != nil {
		t.Fatal(err)
	}
	return name + " -q"
}

func TestRunOnHosts(t *testing.T) {
	rsh := fakeShell(t)
	dir := filepath.Join(t.TempDir(), "it's a dir")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	common := []string{"run", "-rsh", rsh, "-addr", "127.0.0.1", "-l", "-wdir", dir, "-x", "X=y 'z' $HOME"}
	out, _, status := clitest.Weft(t, "line\n", append(common, "-hosts", "one:2,two:1,localhost", os.Args[0], "where", "it's; $x")...)
	if status != 0 {
		t.Errorf("status = %d", status)
	}
	for rank, want := range []string{"one 0 of 2", "one 1 of 2", "two 0 of 1", " 0 of 1"} {
		want = fmt.Sprintf("[%d] rank %[1]d of 4 on %s in it's a dir, X=y 'z' $HOME, it's; $x\n", rank, want)
		if strings.Count(out, want) != 1 {
			t.Errorf("output lacks %q", want)
		}
	}
	if !strings.Contains(out, "[0] input line\n") {
		t.Error("rank 0 has not got the input")
	}
	if out, _, _ := clitest.Weft(t, "", append(common, "-n", "2", "-hosts", "one:1,two:3", os.Args[0], "where", "")...); !strings.Contains(out, "rank 1 of 2 on two 0 of 1") {
		t.Errorf("output %q", out)
	}
}

func TestRunOnHostsFails(t *testing.T) {
	rsh := fakeShell(t)
	for _, tt := range []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{"host is down", []string{"-hosts", "one,down", os.Args[0], "hello"}, 255, "rank 1 on host down exited with status 255, as rsh does"},
		{"rank exits", []string{"-hosts", "one:2,two", os.Args[0], "exit", "2"}, 3, "rank 2 on host two exited with status 3\n"},
		{"no such directory", []string{"-hosts", "one", "-wdir", "/no/such", os.Args[0], "hello"}, -1, "/no/such"},
		{"too many ranks", []string{"-n", "4", "-hosts", "one:2,two", os.Args[0], "hello"}, 2, "4 ranks do not fit on hosts with 3 slots"},
		{"no such shell", []string{"-rsh", "no-such-shell", "-hosts", "one", os.Args[0], "hello"}, 1, "no-such-shell"},
		{"both lists", []string{"-hosts", "one", "-hostfile", "x", os.Args[0], "hello"}, 2, "mutually exclusive"},
		{"built here", []string{"-hosts", "one", "../../../farm"}, 1, "built on this host only"},
		{"capture", []string{"-hosts", "one", "-pcap", "x", os.Args[0], "hello"}, 2, "on this host"},
		{"address of another", []string{"-hosts", "one", "-addr", "192.0.2.7", os.Args[0], "hello"}, 1, "listening"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, errs, status := clitest.Weft(t, "", append([]string{"run", "-rsh", rsh}, tt.args...)...)
			if status != tt.status && !(tt.status < 0 && status > 0) || !strings.Contains(errs, tt.want) {
				t.Errorf("status %d, want %d and %q", status, tt.status, tt.want)
			}
		})
	}
	if _, errs, status := clitest.Weft(t, "", "run", "-n", "3", "-ft", "-rsh", rsh, "-hosts", "one:3", os.Args[0], "outlive", "1"); status != 0 || !strings.Contains(errs, "rank 1") {
		t.Errorf("a killed rank of a fault tolerant job: status %d", status)
	}
}

// What a remote shell is given as arguments, which all users of both hosts can read, is
// the same for all jobs: variables, secrets among them, and the program travel by its
// standard input.
func TestRemoteShellArgumentsHoldNoSecret(t *testing.T) {
	t.Setenv(pmi.EnvNames, "127.0.0.1:1/the-secret")
	s, err := newSpread([]host{{"far", 1, 0}}, 0, "sh", "", placement{})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("prog")
	if _, err := s.prepare(cmd, 0, append(s.env(0), "X=private")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"sh", "far", remoteScript}; !slices.Equal(cmd.Args, want) {
		t.Errorf("arguments %q, want %q", cmd.Args, want)
	}
}

// Whatever variables, directories and arguments hold reaches a program on another host
// unchanged.
func TestStartLineKeepsWords(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	dir := filepath.Join(t.TempDir(), "a 'b' $c")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	odd := " two\nlines\\n 'quoted' \"$HOME\" `x` \t* end\n"
	line, err := startLine(dir, []string{"X=" + odd, "Y="}, []string{"/bin/sh", "-c", `printf '%s|%s|%s|%s' "$X" "$Y" "$1" "$(pwd)"`, "sh", odd})
	if err != nil || strings.Contains(line, "\n") {
		t.Fatalf("line %q, %v; want one line", line, err)
	}
	cmd := exec.Command("sh", "-c", remoteScript)
	cmd.Stdin = strings.NewReader(line + "\nmore input")
	out, err := cmd.Output()
	if want := odd + "||" + odd + "|" + dir; err != nil || string(out) != want {
		t.Errorf("%v, got %q, want %q", err, out, want)
	}
	for _, name := range []string{"", "1X", "A.B", "X;id", "é"} {
		if line, err := startLine(dir, []string{name + "=1"}, nil); err == nil {
			t.Errorf("a variable %q in %q", name, line)
		}
	}
}

func TestAddressTo(t *testing.T) {
	for _, name := range []string{"127.0.0.1", "no-such-host.invalid"} {
		if a := addressTo(name); net.ParseIP(a) == nil {
			t.Errorf("%s: %q", name, a)
		}
	}
	if a := addressTo("127.0.0.1"); a != "127.0.0.1" {
		t.Errorf("to 127.0.0.1 from %s", a)
	}
}
