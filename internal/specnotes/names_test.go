package specnotes

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goNames returns what package sctp exports: functions, types and constants by
// name, fields and methods behind that of their type.
func goNames(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "sctp/*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal("no package sctp: ", err)
	}
	names := make(map[string]bool)
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					addSpec(names, s)
				}
			}
		}
	}
	return names
}

// receiver returns the type that a method is of, with a dot.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	x := d.Recv.List[0].Type
	if p, ok := x.(*ast.StarExpr); ok {
		x = p.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name + "."
	}
	return "?."
}

func addSpec(names map[string]bool, s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			names[n.Name] = true
		}
	case *ast.TypeSpec:
		names[s.Name.Name] = true
		var members *ast.FieldList
		switch x := s.Type.(type) {
		case *ast.StructType:
			members = x.Fields
		case *ast.InterfaceType:
			members = x.Methods
		default:
			return
		}
		for _, f := range members.List {
			for _, n := range f.Names {
				names[s.Name.Name+"."+n.Name] = true
			}
		}
	}
}

var goName = regexp.MustCompile(`^[A-Z][A-Za-z]*(\.[A-Z][A-Za-z]*)?$`)

// TestNamesOfTheSocketsAPIExist checks that package sctp has what the table of RFC
// 6458 says that its options and functions are called.
func TestNamesOfTheSocketsAPIExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "SPEC_NOTES.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := goNames(t)
	_, section, ok := strings.Cut(string(text), "\n## RFC 6458\n")
	if !ok {
		t.Fatal("no table of RFC 6458")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	checked := 0
	for _, line := range strings.Split(section, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 7 {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[2]+cells[5], -1) {
			if goName.MatchString(m[1]) {
				if checked++; !names[m[1]] {
					t.Errorf("package sctp has no %s: %s", m[1], line)
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d names in the table, want more than a hundred", checked)
	}
}
