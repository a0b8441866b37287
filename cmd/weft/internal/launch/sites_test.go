package launch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/internal/sites"
)

// siteRole prints what the process was told of its site. With an argument it spawns as many others first, and waits
// until they have ended.
func siteRole(ctx context.Context, args []string) error {
	c, err := pmi.FromEnv(ctx)
	if err != nil {
		return err
	}
	if p, err := sites.DecodeProcess(os.Getenv(sites.EnvProcess)); err != nil {
		fmt.Printf("none: %q\n", os.Getenv(sites.EnvProcess))
	} else {
		fmt.Printf("address %d/%d/%d of %s, job %d, key %x, %d gateways, %s\n", p.Site, p.Node, p.Process, p.Names[p.Site], p.Job,
			sha256.Sum256(p.Key), len(p.Gateways), p.Mode)
	}
	if err := c.Barrier(ctx); err != nil {
		return err
	}
	if len(args) > 0 && c.Rank == 0 {
		var n int
		if _, err := fmt.Sscan(args[0], &n); err != nil {
			return err
		}
		s, err := c.Spawn(ctx, &pmi.Spawn{Commands: []pmi.Command{{Path: os.Args[0], Args: []string{"site"}, N: n}}})
		if err != nil {
			return err
		}
		if err := s.Err(); err != nil {
			return err
		}
	}
	return c.Finalize(ctx)
}

// sitesFile writes a sites file with two sites, each of the given line, and a key for jobs.
func sitesFile(t *testing.T, a, b string) string {
	t.Helper()
	dir := t.TempDir()
	if err := sites.WriteKey(filepath.Join(dir, "jobs.key")); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`jobs key-file jobs.key
mode chained
site lyon
  %s
  gateway a lan 127.0.0.1:5001 wan 127.0.0.1:5002
  gateway b lan 127.0.0.1:5003 wan 127.0.0.1:5004
site tokyo 7
  %s
  gateway a lan 127.0.0.1:5005 wan 127.0.0.1:5006
leg lyon tokyo key-file wan.key associations 2 rate 1gbit
job-class bulk weight 3
`, a, b)
	name := filepath.Join(dir, "sites")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// addresses returns how often each address was printed, and that all processes have one job and the key of it.
func addresses(t *testing.T, out, file string) map[string]int {
	t.Helper()
	f, err := sites.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := f.JobsKey()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	job := uint32(0)
	for _, m := range regexp.MustCompile(`address (\S+) of (\S+), job (\d+), key (\S+), (\d) gateways, (\S+)`).FindAllStringSubmatch(out, -1) {
		got[m[1]]++
		var n uint32
		if _, err := fmt.Sscan(m[3], &n); err != nil || job != 0 && n != job {
			t.Errorf("%s: another job than %d", m[0], job)
		}
		job = n
		want := map[string]string{"lyon": "2", "tokyo": "1"}[m[2]]
		if m[4] != fmt.Sprintf("%x", sha256.Sum256(sites.JobKey(key, job))) || m[5] != want || m[6] != "chained" {
			t.Errorf("%s: another key, or not %s gateways", m[0], want)
		}
	}
	return got
}

func wantAddresses(t *testing.T, out, file string, want ...string) {
	t.Helper()
	got := addresses(t, out, file)
	n := make(map[string]int)
	for _, a := range want {
		n[a]++
	}
	if !maps.Equal(got, n) {
		t.Errorf("addresses %v, want %v", got, n)
	}
}

// Ranks on one host play two sites, and those that are spawned go on by turns.
func TestRunInSitesByRank(t *testing.T) {
	file := sitesFile(t, "ranks 0 2", "ranks 1")
	out, _, status := clitest.Weft(t, "", "run", "-n", "3", "-sites", file, os.Args[0], "site", "4")
	if status != 0 {
		t.Errorf("status %d", status)
	}
	wantAddresses(t, out, file, "1/1/1", "7/1/1", "1/1/2", "1/1/3", "7/1/2", "1/1/4", "1/1/5")
	t.Setenv(sites.EnvFile, file)
	out, _, _ = clitest.Weft(t, "", "run", "-n", "2", os.Args[0], "site")
	wantAddresses(t, out, file, "1/1/1", "7/1/1")
}

// Hosts have their sites by name, and other hosts get the secret, too.
func TestRunInSitesByHost(t *testing.T) {
	here, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	file := sitesFile(t, "hosts zero one "+here, "hosts two")
	out, _, status := clitest.Weft(t, "", "run", "-rsh", fakeShell(t), "-addr", "127.0.0.1", "-sites", file, "-job-class", "bulk",
		"-hosts", "one:2,two:1,localhost:1", os.Args[0], "site", "4")
	if status != 0 {
		t.Errorf("status %d", status)
	}
	wantAddresses(t, out, file, "1/2/1", "1/2/2", "7/1/1", "1/3/1", "1/2/3", "1/2/4", "7/1/2", "1/3/2")
	f, err := sites.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	var job uint32
	if _, err := fmt.Sscanf(out[strings.Index(out, "job "):], "job %d,", &job); err != nil || f.JobClass(job) != f.Class("bulk") {
		t.Errorf("job %d has the class %v, %v", job, f.JobClass(job), err)
	}
}

// Without a sites file a process is told nothing, even if the launcher was.
func TestRunWithoutSites(t *testing.T) {
	t.Setenv(sites.EnvProcess, "secret of another job")
	for _, hosts := range [][]string{nil, {"-rsh", fakeShell(t), "-addr", "127.0.0.1", "-hosts", "one:1"}} {
		out, _, status := clitest.Weft(t, "", append(append([]string{"run"}, hosts...), os.Args[0], "site")...)
		if status != 0 || out != "none: \"\"\n" {
			t.Errorf("%q: status %d, %q", hosts, status, out)
		}
	}
}

func TestRunInSitesFails(t *testing.T) {
	file := sitesFile(t, "ranks 0", "ranks 1")
	hosts := sitesFile(t, "hosts no.such.host", "hosts two")
	nokey := sitesFile(t, "ranks 0", "ranks 1")
	if err := os.Remove(filepath.Join(filepath.Dir(nokey), "jobs.key")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"no file", []string{"-sites", "no/such/file"}, "sites file: open no/such/file"},
		{"mistake", []string{"-sites", os.Args[0]}, os.Args[0] + ": more than"},
		{"rank", []string{"-n", "3", "-sites", file}, "starting rank 2: " + file + ": rank 2 is in no site: want it in a line ranks"},
		{"host", []string{"-sites", hosts}, " is in no site: want it in a line hosts"},
		{"class", []string{"-sites", file, "-job-class", "x"}, file + `: there is no job-class "x"`},
		{"mode", []string{"-sites", file, "-mode", "x"}, `mode "x": want piecewise, chained or lossy`},
		{"key", []string{"-sites", nokey}, "jobs.key: "},
		{"dry run", []string{"-dry-run", "-n", "3", "-sites", file}, "rank 2 is in no site: want it in a line ranks"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, errs, status := clitest.Weft(t, "", append(append([]string{"run"}, tt.args...), os.Args[0], "site")...)
			if status != 1 || !strings.Contains(errs, "weft run: ") || !strings.Contains(errs, tt.want) || strings.Contains(out, "lyon 1/1/1") {
				t.Errorf("status %d, %q, want %q", status, errs, tt.want)
			}
		})
	}
	clitest.WantMisused(t, "weft run", "run", "-job-class", "bulk", "x")
	clitest.WantMisused(t, "weft run", "run", "-mode", "chained", "x")
	clitest.WantMisused(t, "weft run", "run", "-json", "x")
	clitest.WantMisused(t, "weft run", "run", "-x", sites.EnvProcess+"=x", "x")
}

func TestDryRun(t *testing.T) {
	file := sitesFile(t, "ranks 0-2", "ranks 3-9")
	out, errs, status := clitest.Weft(t, "", "run", "-dry-run", "-n", "3", "-sites", file, "no-such-program", "a", ":", "-n", "2", "other")
	want := `ranks   host       site   addresses       program
0 to 2  localhost  lyon   1/1/1 to 1/1/3  no-such-program a
3 to 4  localhost  tokyo  7/1/1 to 7/1/2  other

between         pairs of ranks  way
ranks of lyon   3               direct
lyon and tokyo  6               gateways of lyon (a, b) – tokyo (a; 2 associations each; at most 1000 Mb/s each)
ranks of tokyo  1               direct

mode chained
`
	if status != 0 || errs != "" || out != want {
		t.Errorf("status %d, %s\n%s\nwant\n%s", status, errs, out, want)
	}
	out, _, status = clitest.Weft(t, "", "run", "-dry-run", "-json", "-n", "4", "-sites", file, "program")
	var d dryRun
	if err := json.NewDecoder(bytes.NewBufferString(out)).Decode(&d); status != 0 || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	if len(d.Ranks) != 4 || d.Ranks[3].Site != "tokyo" || d.Ranks[3].Address != "7/1/1" || len(d.Ways) != 2 {
		t.Errorf("%+v", d)
	}
	if w := d.Ways[1]; w.From != "lyon" || w.To != "tokyo" || w.Pairs != 3 || len(w.Legs) != 3 || !slices.Equal(w.Legs[0].Gateways, []string{"a", "b"}) ||
		w.Legs[1].Associations != 2 || w.Legs[1].Addrs[0].String() != "127.0.0.1:5006" || w.Legs[2].Addrs[0].String() != "127.0.0.1:5005" {
		t.Errorf("%+v", w)
	}
	if out, _, _ := clitest.Weft(t, "", "run", "-dry-run", "-n", "4", "-sites", file, "-mode", "lossy", "x"); !strings.HasSuffix(out, "\nmode lossy\n") {
		t.Error("not the mode of the job")
	}
	out, _, status = clitest.Weft(t, "", "run", "-dry-run", "-hosts", "one:2,two:1", "program")
	want = `ranks   host  site  addresses  program
0 to 1  one   -     -          program
2       two   -     -          program

between    pairs of ranks  way
all ranks  3               direct
`
	if status != 0 || out != want {
		t.Errorf("status %d\n%s\nwant\n%s", status, out, want)
	}
}

// Numbers of processes that have ended are used again, late, and never those of others.
func TestProcessNumbers(t *testing.T) {
	n := &numbers{used: make(map[uint16]bool)}
	for i := range sites.MaxRank {
		if got, err := n.next(); err != nil || int(got) != i+1 {
			t.Fatalf("number %d, %v; want %d", got, err, i+1)
		}
	}
	if _, err := n.next(); err == nil || !strings.Contains(err.Error(), "more than 65534 processes") {
		t.Errorf("without a free number: %v", err)
	}
	delete(n.used, 7)
	delete(n.used, 5)
	for _, want := range []uint16{5, 7} {
		if got, err := n.next(); err != nil || got != want {
			t.Errorf("number %d, %v; want %d", got, err, want)
		}
	}
}
