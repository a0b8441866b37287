package main

import (
	"fmt"
	"strings"

	"github.com/weftstack/weft/mpi/internal/standard"
)

// constants returns the Go constants of the ABI.
func constants(string) ([]byte, error) {
	var b strings.Builder
	b.WriteString("package abi\n")
	table := ""
	for _, c := range standard.Constants() {
		v, ok := c.Int()
		if !ok {
			continue // given by the implementation, or a kind of Fortran
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
