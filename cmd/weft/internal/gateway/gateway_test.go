package gateway

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
)

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-sites", "x"}, {"-site", "x"}, {"-sites", "x", "-site", "y", "z"}, {"-x"},
		{"-sites", "x", "-site", "y", "-memory", "1"}, {"-sites", "x", "-site", "y", "-max-flows", "0"},
		{"-sites", "x", "-site", "y", "-status", "here"}, {"-sites", "x", "-site", "y", "-bind-wan", "1.2.3.4"},
	} {
		clitest.WantMisused(t, "weft gateway", append([]string{"gateway"}, args...)...)
	}
	for _, tt := range [][]string{{"keygen"}, {"keygen", "a", "b"}, {"check"}, {"check", "a", "b"}, {"status", "a", "b"}, {"status", "a"}, {"status", "-wait", "-1s"}} {
		clitest.WantMisused(t, "weft gateway "+tt[0], append([]string{"gateway"}, tt...)...)
	}
}

func TestHelp(t *testing.T) {
	for _, name := range []string{"", "status", "check", "keygen"} {
		args := []string{"gateway", name, "-h"}
		want := "usage: weft gateway " + name
		if name == "" {
			args, want = []string{"gateway", "-h"}, "usage: weft gateway -sites"
		}
		if out, errs, status := clitest.Weft(t, "", args...); status != 0 || errs != "" || !strings.HasPrefix(out, want) {
			t.Errorf("weft %q: status %d", args, status)
		}
	}
}

// A gateway that cannot run says why at once.
func TestBadConfigurations(t *testing.T) {
	file := twoSites(t)
	dir := filepath.Dir(file)
	change := func(name string, old, new string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), old) {
			t.Fatalf("no %q in the file", old)
		}
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(strings.Replace(string(b), old, new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	open := filepath.Join(dir, "open.key")
	if err := os.WriteFile(open, []byte(strings.Repeat("ab", 32)), 0o644); err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(dir, "short.key")
	if err := os.WriteFile(short, []byte("abcd"), 0o600); err != nil {
		t.Fatal(err)
	}
	one := filepath.Join(dir, "one")
	if err := os.WriteFile(one, []byte("jobs key-file jobs.key\nsite a\ngateway x lan 127.0.0.1:1 wan 127.0.0.1:2"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"no file", []string{"-sites", filepath.Join(dir, "none"), "-site", "a"}, "sites file: open " + filepath.Join(dir, "none")},
		{"mistake", []string{"-sites", change("mistake", "ranks 0", "rank 0"), "-site", "a"}, `mistake:3: "rank": want jobs, mode,`},
		{"site", []string{"-sites", file, "-site", "c"}, "-site c: " + file + " has no such site, but a, b"},
		{"gateway", []string{"-sites", file, "-site", "a", "-gateway", "z"}, "-gateway z: site a has no such gateway, but x, y"},
		{"which gateway", []string{"-sites", file, "-site", "a"}, "site a has several gateways: want -gateway with one of x, y"},
		{"no jobs key", []string{"-sites", change("nojobs", "jobs.key", "none.key"), "-site", "b"}, "key: open " + filepath.Join(dir, "none.key")},
		{"no leg key", []string{"-sites", change("noleg", "wan.key", "none.key"), "-site", "b"}, ":9: leg a b: key: open " + filepath.Join(dir, "none.key")},
		{"open key", []string{"-sites", change("openkey", "wan.key", "open.key"), "-site", "b"}, open + " has mode 0644: others may read it; want 0600 (chmod 600 " + open + ")"},
		{"short key", []string{"-sites", change("shortkey", "wan.key", "short.key"), "-site", "b"}, short + " has 2 bytes: want at least 16"},
		{"one site", []string{"-sites", one, "-site", "a"}, "there is one site only: nothing to relay"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "open key" && runtime.GOOS == "windows" {
				t.Skip("no modes on Windows")
			}
			_, errs, status := clitest.Weft(t, "", append([]string{"gateway"}, tt.args...)...)
			if status != 1 || !strings.HasPrefix(errs, "weft gateway: ") || !strings.Contains(errs, tt.want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("status %d, want 1 and %q:\n%s", status, tt.want, errs)
			}
		})
	}
}

func TestKeygen(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key")
	if out, errs, status := clitest.Weft(t, "", "gateway", "keygen", name); status != 0 || out != "" || errs != "" {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
	before, err := os.ReadFile(name)
	if err != nil || len(before) != 65 {
		t.Errorf("%d bytes, %v", len(before), err)
	}
	if _, errs, status := clitest.Weft(t, "", "gateway", "keygen", name); status != 1 || !strings.Contains(errs, name) {
		t.Errorf("over a file that exists: status %d, %s", status, errs)
	}
	if after, _ := os.ReadFile(name); string(after) != string(before) {
		t.Error("the key was overwritten")
	}
}

func TestCheck(t *testing.T) {
	file := twoSites(t)
	out, errs, status := clitest.Weft(t, "", "gateway", "check", file)
	if status != 0 || errs != "" {
		t.Fatalf("status %d, %s", status, errs)
	}
	for _, want := range []string{"mode piecewise", "800Mb/s", "a     b   the leg", "bulk           2       400Mb/s", filepath.Join(filepath.Dir(file), "wan.key")} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q", want)
		}
	}
	if err := os.Remove(filepath.Join(filepath.Dir(file), "wan.key")); err != nil {
		t.Fatal(err)
	}
	out, _, status = clitest.Weft(t, "", "gateway", "check", "-json", file)
	var c checked
	if err := json.Unmarshal([]byte(out), &c); status != 0 || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	if len(c.Sites) != 2 || c.Sites[1].Number != 3 || c.Sites[1].Ranks != "1" || len(c.Sites[0].Gateways) != 2 || len(c.Legs) != 1 ||
		len(c.Routes) != 1 || strings.Join(c.Routes[0].Path, " ") != "a b" || len(c.Keys) != 1 || !strings.HasSuffix(c.Keys[0].File, "wan.key") {
		t.Errorf("%+v", c)
	}
	if err := os.WriteFile(file, []byte("site"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, errs, status := clitest.Weft(t, "", "gateway", "check", file); status != 1 || !strings.Contains(errs, file+":1: site \"\": want a name") {
		t.Errorf("status %d, %s", status, errs)
	}
}
