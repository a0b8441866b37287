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
	heading = regexp.MustCompile(`^## RFC (\d+)$`)
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

// row is a line of a table, cut into its cells.
type row struct {
	line  int
	cells []string
}

// readNotes returns the rows of the tables and checks the shape of the page.
func readNotes(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "SPEC_NOTES.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	last := ""
	for i, line := range strings.Split(string(text), "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			// Numbers of four digits compare as text does.
			if m[1] <= last {
				t.Errorf("line %d: RFC %s comes after RFC %s", i+1, m[1], last)
			}
			last = m[1]
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| Section ") || strings.Count(line, "|") == 4 {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), "|")
		if len(cells) < 4 || strings.Count(line, "|") != 6 {
			t.Errorf("line %d: a row has five cells: %s", i+1, line)
			continue
		}
		rows = append(rows, row{i + 1, cells})
	}
	return rows
}

func TestNotesNameWhatExists(t *testing.T) {
	names := tests(t)
	rows := readNotes(t)
	if len(rows) == 0 {
		t.Fatal("no tables in SPEC_NOTES.md")
	}
	for _, r := range rows {
		for _, m := range quoted.FindAllStringSubmatch(r.cells[2], -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("line %d: %v", r.line, err)
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(r.cells[3], -1) {
			// A subtest is named behind a slash.
			name, _, _ := strings.Cut(m[1], "/")
			if !names[name] {
				t.Errorf("line %d: no test %s", r.line, m[1])
			}
		}
	}
}
