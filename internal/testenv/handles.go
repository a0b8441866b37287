package testenv

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// pointer matches an address, which is longer than any number that handles are known by.
var pointer = regexp.MustCompile("0x[0-9a-f]{9,}")

// maxHandleLine bounds what a handle prints as, in bytes.
const maxHandleLine = 200

// CheckHandles checks that each of the handles prints as one short line with the verbs
// %v and %+v, and that none of the package in the working directory was forgotten: a
// handle is an exported struct type with unexported fields and exported methods. Types
// in names are not asked for one.
func CheckHandles(t *testing.T, handles []any, names ...string) {
	t.Helper()
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
	}
	for _, h := range handles {
		name := fmt.Sprintf("%T", h)
		name, _, _ = strings.Cut(name, "[")
		seen[name[strings.LastIndexByte(name, '.')+1:]] = true
		for _, verb := range []string{"%v", "%+v"} {
			s := fmt.Sprintf(verb, h)
			if s == "" || len(s) > maxHandleLine || strings.ContainsAny(s, "\n{}") || pointer.MatchString(s) ||
				strings.Contains(s, "PANIC") {
				t.Errorf("%T prints with %s as %d bytes, want one short line: %.300q", h, verb, len(s), s)
			}
		}
	}
	for _, name := range exportedHandles(t) {
		if !seen[name] {
			t.Errorf("%s is a handle without a test of what it prints as", name)
		}
	}
}

// exportedHandles returns the handles of the package in the working directory.
func exportedHandles(t *testing.T) (list []string) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	hidden, methods := map[string]bool{}, map[string]bool{}
	var order []string
	fset := token.NewFileSet()
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && d.Name.IsExported() {
					methods[Receiver(d.Recv.List[0].Type)] = true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					ts, ok := s.(*ast.TypeSpec)
					if !ok || !ts.Name.IsExported() {
						continue
					}
					if st, ok := ts.Type.(*ast.StructType); ok {
						order = append(order, ts.Name.Name)
						hidden[ts.Name.Name] = hasUnexported(st)
					}
				}
			}
		}
	}
	for _, name := range order {
		if hidden[name] && methods[name] {
			list = append(list, name)
		}
	}
	return list
}

func hasUnexported(st *ast.StructType) bool {
	for _, f := range st.Fields.List {
		for _, n := range f.Names {
			if !n.IsExported() {
				return true
			}
		}
	}
	return false
}

// Receiver returns the name of the type of a method from the expression of its receiver.
func Receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return Receiver(x.X)
	case *ast.IndexExpr:
		return Receiver(x.X)
	case *ast.IndexListExpr:
		return Receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}
