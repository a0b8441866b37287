package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// pkg is a package as go list describes it.
type pkg struct {
	ImportPath string
	Dir        string
	Export     string
	GoFiles    []string
	Standard   bool
	ImportMap  map[string]string
}

// list returns the packages that patterns name and all that those import, lower
// ones first, with the files that a build for Linux on amd64 takes.
func list(root string, patterns ...string) ([]pkg, error) {
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps",
		"-json=ImportPath,Dir,Export,GoFiles,Standard,ImportMap"}, patterns...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, &stderr)
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// source is a package with its syntax and what its identifiers mean.
type source struct {
	files []*ast.File
	fset  *token.FileSet
	types *types.Package
	info  types.Info
}

// check parses and type-checks p. What it imports is read from the compiler's
// export data, which all contains.
func check(p pkg, all []pkg) (*source, error) {
	s := &source{
		fset: token.NewFileSet(),
		info: types.Info{Uses: map[*ast.Ident]types.Object{}},
	}
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, f)
	}
	export := make(map[string]string, len(all))
	for _, q := range all {
		export[q.ImportPath] = q.Export
	}
	open := func(path string) (io.ReadCloser, error) {
		if mapped, ok := p.ImportMap[path]; ok {
			path = mapped
		}
		return os.Open(export[path])
	}
	conf := types.Config{
		Importer: importer.ForCompiler(s.fset, "gc", open),
		Sizes:    types.SizesFor("gc", "amd64"),
	}
	var err error
	s.types, err = conf.Check(p.ImportPath, s.fset, s.files, &s.info)
	return s, err
}

// file returns the name of the file that pos lies in.
func (s *source) file(pos token.Pos) string { return s.fset.Position(pos).Filename }

// declaredOutside reports whether o is a name that one file shows to others: a
// package-level name, a method or a field.
func (s *source) declaredOutside(o types.Object) bool {
	if o.Pkg() != s.types {
		return false
	}
	switch o := o.(type) {
	case *types.Var:
		return o.IsField() || o.Parent() == s.types.Scope()
	case *types.Func:
		return true
	}
	return o.Parent() == s.types.Scope()
}

// dependencies returns, for each file, the other files of the package whose names
// it uses.
func (s *source) dependencies() map[string][]string {
	type edge struct{ from, to string }
	seen := make(map[edge]bool)
	deps := make(map[string][]string)
	for id, o := range s.info.Uses {
		if !s.declaredOutside(o) {
			continue
		}
		// A member of an instantiated type has the position of its origin.
		e := edge{s.file(id.Pos()), s.file(o.Pos())}
		if e.from != e.to && !seen[e] {
			seen[e] = true
			deps[e.from] = append(deps[e.from], e.to)
		}
	}
	return deps
}
