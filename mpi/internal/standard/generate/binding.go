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

// bindingDir has a directory for each chapter of the standard, with the Go functions that the C library calls.
const bindingDir = "mpi/internal/cbinding"

// signature returns the parameters of the Go function that carries out p, as
// a chapter of cbinding declares it: addresses are uintptr, handles abi.Handle, all other
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

// handleType is the Go type of handles that are passed in.
const handleType = "abi.Handle"

// goType returns the type that a parameter has in Go, empty for
// varargs, which Go never sees.
func goType(q standard.Param) string {
	k, _ := standard.KindOf(q.Kind)
	switch {
	case k.Class == standard.Varargs:
		return ""
	case q.Memory():
		return "uintptr"
	case k.Class == standard.Handle || k.Class == standard.Tool:
		return handleType
	}
	return "int"
}

// answeredInC reports whether p is written in C alone, as all are that return
// anything but an error code.
func answeredInC(p standard.Procedure) bool { _, whole := answer(p); return whole }

// A function is a Go function that may carry out a procedure.
type function struct {
	chapter string   // its package below bindingDir
	params  string   // the types of its parameters
	again   []string // other chapters that declare its name
}

// bound returns the chapters that carry out the procedures, by the names of these in
// C. A function of the right name with other parameters is an error, and so are two.
func bound(root string) (map[string]string, error) {
	declared, err := declarations(root)
	if err != nil {
		return nil, err
	}
	b := make(map[string]string)
	var wrong []string
	for _, p := range standard.Procedures() {
		if !p.InC() || answeredInC(p) {
			continue
		}
		got, ok := declared[standard.GoName(p.Name)]
		if !ok {
			continue
		}
		if got.again != nil {
			wrong = append(wrong, fmt.Sprintf("%s is in %s and in %s", standard.GoName(p.Name), got.chapter,
				strings.Join(got.again, ", ")))
			continue
		}
		if want := strings.Join(signature(p), ", "); got.params != want {
			wrong = append(wrong, fmt.Sprintf("%s.%s(%s), want (%s) int",
				got.chapter, standard.GoName(p.Name), got.params, want))
			continue
		}
		b[p.Name] = got.chapter
	}
	if wrong != nil {
		err = fmt.Errorf("%s: %s", bindingDir, strings.Join(wrong, "; "))
	}
	return b, err
}

// declarations returns the exported functions of all chapters.
func declarations(root string) (map[string]function, error) {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(bindingDir), "*", "*.go"))
	if err != nil {
		return nil, err
	}
	declared := make(map[string]function)
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
			if was, ok := declared[d.Name.Name]; ok {
				was.again = append(was.again, f.Name.Name)
				declared[d.Name.Name] = was
				continue
			}
			declared[d.Name.Name] = function{chapter: f.Name.Name, params: parameterTypes(d)}
		}
	}
	return declared, nil
}

// parameterTypes returns the types of the parameters of a function, with commas between.
func parameterTypes(d *ast.FuncDecl) string {
	var names []string
	for _, field := range d.Type.Params.List {
		for range max(1, len(field.Names)) {
			name := "?"
			switch t := field.Type.(type) {
			case *ast.Ident:
				name = t.Name
			case *ast.SelectorExpr:
				name = fmt.Sprintf("%s.%s", t.X, t.Sel)
			}
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
