package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"strings"
)

const module = "github.com/weftstack/weft/"

// room is what is measured of a package and those below it.
type room struct {
	name           string
	files          int
	lines          int
	packages       int
	largestPackage int // lines
	longestFile    int // lines
	component      int // files of the largest strongly connected component
	assocMethods   int // methods of core.Assoc, in the core
}

// rooms are what is measured: each root stands for itself and the packages below
// its directory.
var rooms = []struct{ name, root string }{
	{"mpi", "mpi"},
	{"core", "sctp/internal/core"},
}

// measure counts the rooms of the module at root.
func measure(root string) ([]room, error) {
	var measured []room
	for _, r := range rooms {
		all, err := list(root, "./"+r.root)
		if err != nil {
			return nil, err
		}
		m := room{name: r.name}
		for _, p := range all {
			path, inside := strings.CutPrefix(p.ImportPath, module+r.root)
			if !inside || path != "" && path[0] != '/' {
				continue
			}
			if err := m.add(p, all); err != nil {
				return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
			}
		}
		measured = append(measured, m)
	}
	return measured, nil
}

// add counts package p, whose imports all has.
func (m *room) add(p pkg, all []pkg) error {
	m.packages++
	lines := 0
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		n := bytes.Count(text, []byte("\n"))
		if !generated(text) { // generated code is not read
			m.longestFile = max(m.longestFile, n)
		}
		lines += n
	}
	m.files += len(p.GoFiles)
	m.lines += lines
	m.largestPackage = max(m.largestPackage, lines)

	s, err := check(p, all)
	if err != nil {
		return err
	}
	m.component = max(m.component, largest(s.dependencies()))
	if strings.HasSuffix(p.ImportPath, "/core") {
		for _, f := range s.files {
			m.assocMethods += methods(f, "Assoc")
		}
	}
	return nil
}

// generated reports whether a file says in its first line that a program wrote it.
func generated(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return bytes.HasPrefix(line, []byte("// Code generated ")) && bytes.HasSuffix(bytes.TrimSpace(line), []byte(" DO NOT EDIT."))
}

// methods counts the methods of the named type that f declares.
func methods(f *ast.File, name string) int {
	n := 0
	for _, d := range f.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok || d.Recv == nil {
			continue
		}
		x := d.Recv.List[0].Type
		if star, ok := x.(*ast.StarExpr); ok {
			x = star.X
		}
		if id, ok := x.(*ast.Ident); ok && id.Name == name {
			n++
		}
	}
	return n
}

// largest returns the size of the largest strongly connected component of a graph,
// by Tarjan's algorithm.
func largest(edges map[string][]string) int {
	var (
		size    = 1 // a node without edges is a component of its own
		number  = map[string]int{}
		low     = map[string]int{}
		onStack = map[string]bool{}
		stack   []string
		visit   func(v string)
	)
	visit = func(v string) {
		number[v] = len(number) + 1
		low[v] = number[v]
		stack = append(stack, v)
		onStack[v] = true
		for _, w := range edges[v] {
			if number[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if onStack[w] {
				low[v] = min(low[v], number[w])
			}
		}
		if low[v] != number[v] {
			return
		}
		n := 0
		for {
			w := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			onStack[w] = false
			n++
			if w == v {
				break
			}
		}
		size = max(size, n)
	}
	for v := range edges {
		if number[v] == 0 {
			visit(v)
		}
	}
	return size
}
