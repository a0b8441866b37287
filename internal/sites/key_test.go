package sites

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestKeyFiles(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "k")
	if err := WriteKey(name); err != nil {
		t.Fatal(err)
	}
	key, err := ReadKey(name)
	if err != nil || len(key) != newKey {
		t.Fatalf("key of %d bytes, %v", len(key), err)
	}
	if err := WriteKey(name); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file that exists: %v", err)
	}
	if again, err := ReadKey(name); err != nil || !bytes.Equal(key, again) {
		t.Errorf("the key has changed: %v", err)
	}
	if st, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if err := WriteKey(filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	if other, _ := ReadKey(filepath.Join(dir, "other")); bytes.Equal(key, other) {
		t.Error("two keys are the same")
	}
}

func TestBadKeyFiles(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name, text string
		mode       os.FileMode
		want       string
	}{
		{"good", strings.Repeat("0a", MinKey) + "\n", 0o600, ""},
		{"read-only", strings.Repeat("0a", MaxKey), 0o400, ""},
		{"short", strings.Repeat("0a", MinKey-1), 0o600, "has 15 bytes: want at least 16, so 32 hexadecimal digits"},
		{"long", strings.Repeat("0a", MaxKey+1), 0o600, "want one line of 32 to 512 hexadecimal digits"},
		{"words", "secret words", 0o600, "want one line of 32 to 512 hexadecimal digits"},
		{"two", strings.Repeat("0a", MinKey) + "\n" + strings.Repeat("0a", MinKey), 0o600, "want one line of 32 to 512 hexadecimal digits"},
		{"empty", "", 0o600, "has 0 bytes: want at least 16"},
		{"group", strings.Repeat("0a", MinKey), 0o640, "has mode 0640: others may read it; want 0600 (chmod 600"},
		{"world", strings.Repeat("0a", MinKey), 0o604, "has mode 0604: others may read it; want 0600 (chmod 600"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.Contains(tt.want, "mode") {
				t.Skip("no modes on Windows")
			}
			name := filepath.Join(dir, tt.name)
			if err := os.WriteFile(name, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(name, tt.mode); err != nil {
				t.Fatal(err)
			}
			_, err := ReadKey(name)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), name)):
				t.Errorf("got %v, want %q", err, tt.want)
			case tt.text != "" && err != nil && strings.Contains(err.Error(), tt.text):
				t.Errorf("the error %v shows the key", err)
			}
		})
	}
	if _, err := ReadKey(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := ReadKey(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestKeysOfJobsAndSites(t *testing.T) {
	m := hmac.New(sha256.New, []byte("key"))
	m.Write([]byte("weft job\x00\x01\x02\x03"))
	if got := JobKey([]byte("key"), 0x010203); !bytes.Equal(got, m.Sum(nil)) {
		t.Errorf("key %x, want %x", got, m.Sum(nil))
	}
	if bytes.Equal(JobKey([]byte("key"), 1), SiteKey([]byte("key"), 1)) || bytes.Equal(JobKey([]byte("key"), 1), JobKey([]byte("key"), 2)) {
		t.Error("keys are the same")
	}
}

// A job number tells the class, and is in range, whatever the random number.
func TestJobNumbers(t *testing.T) {
	for _, text := range []string{"site a", "site a\njob-class x", two} {
		f := parse(t, text)
		for i := range len(f.Classes) + 1 {
			var c *Class
			if i > 0 {
				c = f.Classes[i-1]
			}
			for _, r := range []uint32{0, 1, MaxJob, MaxJob + 1, MaxJob + 2, 1<<32 - 1, 12345678} {
				if job := f.jobNumber(r, c); job == 0 || job > MaxJob || f.JobClass(job) != c {
					t.Errorf("%d classes, class %d, random %d: job %d of class %v", len(f.Classes), i, r, job, f.JobClass(job))
				}
			}
			if f.JobClass(TCPJob) != nil {
				t.Error("the gateways' own job has a class")
			}
			if job := f.NewJob(c); f.JobClass(job) != c {
				t.Errorf("job %d has the class %v, want %v", job, f.JobClass(job), c)
			}
			if a, b := f.NamedJob("kvs_1", c), f.NamedJob("kvs_2", c); a == b || a != f.NamedJob("kvs_1", c) {
				t.Errorf("jobs %d and %d", a, b)
			}
		}
	}
}
