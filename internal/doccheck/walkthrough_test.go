package doccheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

const architecture = "docs/architecture.md"

// functions returns the files that declare each function of the module, methods by
// Type.Method.
func functions(t *testing.T) map[string][]string {
	t.Helper()
	declared := make(map[string][]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if d.IsDir() && name != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				id := f.Name.Name
				if f.Recv != nil {
					id = testenv.Receiver(f.Recv.List[0].Type) + "." + id
				}
				declared[id] = append(declared[id], filepath.ToSlash(name))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return declared
}

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	step   = regexp.MustCompile("^\\| .+ \\| (`[^|]+) \\| (`[^|]+) \\|$")
)

// TestWalkThroughs checks each step of the walk-throughs: its functions are declared
// in its files, and each file declares one of them. With -update it mends the files of
// functions that have moved.
func TestWalkThroughs(t *testing.T) {
	declared := functions(t)
	lines := strings.Split(read(t, architecture), "\n")
	steps := 0
	for i, line := range lines {
		m := step.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		steps++
		var files, found []string
		for _, q := range quoted.FindAllStringSubmatch(m[1], -1) {
			files = append(files, q[1])
		}
		for _, q := range quoted.FindAllStringSubmatch(m[2], -1) {
			in := declared[q[1]]
			k := slices.IndexFunc(in, func(f string) bool { return slices.Contains(files, f) })
			switch {
			case k >= 0:
				found = append(found, in[k])
			case len(in) == 0:
				t.Errorf("%s:%d: no function %s", architecture, i+1, q[1])
			case len(in) == 1 && *update:
				found = append(found, in[0])
			default:
				t.Errorf("%s:%d: %s is not in %v but in %v", architecture, i+1, q[1], files, in)
			}
		}
		slices.Sort(found)
		found = slices.Compact(found)
		if *update {
			lines[i] = strings.Replace(line, m[1], "`"+strings.Join(inOrder(files, found), "`, `")+"`", 1)
			continue
		}
		for _, f := range files {
			if !slices.Contains(found, f) {
				t.Errorf("%s:%d: %s declares none of the functions", architecture, i+1, f)
			}
		}
	}
	if steps < 30 {
		t.Errorf("%d steps, want those of all walk-throughs", steps)
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(architecture)), []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// inOrder returns the files found, those that were there before in their old order.
func inOrder(files, found []string) []string {
	kept := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !slices.Contains(found, f) })
	for _, f := range found {
		if !slices.Contains(kept, f) {
			kept = append(kept, f)
		}
	}
	return kept
}

// TestArchitectureNamesFiles checks the other files and directories that the page names.
func TestArchitectureNamesFiles(t *testing.T) {
	for i, line := range strings.Split(read(t, architecture), "\n") {
		for _, q := range quoted.FindAllStringSubmatch(line, -1) {
			if !strings.Contains(q[1], "/") || strings.ContainsAny(q[1], " *{") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(q[1]))); err != nil {
				t.Errorf("%s:%d: %v", architecture, i+1, err)
			}
		}
	}
}
