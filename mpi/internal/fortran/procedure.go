package fortran

import (
	"slices"
	"strings"

	"github.com/weftstack/weft/mpi/internal/standard"
)

// form is a form of a procedure that has an entry point of its own.
type form struct {
	standard.Procedure
	large  bool // counts are INTEGER(KIND=MPI_COUNT_KIND)
	choice bool // choice buffers are descriptors, as in the module mpi_f08
}

// ierror is the parameter that returns the error code.
const ierror = "ierror"

// inFortran reports whether Fortran has a procedure (and not only C).
func inFortran(p standard.Procedure) bool {
	return !p.Has("callback") && !p.Has("predefined_function") && !p.Has("not_f90_expressible") && p.Name != "MPI_Sizeof"
}

// procedures returns the procedures that Fortran can call, without MPI_Sizeof, which
// is Fortran itself.
func procedures() []standard.Procedure {
	var in []standard.Procedure
	for _, p := range standard.Procedures() {
		if inFortran(p) {
			in = append(in, p)
		}
	}
	return in
}

// handWritten has the procedures whose entry points are in the directory source.
var handWritten = []string{
	"MPI_Attr_get", "MPI_Attr_put", "MPI_Buffer_detach", "MPI_Comm_create_keyval", "MPI_Comm_detach_buffer",
	"MPI_Comm_get_attr", "MPI_Comm_set_attr", "MPI_Comm_spawn", "MPI_Comm_spawn_multiple", "MPI_F_sync_reg",
	"MPI_Grequest_start", "MPI_Info_create_env", "MPI_Info_get", "MPI_Info_get_string", "MPI_Init", "MPI_Init_thread",
	"MPI_Keyval_create", "MPI_Pcontrol", "MPI_Register_datarep", "MPI_Session_detach_buffer",
	"MPI_Session_get_nth_pset", "MPI_Status_f082f", "MPI_Status_f2f08", "MPI_Type_create_keyval", "MPI_Type_get_attr",
	"MPI_Type_set_attr", "MPI_Win_create_keyval", "MPI_Win_get_attr", "MPI_Win_set_attr",
}

// params returns the parameters of f in Fortran, ierror among them.
func (f form) params() []standard.Param {
	var in []standard.Param
	for _, q := range f.Params {
		if slices.Contains(q.Suppress, "f90_parameter") || q.LargeOnly && !f.large || q.Kind == "VARARGS" {
			continue
		}
		in = append(in, q)
	}
	return in
}

// kind returns what the parameter is in C.
func (f form) kind(q standard.Param) (ctype string, class standard.Class) {
	k, _ := standard.KindOf(q.Kind)
	if f.large {
		return k.Large, k.Class
	}
	return k.Small, k.Class
}

// c returns the name of the function of C, with _c if f is the form for large counts.
func (f form) c() string {
	if f.large {
		return f.Name + "_c"
	}
	return f.Name
}

// symbol returns the name of the entry point without mpi_ and the underscore at the
// end. mpif.h and the module mpi have plain names; a specific procedure of mpi_f08
// has the suffix that MPI-5.0, 19.1.5 gives it.
func (f form) symbol() string {
	name := strings.ToLower(strings.TrimPrefix(f.c(), "MPI_"))
	switch {
	case f.choice:
		return name + "_f08ts"
	case f.large:
		return name + "_f08"
	}
	return name
}

// hasChoice reports whether p has a choice buffer.
func hasChoice(p standard.Procedure) bool {
	return slices.ContainsFunc(p.Params, func(q standard.Param) bool { return q.Kind == "BUFFER" })
}

// forms returns all forms with an entry point that is generated.
func forms() []form {
	var all []form
	for _, p := range procedures() {
		hand := slices.Contains(handWritten, p.Name)
		if !hand {
			all = append(all, form{Procedure: p})
		}
		if p.Has("not_f08_expressible") || p.Name == "MPI_F_sync_reg" {
			continue
		}
		if hasChoice(p) {
			all = append(all, form{Procedure: p, choice: true})
		}
		if p.HasLarge() && p.Name != "MPI_Register_datarep" {
			all = append(all, form{Procedure: p, large: true, choice: hasChoice(p)})
		}
	}
	return all
}

// own returns the indices of the count and the datatype that describe the choice
// buffer i, and false if they describe other buffers too, or several parts of it.
func (f form) own(params []standard.Param, i int) (count, datatype int, ok bool) {
	name := strings.ToLower(f.Name)
	switch {
	case i > 0 && params[i-1].Kind == "BUFFER", strings.Contains(name, "alltoall"), i+2 >= len(params):
		return 0, 0, false
	case strings.Contains(name, "gather") && params[i].Name != "sendbuf":
		return 0, 0, false
	case strings.Contains(name, "scatter") && params[i].Name != "recvbuf":
		return 0, 0, false
	}
	c, d := params[i+1], params[i+2]
	if strings.Contains(c.Kind, "NUM_ELEM") && c.Array == "" && d.Kind == "DATATYPE" && d.Array == "" {
		return i + 1, i + 2, true
	}
	return 0, 0, false
}
