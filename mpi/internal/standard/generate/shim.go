package main

import (
	"fmt"
	"strings"

	"github.com/weftstack/weft/mpi/internal/standard"
)

// answers are C statements for what C knows itself: they return a result, or leave
// the call to the Go function, which also reports the errors.
var answers = map[string]string{
	"MPI_Comm_rank":    "if (rank && weft_cached(weft_comm_ranks, (uintptr_t)comm, &value)) return *rank = value, MPI_SUCCESS;",
	"MPI_Comm_size":    "if (size && weft_cached(weft_comm_sizes, (uintptr_t)comm, &value)) return *size = value, MPI_SUCCESS;",
	"MPI_Type_size":    "if (size && weft_cached(weft_type_sizes, (uintptr_t)datatype, &value)) return *size = value, MPI_SUCCESS;",
	"MPI_Type_size_x":  "if (size && weft_cached(weft_type_sizes, (uintptr_t)datatype, &value)) return *size = value, MPI_SUCCESS;",
	"MPI_Initialized":  "if (flag) return *flag = weft_phase() >= 1, MPI_SUCCESS;",
	"MPI_Finalized":    "if (flag) return *flag = weft_phase() == 2, MPI_SUCCESS;",
	"MPI_Get_address":  "if (address) return *address = (MPI_Aint)location, MPI_SUCCESS;",
	"MPI_Aint_add":     "return (MPI_Aint)((uintptr_t)base + (uintptr_t)disp);",
	"MPI_Aint_diff":    "return (MPI_Aint)((uintptr_t)addr1 - (uintptr_t)addr2);",
	"MPI_Wtime":        "return weft_wtime();",
	"MPI_Wtick":        "return weft_wtick();",
	"MPI_Status_c2f":   "return weft_copy_status(c_status, f_status);",
	"MPI_Status_c2f08": "return weft_copy_status(c_status, f08_status);",
	"MPI_Status_f082c": "return weft_copy_status(f08_status, c_status);",
	"MPI_Status_f2c":   "return weft_copy_status(f_status, c_status);",
	"MPI_Status_f082f": "return weft_copy_status(f08_status, f_status);",
	"MPI_Status_f2f08": "return weft_copy_status(f_status, f08_status);",
}

// answer returns the statements for a procedure, and whether they are all of it.
func answer(p standard.Procedure) (text string, whole bool) {
	text = answers[p.Name]
	name := func() string { return p.CParams(false)[0].Name }
	switch {
	case strings.HasSuffix(p.Name, "_c2f"), strings.HasSuffix(p.Name, "_toint"):
		if text == "" {
			text = fmt.Sprintf("return (int)(intptr_t)%s;", name())
		}
	case strings.HasSuffix(p.Name, "_f2c"), strings.HasSuffix(p.Name, "_fromint"):
		if text == "" {
			k, _ := standard.KindOf(p.Result)
			text = fmt.Sprintf("return (%s)(intptr_t)%s;", k.Small, name())
		}
	}
	return text, strings.HasPrefix(text, "return")
}

// shim returns the C functions of a chapter: PMPI_x, and MPI_x as a weak name of the
// same, so that a tool can put its own in front.
func shim(root, chapter string) ([]byte, error) {
	in, err := bound(root)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(header + "//go:build linux && cgo\n\n")
	b.WriteString("#include \"shim.h\"\n")
	for _, p := range standard.Procedures() {
		if !p.InC() || chapterOf(p.Name) != chapter {
			continue
		}
		text, whole := answer(p)
		if !whole && in[p.Name] == "" {
			continue
		}
		forms(p, func(name string, large bool) {
			pname := "P" + name
			fmt.Fprintf(&b, "\n#pragma weak %s = %s\n%s\n{\n", name, pname, prototype(p, pname, large))
			if strings.Contains(text, "&value") {
				b.WriteString("\tint value;\n")
			}
			if text != "" {
				b.WriteString("\t" + text + "\n")
			}
			if !whole {
				fmt.Fprintf(&b, "\treturn weft_%s(%s);\n", standard.GoName(p.Name), arguments(p, large))
			}
			b.WriteString("}\n")
		})
	}
	return []byte(b.String()), nil
}

// arguments returns what the C function passes to Go: addresses and handles as
// integers, because a special value must not be a pointer in Go.
func arguments(p standard.Procedure, large bool) string {
	var args []string
	for _, q := range p.CParams(true) {
		t := goType(q)
		switch {
		case t == "":
		case q.LargeOnly && !large:
			args = append(args, "0")
		case t == "int":
			args = append(args, q.Name)
		default:
			args = append(args, "(GoUintptr)"+q.Name)
		}
	}
	if p.WantsLarge() {
		args = append(args, map[bool]string{false: "0", true: "1"}[large])
	}
	return strings.Join(args, ", ")
}

// exports returns the Go functions that the C functions of a chapter call.
func exports(root, chapter string) ([]byte, error) {
	in, err := bound(root)
	if err != nil {
		return nil, err
	}
	var b, body strings.Builder
	var used, others []string
	for _, p := range standard.Procedures() {
		if in[p.Name] == "" || chapterOf(p.Name) != chapter {
			continue
		}
		if _, whole := answer(p); whole {
			continue
		}
		used = append(used, in[p.Name])
		name := standard.GoName(p.Name)
		var params, args []string
		for _, q := range p.CParams(true) {
			// A prefix keeps names of C from being keywords or packages of Go.
			switch t := goType(q); t {
			case "":
			case handleType:
				params = append(params, "p_"+q.Name+" uintptr")
				others = []string{"mpi/internal/abi"}
				args = append(args, handleType+"(p_"+q.Name+")")
			default:
				params = append(params, "p_"+q.Name+" "+t)
				args = append(args, "p_"+q.Name)
			}
		}
		if p.WantsLarge() {
			params = append(params, "large bool")
			args = append(args, "large")
		}
		fmt.Fprintf(&body, "\n//export weft_%s\nfunc weft_%s(%s) (code int32) {\n\tdefer recovered(%q, &code)\n", name, name,
			strings.Join(params, ", "), p.Name)
		fmt.Fprintf(&body, "\treturn int32(%s.%s(%s))\n}\n", in[p.Name], name, strings.Join(args, ", "))
	}
	b.WriteString("//go:build linux && cgo\n\npackage main\n\nimport \"C\"\n")
	if body.Len() > 0 {
		b.WriteString("\n" + imports(used, others...))
	}
	b.WriteString(body.String())
	return formatted(&b)
}
