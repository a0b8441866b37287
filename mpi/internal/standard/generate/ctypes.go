package main

import (
	"fmt"
	"strings"

	"github.com/weftstack/weft/mpi/internal/standard"
)

// notConst are input buffers that the standard's prototypes do not qualify with const.
var notConst = map[string]bool{
	"MPI_Buffer_attach": true, "MPI_Comm_attach_buffer": true, "MPI_Session_attach_buffer": true, "MPI_Free_mem": true,
	"MPI_Win_create": true, "MPI_Win_attach": true,
}

// declaration returns the declaration of parameter q of p in C, in the form with
// MPI_Count if large.
func declaration(p standard.Procedure, q standard.Param, large bool) string {
	k, _ := standard.KindOf(q.Kind)
	t := k.Small
	if large {
		t = k.Large
	}
	in := q.Direction == "in"
	switch k.Class {
	case standard.Varargs:
		return "..."
	case standard.Address:
		if q.Kind == "BUFFER" && in && !notConst[p.Name] {
			return "const void *" + q.Name
		}
		return "void *" + q.Name
	case standard.Function:
		if q.Func != "" {
			t = q.Func
			if large && q.Kind == "POLYFUNCTION" {
				t += "_c"
			}
			return t + " *" + q.Name
		}
		return t + " " + q.Name
	case standard.String:
		switch {
		case q.Kind == "STRING_ARRAY", q.Kind == "ARGUMENT_LIST" && !hasPointer(p):
			return "char *" + q.Name + "[]"
		case q.Kind == "STRING_2DARRAY":
			return "char **" + q.Name + "[]"
		case q.Kind == "ARGUMENT_LIST":
			return "char ***" + q.Name
		case in:
			return "const char *" + q.Name
		}
		return "char *" + q.Name
	case standard.Status:
		if q.Array != "" {
			return t + " " + q.Name + "[]"
		}
		return constant(in) + t + " *" + q.Name
	case standard.Fint:
		if q.Kind == "F90_STATUS" {
			return constant(in) + t + " *" + q.Name
		}
	}
	switch {
	case q.Array == "n,3":
		return t + " " + q.Name + "[][3]"
	case q.Kind == "WEIGHT": // gcc takes MPI_UNWEIGHTED for an array of no length
		return constant(in) + t + " *" + q.Name
	case q.Array != "":
		return constant(in) + t + " " + q.Name + "[]"
	case q.Memory():
		return t + " *" + q.Name
	}
	return t + " " + q.Name
}

// hasPointer reports whether p gets the address of argv: MPI_Init does, and
// MPI_Info_create_env does not.
func hasPointer(p standard.Procedure) bool { return p.Name != "MPI_Info_create_env" }

func constant(in bool) string {
	if in {
		return "const "
	}
	return ""
}

// prototype returns the declaration of p under another name, without a semicolon.
func prototype(p standard.Procedure, name string, large bool) string {
	var params []string
	for _, q := range p.CParams(large) {
		params = append(params, declaration(p, q, large))
	}
	if params == nil {
		params = []string{"void"}
	}
	k, _ := standard.KindOf(p.Result)
	return fmt.Sprintf("%s %s(%s)", k.Small, name, strings.Join(params, ", "))
}

// forms calls f for each form of p.
func forms(p standard.Procedure, f func(name string, large bool)) {
	f(p.Name, false)
	if p.HasLarge() {
		f(p.Name+"_c", true)
	}
}
