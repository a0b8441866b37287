package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"

	"github.com/weftstack/weft/mpi/internal/standard"
)

// bindingDir has the Go functions that the C library calls.
const bindingDir = "mpi/internal/cbinding"

// signature returns the parameters of the Go function that carries out p, as
// package cbinding declares it: addresses are uintptr, handles Handle, all other
// values int; large tells the form with MPI_Count where an element differs.
func signature(p standard.Procedure) []string {
	var types []string
	for _, q := range p.CParams(true) {
		if t := goType(q); t != "" {
			types = append(types, t)
		}
	}
	if p.WantsLarge() {
		types = append(types, "bool")
	}
	return types
}

// goType returns the type that a parameter has in package cbinding, empty for
// varargs, which Go never sees.
func goType(q standard.Param) string {
	k, _ := standard.KindOf(q.Kind)
	switch {
	case k.Class == standard.Varargs:
		return ""
	case q.Memory():
		return "uintptr"
	case k.Class == standard.Handle || k.Class == standard.Tool:
		return "Handle"
	}
	return "int"
}

// answeredInC reports whether p is written in C alone, as all are that return
// anything but an error code.
func answeredInC(p standard.Procedure) bool { _, whole := answer(p); return whole }

// bound returns the procedures that package cbinding carries out, by their names in
// C. A function of the right name with other parameters is an error.
func bound(root string) (map[string]bool, error) {
	declared, err := declarations(filepath.Join(root, filepath.FromSlash(bindingDir)))
	if err != nil {
		return nil, err
	}
	b := make(map[string]bool)
	var wrong []string
	for _, p := range standard.Procedures() {
		if !p.InC() || answeredInC(p) {
			continue
		}
		got, ok := declared[standard.GoName(p.Name)]
		if !ok {
			continue
		}
		if want := strings.Join(signature(p), ", "); got != want {
			wrong = append(wrong, fmt.Sprintf("%s(%s), want (%s) int", standard.GoName(p.Name), got, want))
			continue
		}
		b[p.Name] = true
	}
	if wrong != nil {
		err = fmt.Errorf("%s: %s", bindingDir, strings.Join(wrong, "; "))
	}
	return b, err
}

// declarations returns the types of the parameters of each function that the
// package in dir declares.
func declarations(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	declared := make(map[string]string)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			d, ok := d.(*ast.FuncDecl)
			if !ok || d.Recv != nil || !d.Name.IsExported() {
				continue
			}
			var types []string
			for _, field := range d.Type.Params.List {
				for range max(1, len(field.Names)) {
					t := "?"
					if id, ok := field.Type.(*ast.Ident); ok {
						t = id.Name
					}
					types = append(types, t)
				}
			}
			declared[d.Name.Name] = strings.Join(types, ", ")
		}
	}
	return declared, nil
}
