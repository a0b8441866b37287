package main

import (
	"fmt"
	"strings"

	"github.com/weftstack/weft/mpi/internal/standard"
)

// toolTables is how the names of the tables of the tool information interface begin (MPI-5.0, Chapter 15).
const toolTables = "TOOL_INFO_"

// constants returns the Go constants of the ABI, but those of toolConstants.
func constants(string) ([]byte, error) {
	return tables(func(table string) bool { return !strings.HasPrefix(table, toolTables) })
}

// toolConstants returns the Go constants of the tool information interface.
func toolConstants(string) ([]byte, error) {
	return tables(func(table string) bool { return strings.HasPrefix(table, toolTables) })
}

// tables returns the Go constants of the tables that are wanted.
func tables(wanted func(table string) bool) ([]byte, error) {
	var b strings.Builder
	b.WriteString("package abi\n")
	table := ""
	for _, c := range standard.Constants() {
		v, ok := c.Int()
		if !ok || !wanted(c.Table) {
			continue // given by the implementation, a kind of Fortran, or of another file
		}
		if c.Table != table {
			if table != "" {
				b.WriteString(")\n")
			}
			table = c.Table
			fmt.Fprintf(&b, "\n// Table %s.\nconst (\n", strings.ToLower(strings.ReplaceAll(table, "_", " ")))
		}
		fmt.Fprintf(&b, "\t%s = %d // %s\n", standard.GoName(c.Name), v, c.Name)
	}
	b.WriteString(")\n")
	return formatted(&b)
}
