package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weftstack/weft/mpi/internal/standard"
)

// procedures lists the functions of all chapters for a test that calls them all.
func procedures(root string) ([]byte, error) {
	b, err := bound(root)
	if err != nil {
		return nil, err
	}
	var s strings.Builder
	s.WriteString("package cbinding_test\n\n" + imports(slices.Collect(maps.Values(b))))
	s.WriteString("\n// procedures are the functions that C calls.\nvar procedures = map[string]any{\n")
	goNames := make(map[string]string)
	for name, chapter := range b {
		goNames[standard.GoName(name)] = chapter
	}
	for _, n := range slices.Sorted(maps.Keys(goNames)) {
		fmt.Fprintf(&s, "\t%q: %s.%s,\n", n, goNames[n], n)
	}
	s.WriteString("}\n")
	return formatted(&s)
}

// imports returns the import declaration of chapters, which may repeat, and of other packages of the module.
func imports(chapters []string, others ...string) string {
	var b strings.Builder
	b.WriteString("import (\n")
	for _, p := range others {
		fmt.Fprintf(&b, "\t%q\n", modulePath+"/"+p)
	}
	slices.Sort(chapters)
	for _, c := range slices.Compact(chapters) {
		fmt.Fprintf(&b, "\t%q\n", modulePath+"/"+bindingDir+"/"+c)
	}
	b.WriteString(")\n")
	return b.String()
}

const modulePath = "github.com/weftstack/weft"
