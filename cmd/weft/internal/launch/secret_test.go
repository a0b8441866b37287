package launch

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A name server that is started again with its file keeps its secret.
func TestNameServerKeepsItsSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "names")
	first, err := keptSecret(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := writePrivate(file, "127.0.0.1:1/"+first); err != nil {
		t.Fatal(err)
	}
	if again, err := keptSecret(file); err != nil || again != first {
		t.Errorf("secret %q, %v; want %q", again, err, first)
	}
	if text, err := readNameServer(file); err != nil || text != "127.0.0.1:1/"+first {
		t.Errorf("read %q, %v", text, err)
	}
	if st, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", st.Mode(), err)
	}
}

// A secret is taken from files with mode 0600, and never from arguments.
func TestNameServerFileIsPrivate(t *testing.T) {
	dir := t.TempDir()
	write := func(text string, mode os.FileMode) string {
		name := filepath.Join(dir, "f")
		os.Remove(name)
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, tt := range []struct{ name, file, want string }{
		{"secret as argument", "127.0.0.1:99/secret", "command lines"},
		{"no such file", filepath.Join(dir, "none"), "none"},
		{"two lines", write("127.0.0.1:1/x\ny\n", 0o600), "one line"},
	} {
		if text, err := readNameServer(tt.file); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %q, %v; want an error with %q", tt.name, text, err, tt.want)
		}
	}
	for _, text := range []string{"", "nonsense\n", "127.0.0.1/x\n", "127.0.0.1:1/\n", strings.Repeat("x", 2*maxSecretFile)} {
		if got, err := readNameServer(write(text, 0o600)); err == nil {
			t.Errorf("%.20q was taken for %q", text, got)
		}
		if _, err := keptSecret(write(text, 0o600)); err == nil {
			t.Errorf("%.20q was taken for the file of a name server", text)
		}
	}
	if runtime.GOOS != "windows" {
		if text, err := readNameServer(write("127.0.0.1:1/x\n", 0o640)); err == nil || !strings.Contains(err.Error(), "0640") {
			t.Errorf("from a file that others can read: %q, %v", text, err)
		}
	}
}
