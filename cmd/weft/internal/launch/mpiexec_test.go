package launch

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
)

// Options of Open MPI, MPICH and the standard become those of weft run, or are refused with what
// to do instead; the program's own arguments stay as they are.
func TestTranslate(t *testing.T) {
	for in, want := range map[string]string{
		"-np 4 ./a -np 3":                            "-n 4 ./a -np 3",
		"--np=4 --host a:2,b ./a":                    "-n 4 -hosts a:2,b ./a",
		"-H a -f hosts -machinefile hosts ./a":       "-hosts a -hostfile hosts -hostfile hosts ./a",
		"-genv A 1 -env B 2 -x C=3 -genv D=4 ./a":    "-x A=1 -env B=2 -x C=3 -x D=4 ./a",
		"-env B=2 ./a":                               "-env B=2 ./a",
		"-genvlist A,B -envall ./a":                  "-x A -x B -genvall ./a",
		"--allow-run-as-root -q --tag-output -N 2 a": "-l -ppn 2 a",
		"-pernode --bynode --bind-to-core a":         "-ppn 1 -map-by node -bind-to core a",
		"-timeout 30 -wd /d -V":                      "-timeout 30 -wdir /d -version",
		"-l -ft -verbose -transport tcp -- -np":      "-l -ft -v -transport tcp -- -np",
		"-rr -exitinfo --get-stack-traces a":         "-map-by node -v a",
		"-unknown -np 2":                             "-unknown -n 2",
		"-n":                                         "-n",
		"":                                           "",
	} {
		got, err := translate(runFlags(new(runOptions)), strings.Fields(in))
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"--mca btl tcp ./a": "-mca of other launchers has no equivalent here: the parameters of weft are the variables WEFT_…",
		"-soft 2:8:2 ./a":   "a job has exactly the ranks of -n",
		"-arch vax ./a":     "-hosts",
		"-file f":           "-configfile",
		"--stdin none a":    "-stdin of other launchers has no equivalent here: rank 0 reads",
		"-np":               "-np takes 1 arguments",
		"-genv A":           "-genv takes 2 arguments",
		"-l=x -quiet=2 a":   "-quiet takes 0 arguments",
		"-env A":            "-env takes NAME VALUE",
	} {
		if got, err := translate(runFlags(new(runOptions)), strings.Fields(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want an error with %q", in, got, err, want)
		}
	}
}

// -x NAME passes on a value, also an empty one, but makes no variable of one that is not set.
func TestVariableThatIsNotSetStaysSo(t *testing.T) {
	t.Setenv("WEFT_TEST_EMPTY", "")
	var env []string
	for _, name := range []string{"WEFT_TEST_EMPTY", "WEFT_TEST_ABSENT"} {
		if err := addVariable(&env)(name); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"WEFT_TEST_EMPTY="}; !slices.Equal(env, want) {
		t.Errorf("%q, want %q", env, want)
	}
}

// An alias is no option of weft run itself, and stands for options that there are.
func TestAliasesLeadToFlags(t *testing.T) {
	fs := runFlags(new(runOptions))
	for _, a := range aliases {
		for _, n := range a.names {
			if fs.Lookup(n) != nil {
				t.Errorf("-%s is an alias and a flag", n)
			}
			if b := findAlias(n); !slices.Equal(b.names, a.names) {
				t.Errorf("-%s is an alias twice", n)
			}
		}
		if a.to == nil {
			continue
		}
		v := []string{"1", "2"}[:a.values]
		out, err := a.to(v)
		if err != nil {
			t.Errorf("-%s: %v", a.names[0], err)
		}
		if err := runFlags(new(runOptions)).Parse(append(out, "program")); err != nil {
			t.Errorf("-%s becomes %q: %v", a.names[0], out, err)
		}
	}
}

// docs/mpiexec.md lists all options with what -h says of them.
func TestOptionsAreDocumented(t *testing.T) {
	var table strings.Builder
	table.WriteString("| Option | |\n|---|---|\n")
	runFlags(new(runOptions)).VisitAll(func(f *flag.Flag) {
		value, says := flag.UnquoteUsage(f)
		name := "-" + f.Name
		if value != "" {
			name += " " + strings.ToUpper(value)
		}
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "0s" && f.DefValue != "false" && f.Name != "sites" {
			says += " (default " + f.DefValue + ")"
		}
		says = strings.ReplaceAll(says, "|", "\\|")
		fmt.Fprintf(&table, "| `%s` | %s |\n", name, says)
	})
	table.WriteString("\n| Option of others | Here |\n|---|---|\n")
	for _, a := range aliases {
		if a.to != nil {
			fmt.Fprintf(&table, "| `-%s` | %s |\n", strings.Join(a.names, "`, `-"), a.says)
		}
	}
	table.WriteString("\n| Refused | Instead |\n|---|---|\n")
	for _, a := range aliases {
		if a.to == nil {
			fmt.Fprintf(&table, "| `-%s` | %s |\n", strings.Join(a.names, "`, `-"), a.says)
		}
	}
	const begin, end = "<!-- options -->\n", "<!-- end of options -->\n"
	page := filepath.Join("..", "..", "..", "..", "docs", "mpiexec.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	got, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", page, begin, end)
	}
	if got == table.String() {
		return
	}
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+table.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s does not list the options of weft run: go test ./cmd/weft/internal/launch -run TestOptionsAreDocumented -update", page)
}

var update = flag.Bool("update", false, "write the table of options of docs/mpiexec.md")

func TestMapping(t *testing.T) {
	hosts := []host{{"a", 2, 0}, {"b", 1, 0}, {"c", 3, 4}}
	for _, tt := range []struct {
		n    int
		how  placement
		want []int
	}{
		{0, placement{}, []int{0, 0, 1, 2, 2, 2}},
		{0, placement{byNode: true}, []int{0, 1, 2, 0, 2, 2}},
		{4, placement{byNode: true}, []int{0, 1, 2, 0}},
		{0, placement{perHost: 2}, []int{0, 0, 1, 1, 2, 2}},
		{3, placement{perHost: 2}, []int{0, 0, 1}},
		{8, placement{over: true}, []int{0, 0, 1, 2, 2, 2, 0, 0}},
		{12, placement{over: true}, []int{0, 0, 1, 2, 2, 2, 0, 0, 1, 2, 0, 0}},
		{4, placement{perHost: 1, byNode: true, over: true}, []int{0, 1, 2, 0}},
	} {
		s, err := newSpread(hosts, tt.n, "sh", "", tt.how)
		if err != nil || !reflect.DeepEqual(s.place, tt.want) {
			t.Errorf("%d ranks %+v: %v, %v; want %v", tt.n, tt.how, s, err, tt.want)
		}
	}
	for n, how := range map[int]placement{7: {}, 4: {perHost: 1}} {
		if _, err := newSpread(hosts, n, "sh", "", how); err == nil || !strings.Contains(err.Error(), "-oversubscribe") {
			t.Errorf("%d ranks %+v: %v", n, how, err)
		}
	}
	if _, err := newSpread([]host{{"a", 2, 3}, {"b", 1, 1}}, 5, "sh", "", placement{over: true}); err == nil || !strings.Contains(err.Error(), "4 slots at most") {
		t.Errorf("5 ranks on hosts that take 4: %v", err)
	}
	for by, want := range map[string]runOptions{
		"slot": {mapBy: "slot"}, "core": {mapBy: "slot"}, "node:OVERSUBSCRIBE": {mapBy: "node", over: true},
		"ppr:2:node": {mapBy: "slot", perHost: 2}, "slot:nooversubscribe": {mapBy: "slot", notOver: true},
	} {
		o := runOptions{mapBy: by}
		if err := o.checkMapping(); err != nil || !reflect.DeepEqual(o, want) {
			t.Errorf("-map-by %s: %+v, %v", by, o, err)
		}
	}
	for _, by := range []string{"socket", "ppr:0:node", "ppr:2:socket", "ppr:x", ""} {
		if err := (&runOptions{mapBy: by}).checkMapping(); err == nil || !strings.Contains(err.Error(), "-map-by") {
			t.Errorf("-map-by %q: %v", by, err)
		}
	}
}

// The options of other launchers, in whole jobs.
func TestRunWithOptionsOfOthers(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	text := "# two programs\n-n 1 -env X one " + os.Args[0] + " \\\n hello\n\n-np 1 -x X=two " + os.Args[0] + " hello\n"
	if err := os.WriteFile(config, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"-np 2 --allow-run-as-root --oversubscribe --tag-output -genv X yes --timeout 60 PROGRAM hello",
			[]string{"[0] rank 0 of 2, X=yes\n", "[1] rank 1 of 2, X=yes\n"}},
		{"-n 1 -env X a PROGRAM hello : -n 1 -env X b PROGRAM hello", []string{"rank 0 of 2, X=a\n", "rank 1 of 2, X=b\n"}},
		{"-ppn 2 PROGRAM hello", []string{"rank 0 of 2, X=\n", "rank 1 of 2, X=\n"}},
		{"-configfile " + config, []string{"rank 0 of 2, X=one\n", "rank 1 of 2, X=two\n"}},
		{"--version", []string{"weft ", "revision"}},
	} {
		args := append([]string{"run"}, strings.Fields(strings.ReplaceAll(tt.args, "PROGRAM", os.Args[0]))...)
		out, _, status := clitest.Weft(t, "", args...)
		for _, want := range tt.want {
			if status != 0 || !strings.Contains(out, want) {
				t.Errorf("%s: status %d, output lacks %q", tt.args, status, want)
			}
		}
	}
	for _, args := range []string{"-mca a b PROGRAM", "-map-by socket PROGRAM", "-n 3 -ppn 2 PROGRAM", "-n 4096 -nooversubscribe PROGRAM",
		"-timeout 5x PROGRAM", "-oversubscribe -nooversubscribe PROGRAM", "-configfile /no/such", "-configfile f PROGRAM", "-env A"} {
		clitest.WantMisused(t, "weft run", append([]string{"run"}, strings.Fields(strings.ReplaceAll(args, "PROGRAM", os.Args[0]))...)...)
	}
}

// A program with a relative path is looked up in -wdir first, as Open MPI and MPICH do, then in
// the current directory; a name alone in -path, $PATH and those.
func TestLookUp(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs have no mode")
	}
	root := t.TempDir()
	make1 := func(name string, mode os.FileMode) string {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	w, here, tools, both := make1("w/prog", 0o777), make1("prog", 0o777), make1("tools/tool", 0o777), make1("only", 0o777)
	make1("data", 0o666)
	t.Chdir(root)
	t.Setenv("PATH", filepath.Join(root, "tools"))
	for _, tt := range []struct{ name, dir, path, want string }{
		{"./prog", "", "", here},
		{"./prog", "w", "", w},
		{"./only", "w", "", both},
		{"prog", "w", "", w},
		{"prog", "", "", here},
		{"tool", "w", "", tools},
		{"prog", "", "w:tools", w},
		{w, "tools", "", w},
	} {
		if got, err := lookUp(tt.name, tt.dir, tt.path); err != nil || got != tt.want {
			t.Errorf("%s in %q: %s, %v; want %s", tt.name, tt.dir, got, err, tt.want)
		}
	}
	for name, want := range map[string]string{
		"none": "program none: not found in $PATH or " + filepath.Join(root, "w") + " or " + root,
		"/no":  "program /no: not found in /", "./data": "data: it is not executable",
	} {
		if got, err := lookUp(name, "w", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v; want %q", name, got, err, want)
		}
	}
}
