package sites

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPlaceOfHosts(t *testing.T) {
	f := parse(t, "site a\nhosts n1 n2.a.org n3.x n3.y 10.0.0.1 m[1-2]")
	for _, tt := range []struct {
		host string
		node uint16
		want string
	}{
		{"n1", 1, ""}, {"n1.a.org", 1, ""}, {"n2.a.org", 2, ""}, {"n2", 2, ""}, {"n3.x", 3, ""}, {"m2", 7, ""}, {"10.0.0.1", 5, ""},
		{"n2.b.org", 0, `dir/sites: host "n2.b.org" is in no site: want it in a line hosts`},
		{"n3", 0, `dir/sites: host "n3" may be n3.x or n3.y: want the full name`},
		{"10.0.0.2", 0, `dir/sites: host "10.0.0.2" is in no site: want it in a line hosts`},
		{"10", 0, `dir/sites: host "10" is in no site: want it in a line hosts`},
		{"", 0, `dir/sites: host "" is in no site: want it in a line hosts`},
	} {
		p, err := f.Place(tt.host, 99)
		if tt.want != "" {
			if err == nil || err.Error() != tt.want {
				t.Errorf("host %q: %v, want %s", tt.host, err, tt.want)
			}
			continue
		}
		if err != nil || p.Site != f.Sites[0] || p.Node != tt.node || p.Process != 0 {
			t.Errorf("host %q: %+v, %v; want node %d", tt.host, p, err, tt.node)
		}
	}
}

func TestPlaceOfRanks(t *testing.T) {
	f := parse(t, mesh(2, "site s2\nranks 10-12 14\ngateway g lan 10.0.0.1:1 wan 192.0.7.1:1\nleg s0 s2 key-file k"))
	for rank, site := range map[int]string{0: "s0", 1: "s1", 10: "s2", 11: "s2", 12: "s2", 14: "s2"} {
		if p, err := f.Place("any", rank); err != nil || p.Site.Name != site || p.Node != 1 || int(p.Process) != rank+1 {
			t.Errorf("rank %d: %+v, %v; want site %s", rank, p, err, site)
		}
	}
	for _, rank := range []int{-1, 2, 9, 13, 15, 1 << 20} {
		if p, err := f.Place("any", rank); err == nil || !strings.Contains(err.Error(), "is in no site: want it in a line ranks") {
			t.Errorf("rank %d: %+v, %v", rank, p, err)
		}
	}
	if got := f.RanksOf(f.Site("s2")); got != "10-12 14" {
		t.Errorf("ranks %q, want 10-12 14", got)
	}
	if !f.ByRank() || !f.Sites[0].Ranks() {
		t.Error("the file is not by rank")
	}
}

func TestProcess(t *testing.T) {
	f := parse(t, two)
	p, err := f.Place("n2", 0)
	if err != nil {
		t.Fatal(err)
	}
	key := bytes.Repeat([]byte{7}, 32)
	want := f.ProcessAt(p, 3, 77, key)
	got, err := DecodeProcess(want.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if got.Site != 1 || got.Node != 2 || got.Process != 3 || got.Job != 77 || !bytes.Equal(got.Key, key) || got.Mode != Chained ||
		len(got.Gateways) != 2 || !got.Gateways[1].Equal(f.Sites[0].Gateways[1].LANAddr()) ||
		!maps.Equal(got.Names, map[uint16]string{1: "lyon", 4: "tokyo", 5: "paris"}) {
		t.Errorf("got %+v", got)
	}
	if strings.ContainsAny(want.Encode(), "\n\r\x00") {
		t.Errorf("not one line: %q", want.Encode())
	}
}

// A text that Encode does not write is refused, and no error shows it.
func TestDecodeProcessRefuses(t *testing.T) {
	f := parse(t, two)
	p, _ := f.Place("n2", 0)
	good := f.ProcessAt(p, 3, 77, bytes.Repeat([]byte{0xab}, 32)).Encode()
	for _, change := range [][2]string{
		{good, ""}, {good, "{"}, {`"site":1`, `"site":0`}, {`"node":2`, `"node":0`}, {`"process":3`, `"process":0`}, {`"site":1`, `"site":2`},
		{`"job":77`, `"job":0`}, {`"job":77`, `"job":16777216`}, {`"mode":"chained"`, `"mode":"x"`}, {`"site":1`, `"site":65536`},
		{strings.Repeat("ab", 32), "ab"}, {strings.Repeat("ab", 32), "xy"}, {"10.0.0.254:5747", "nowhere"},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Fatalf("%q is not in %s", change[0], good)
		}
		_, err := DecodeProcess(text)
		if err == nil || strings.Contains(err.Error(), "abab") {
			t.Errorf("%q for %q: %v", change[1], change[0], err)
		}
	}
	one := parse(t, "site a\nhosts n1")
	p, _ = one.Place("n1", 0)
	if got, err := DecodeProcess(one.ProcessAt(p, 1, 0, nil).Encode()); err != nil || len(got.Gateways) != 0 || !slices.Equal(got.Key, []byte{}) {
		t.Errorf("one site: %+v, %v", got, err)
	}
}

// A process that has the file finds out the same as one that a launcher tells.
func TestProcessOf(t *testing.T) {
	dir := t.TempDir()
	if err := WriteKey(filepath.Join(dir, "jobs.key")); err != nil {
		t.Fatal(err)
	}
	f, err := Parse(filepath.Join(dir, "sites"), []byte(two))
	if err != nil {
		t.Fatal(err)
	}
	key, err := f.JobsKey()
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.ProcessOf("t3", 5, 1, 9)
	if err != nil || p.Site != 4 || p.Node != 2 || p.Process != 2 || !bytes.Equal(p.Key, JobKey(key, 9)) {
		t.Errorf("process %+v, %v", p, err)
	}
	for _, localRank := range []int{-1, MaxRank + 1} {
		if _, err := f.ProcessOf("t3", 5, localRank, 9); err == nil || !strings.Contains(err.Error(), "want 0 to 65534") {
			t.Errorf("local rank %d: %v", localRank, err)
		}
	}
	if err := os.Remove(f.JobsKeyFile); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ProcessOf("t3", 5, 1, 9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the key: %v", err)
	}
}

// A process manager that knows nothing of sites passes on variables, which choose class and mode.
func TestProcessFromEnv(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "sites")
	if err := os.WriteFile(name, []byte(two), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteKey(filepath.Join(dir, "jobs.key")); err != nil {
		t.Fatal(err)
	}
	f, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		class, mode string
		want        Mode
		err         string
	}{
		{"", "", Chained, ""}, {"bulk", "", Chained, ""}, {"fast", "piecewise", Piecewise, ""}, {"", "lossy", Lossy, ""},
		{"slow", "", "", name + `: there is no job-class "slow"`}, {"", "safe", "", `mode "safe": want piecewise, chained or lossy`},
	} {
		env := map[string]string{EnvFile: name, EnvClass: tt.class, EnvMode: tt.mode}
		p, err := ProcessFromEnv(func(k string) string { return env[k] }, "kvs_7", "n2", 1, 0)
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("class %q, mode %q: %v, want %s", tt.class, tt.mode, err, tt.err)
			}
			continue
		}
		if err != nil || p.Mode != tt.want || p.Node != 2 || p.Job != f.NamedJob("kvs_7", f.Class(tt.class)) {
			t.Errorf("class %q, mode %q: %+v, %v", tt.class, tt.mode, p, err)
		}
	}
	if f.Mode != Chained {
		t.Error("the file has changed")
	}
	if p, err := ProcessFromEnv(func(string) string { return "" }, "", "", 0, 0); p != nil || err != nil {
		t.Errorf("without a file: %+v, %v", p, err)
	}
}
