package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weftstack/weft/mpi/internal/standard"
)

// procedures lists the functions of package cbinding for its tests, which call them all.
func procedures(root string) ([]byte, error) {
	b, err := bound(root)
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range b {
		names = append(names, standard.GoName(name))
	}
	slices.Sort(names)
	var s strings.Builder
	s.WriteString("package cbinding\n\n// procedures are the functions that C calls.\nvar procedures = map[string]any{\n")
	for _, n := range names {
		fmt.Fprintf(&s, "\t%q: %s,\n", n, n)
	}
	s.WriteString("}\n")
	return formatted(&s)
}
