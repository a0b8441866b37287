package main

import (
	"fmt"
	"strings"

	"github.com/weftstack/weft/mpi/internal/standard"
)

// mpiHeader returns mpi.h.
func mpiHeader(string) ([]byte, error) {
	var b strings.Builder
	b.WriteString("/* " + strings.TrimSpace(strings.TrimPrefix(header, "//")) + " */\n\n" + `/* The C interface of MPI-5.0 with the layout of its application binary interface. */
#ifndef MPI_H_INCLUDED
#define MPI_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Count;
typedef int64_t MPI_Offset;
typedef int MPI_Fint; /* INTEGER of Fortran */

typedef struct MPI_Status {
	int MPI_SOURCE;
	int MPI_TAG;
	int MPI_ERROR;
	int MPI_internal[5];
} MPI_Status;

typedef struct MPI_F08_status {
	MPI_Fint MPI_SOURCE;
	MPI_Fint MPI_TAG;
	MPI_Fint MPI_ERROR;
	MPI_Fint MPI_internal[5];
} MPI_F08_status;

`)
	handleTypes(&b)
	numbers(&b)
	b.WriteString("\n/* Functions that a program gives to MPI. */\n")
	for _, p := range standard.Procedures() {
		if p.Has("callback") {
			forms(p, func(name string, large bool) {
				fmt.Fprintf(&b, "typedef %s;\n", callback(p, name, large))
			})
		}
	}
	for _, prefix := range []string{"MPI_", "PMPI_"} {
		b.WriteString("\n")
		if prefix == "PMPI_" {
			b.WriteString("/* The same for tools that put functions of their own in front (MPI-5.0, 15.2). */\n")
		}
		for _, p := range standard.Procedures() {
			if p.InC() {
				forms(p, func(name string, large bool) {
					fmt.Fprintf(&b, "%s;\n", prototype(p, prefix+strings.TrimPrefix(name, "MPI_"), large))
				})
			}
		}
	}
	b.WriteString(removed + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n")
	return []byte(b.String()), nil
}

// callback returns the type of a callback.
func callback(p standard.Procedure, name string, large bool) string {
	return prototype(p, "("+name+")", large)
}

// handleTypes writes the types of handles: pointers to what no program sees.
func handleTypes(b *strings.Builder) {
	seen := map[string]bool{}
	for _, c := range standard.Constants() {
		if t := c.C; (c.Handle() || toolHandle(c)) && !seen[t] {
			seen[t] = true
			fmt.Fprintf(b, "typedef struct MPI_ABI_%s *%s;\n", strings.TrimPrefix(t, "MPI_"), t)
		}
	}
	for _, t := range []string{"MPI_T_event_registration", "MPI_T_event_instance"} { // without constants
		fmt.Fprintf(b, "typedef struct MPI_ABI_%s *%s;\n", strings.TrimPrefix(t, "MPI_"), t)
	}
}

// toolHandle reports whether c is a handle of the tool interface.
func toolHandle(c standard.Constant) bool { return c.Table == "TOOL_INFO_IFACE_HANDLES" }

// numbers writes the constants: enumerations of the tool interface, macros for all
// else. Macros are cast where the type is not int.
func numbers(b *strings.Builder) {
	enumerations := map[string][]string{}
	var order []string
	table := ""
	for _, c := range standard.Constants() {
		v, ok := c.Int()
		if !ok || c.C == "" {
			continue
		}
		if c.C == "MPI_T_cb_safety" || c.C == "MPI_T_source_order" {
			if enumerations[c.C] == nil {
				order = append(order, c.C)
			}
			enumerations[c.C] = append(enumerations[c.C], fmt.Sprintf("\t%s = %d", c.Name, v))
			continue
		}
		if c.Table != table {
			table = c.Table
			b.WriteString("\n")
		}
		switch {
		case c.C == "int" && v < 0:
			fmt.Fprintf(b, "#define %s (%d)\n", c.Name, v)
		case c.C == "int":
			fmt.Fprintf(b, "#define %s %d\n", c.Name, v)
		default:
			fmt.Fprintf(b, "#define %s ((%s) %d)\n", c.Name, c.C, v)
		}
	}
	for _, t := range order {
		fmt.Fprintf(b, "\ntypedef enum %s {\n%s\n} %s;\n", t, strings.Join(enumerations[t], ",\n"), t)
	}
	b.WriteString(`
#define MPI_F_STATUS_IGNORE ((MPI_Fint *) 0)
#define MPI_F_STATUSES_IGNORE ((MPI_Fint *) 0)
#define MPI_F08_STATUS_IGNORE ((MPI_F08_status *) 0)
#define MPI_F08_STATUSES_IGNORE ((MPI_F08_status *) 0)
`)
}
