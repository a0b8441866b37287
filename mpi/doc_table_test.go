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

	"github.com/weftstack/weft/internal/testenv"
)

// exported returns the exported names of the package: functions, types,
// variables, and methods as Type.Method. typed are the functions that take a *Datatype or a
// Buffer, or lists of them.
func exported(t *testing.T) (names, typed map[string]bool) {
	t.Helper()
	names, typed = make(map[string]bool), make(map[string]bool)
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
					name = testenv.Receiver(d.Recv.List[0].Type) + "." + name
				}
				names[name] = true
				for _, p := range d.Type.Params.List {
					typed[name] = typed[name] || isDatatype(p.Type)
				}
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
	return names, typed
}

func isDatatype(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ArrayType:
		return isDatatype(e.Elt)
	case *ast.StarExpr:
		id, ok := e.X.(*ast.Ident)
		return ok && id.Name == "Datatype"
	case *ast.Ident:
		return e.Name == "Buffer" // items of a datatype
	}
	return false
}

// takesDatatype matches the functions of the standard that move data described by a
// datatype. Those of windows with predefined datatypes only are not among them.
var takesDatatype = regexp.MustCompile(`^MPI_(I?([bsr]?send|m?recv|sendrecv|sendrecv_replace)|Send(_init)?|[BSR]send(_init)?|Recv(_init)?|Mrecv|` +
	`Sendrecv|Sendrecv_replace|P(send|recv)_init|Reduce_local|` +
	`(B|Ib)cast|(G|Ig)atherv?|(S|Is)catterv?|(A|Ia)llgatherv?|(A|Ia)lltoall[vw]?|(R|Ir)educe|(A|Ia)llreduce|` +
	`(R|Ir)educe_scatter(_block)?|(S|Is)can|(E|Ie)xscan|(Bcast|Gatherv?|Scatterv?|Allgatherv?|Alltoall[vw]?|Reduce|Allreduce|Reduce_scatter(_block)?|Scan|Exscan)_init|` +
	`(N|In)eighbor_all(gatherv?|toall[vw]?)|Neighbor_all(gatherv?|toall[vw]?)_init|` +
	`Put|Get|Accumulate|Get_accumulate|Rput|Rget|Raccumulate|Rget_accumulate|` +
	`File_i?(read|write)(_at|_shared)?(_all)?|File_(read|write)_(at_all|all|ordered)(_begin)?|File_(read|write)_ordered)$`)

// TestFunctionTable looks up the Go names in docs/mpi.md, and has rows say what is so
// about datatypes.
func TestFunctionTable(t *testing.T) {
	f, err := os.Open("../docs/mpi.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names, typed := exported(t)
	status := regexp.MustCompile(`^(yes|partly: .+|no|not needed)$`)
	function := regexp.MustCompile(`MPI_[A-Za-z0-9_]+`)
	seen := make(map[string]bool)
	quoted := regexp.MustCompile("`([^`]+)`")
	yes, data := 0, 0
	for s := bufio.NewScanner(f); s.Scan(); {
		cells := strings.Split(s.Text(), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "-") || strings.TrimSpace(cells[3]) == "status" {
			continue
		}
		goNames := quoted.FindAllStringSubmatch(cells[2], -1)
		st := strings.TrimSpace(cells[3])
		if !status.MatchString(st) {
			t.Errorf("%s: status %q", cells[1], st)
		}
		if st == "no" && strings.HasPrefix(cells[1], " MPI") && len(goNames) > 0 {
			t.Errorf("%s: no, and yet there is%s", cells[1], cells[2])
		}
		if st == "yes" || strings.HasPrefix(st, "partly") {
			yes++
		}
		forms, missing := 0, 0
		for _, n := range goNames {
			if typed[n[1]] {
				forms++
			}
		}
		for _, m := range function.FindAllString(cells[1], -1) {
			if seen[m] {
				t.Errorf("%s is in two rows", m)
			}
			seen[m] = true
			if takesDatatype.MatchString(m) {
				missing++
				data++
			}
		}
		if st == "yes" && forms < missing {
			t.Errorf("%s: yes, but %d of %d functions with a datatype have a Go form with one", cells[1], forms, missing)
		}
		for _, n := range goNames {
			pkg, _, _ := strings.Cut(n[1], ".")
			if !names[n[1]] && pkg != "errors" && pkg != "os" && pkg != "time" && pkg != "unsafe" {
				t.Errorf("%s: there is no %s", cells[1], n[1])
			}
		}
	}
	if yes < 100 || data < 123 {
		t.Errorf("the table has %d rows with something and %d functions that move data, want 100 and 123", yes, data)
	}
}
