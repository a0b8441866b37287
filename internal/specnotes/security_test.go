package specnotes

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// limitName matches the names of limits in docs/security.md.
var limitName = regexp.MustCompile(`^(max[A-Z]\w*|Max[A-Z]\w*|StartupTimeout)$`)

// constants returns the names of all constants of the module.
func constants(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for _, s := range d.Specs {
					addSpec(names, s)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestSecurityNamesWhatExists checks the tables of docs/security.md.
func TestSecurityNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	known, limits, rows := tests(t), constants(t), 0
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| Class ") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 {
			t.Errorf("line %d: a row has three cells: %s", i+1, line)
			continue
		}
		rows++
		named := quoted.FindAllStringSubmatch(cells[2], -1)
		if len(named) == 0 {
			t.Errorf("line %d: no test", i+1)
		}
		for _, m := range named {
			if !known[m[1]] {
				t.Errorf("line %d: no test %s", i+1, m[1])
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			if limitName.MatchString(m[1]) && !limits[m[1]] {
				t.Errorf("line %d: no limit %s", i+1, m[1])
			}
		}
	}
	if rows < 25 {
		t.Errorf("%d rows, want them all", rows)
	}
}
