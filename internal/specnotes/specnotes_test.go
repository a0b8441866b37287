package specnotes

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

var (
	quoted  = regexp.MustCompile("`([^`]+)`")
	testDef = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example|Benchmark)\w*)\(`)
)

// tests returns the names of all tests, fuzz targets, examples and benchmarks
// of the module.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(path)
		for _, m := range testDef.FindAllSubmatch(src, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestNotesNameWhatExists(t *testing.T) {
	names := tests(t)
	for _, p := range pages(t) {
		for _, r := range p.requirements(t) {
			for _, m := range quoted.FindAllStringSubmatch(r.files, -1) {
				if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
					t.Errorf("%s:%d: %v", p.name, r.line, err)
				}
			}
			for _, m := range quoted.FindAllStringSubmatch(r.tests, -1) {
				// A subtest is named behind a slash.
				name, _, _ := strings.Cut(m[1], "/")
				if !names[name] {
					t.Errorf("%s:%d: no test %s", p.name, r.line, m[1])
				}
			}
		}
	}
}
