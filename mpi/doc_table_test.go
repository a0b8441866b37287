package mpi

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// exported returns the exported names of the package: functions, types,
// variables, and methods as Type.Method.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = receiver(d.Recv.List[0].Type) + "." + name
				}
				names[name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = true
						if i, ok := s.Type.(*ast.InterfaceType); ok {
							for _, m := range i.Methods.List {
								for _, n := range m.Names {
									names[s.Name.Name+"."+n.Name] = true
								}
							}
						}
					case *ast.ValueSpec:
						for _, n := range s.Names {
							names[n.Name] = true
						}
					}
				}
			}
		}
	}
	return names
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// TestFunctionTable looks up the Go names in docs/mpi.md.
func TestFunctionTable(t *testing.T) {
	f, err := os.Open("../docs/mpi.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names := exported(t)
	quoted := regexp.MustCompile("`([^`]+)`")
	yes := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		cells := strings.Split(s.Text(), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "-") || strings.TrimSpace(cells[3]) == "status" {
			continue
		}
		goNames := quoted.FindAllStringSubmatch(cells[2], -1)
		switch status := strings.TrimSpace(cells[3]); status {
		case "yes", "partly":
			yes++
		case "no":
			if strings.HasPrefix(cells[1], " MPI") && len(goNames) > 0 {
				t.Errorf("%s: no, and yet there is%s", cells[1], cells[2])
			}
		case "not needed":
		default:
			t.Errorf("%s: status %q", cells[1], status)
		}
		for _, n := range goNames {
			pkg, _, _ := strings.Cut(n[1], ".")
			if !names[n[1]] && pkg != "errors" && pkg != "os" && pkg != "time" && pkg != "unsafe" {
				t.Errorf("%s: there is no %s", cells[1], n[1])
			}
		}
	}
	if yes < 100 {
		t.Errorf("the table has %d rows with something, want 100", yes)
	}
}
