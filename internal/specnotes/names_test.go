package specnotes

import (
	"go/ast"
	"go/parser"
	"go/token"
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
	names := goNames(t)
	checked := 0
	for _, p := range pages(t) {
		if p.rfc != "6458" {
			continue
		}
		for _, r := range p.requirements(t) {
			for _, m := range quoted.FindAllStringSubmatch(r.asks+r.deviation, -1) {
				if goName.MatchString(m[1]) {
					if checked++; !names[m[1]] {
						t.Errorf("%s:%d: package sctp has no %s", p.name, r.line, m[1])
					}
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d names in the table, want more than a hundred", checked)
	}
}
