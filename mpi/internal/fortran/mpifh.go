package fortran

import (
	"fmt"
	"strings"

	"github.com/weftstack/weft/mpi/internal/standard"
)

// special is a variable whose address stands for a special value.
type special struct {
	name, declaration string // as in the declaration of mpif.h, with the bounds
	ctype             string // of the module: INTEGER or CHARACTER
}

// specials has the variables that mpif.h declares, each in a common block /MPI_WEFT_…/.
var specials = []special{
	{"MPI_BOTTOM", "MPI_BOTTOM", "INTEGER"},
	{"MPI_IN_PLACE", "MPI_IN_PLACE", "INTEGER"},
	{"MPI_BUFFER_AUTOMATIC", "MPI_BUFFER_AUTOMATIC", "INTEGER"},
	{"MPI_STATUS_IGNORE", "MPI_STATUS_IGNORE(MPI_STATUS_SIZE)", "INTEGER"},
	{"MPI_STATUSES_IGNORE", "MPI_STATUSES_IGNORE(MPI_STATUS_SIZE,1)", "INTEGER"},
	{"MPI_ERRCODES_IGNORE", "MPI_ERRCODES_IGNORE(1)", "INTEGER"},
	{"MPI_UNWEIGHTED", "MPI_UNWEIGHTED(1)", "INTEGER"},
	{"MPI_WEIGHTS_EMPTY", "MPI_WEIGHTS_EMPTY(1)", "INTEGER"},
	{"MPI_ARGV_NULL", "MPI_ARGV_NULL(1)", "CHARACTER*1"},
	{"MPI_ARGVS_NULL", "MPI_ARGVS_NULL(1,1)", "CHARACTER*1"},
}

// block returns the name of the common block of s, and with an underscore the symbol.
func (s special) block() string { return "MPI_WEFT_" + strings.TrimPrefix(s.name, "MPI_") }

// constant is a named constant of Fortran.
type constant struct {
	name, value string
	ftype       string // INTEGER, LOGICAL or INTEGER(KIND=…)
	handle      string // in mpi_f08 it is of type MPI_… with this name; empty for none
}

// constants returns the named constants of Fortran.
func constants() []constant {
	var all []constant
	for _, c := range standard.Constants() {
		v := constant{name: c.Name, value: c.Value, ftype: c.Fortran}
		_, number := c.Int()
		switch {
		case c.Name == "MPI_SUBARRAYS_SUPPORTED", c.Name == "MPI_ASYNC_PROTECTS_NONBLOCKING":
			v.value = ".FALSE."
		case strings.HasSuffix(c.Name, "_KIND"):
			v.value = "8"
		case c.Name == "MPI_DISPLACEMENT_CURRENT":
			v.ftype = "INTEGER(KIND=MPI_OFFSET_KIND)"
		case c.Fortran != "INTEGER", !number, strings.HasPrefix(c.Name, "MPI_T_"),
			c.C != "int" && c.C != "" && !c.Handle():
			continue // an address, a function, or only in C
		}
		if c.Handle() {
			v.handle = c.C
		}
		all = append(all, v)
	}
	// The kinds come first, because they are the types of others. That of INTEGER is
	// the compiler's, so the ABI does not have it.
	kinds := []constant{{name: "MPI_INTEGER_KIND", value: "4", ftype: "INTEGER"}}
	var others []constant
	for _, c := range all {
		if strings.HasSuffix(c.name, "_KIND") {
			kinds = append(kinds, c)
		} else {
			others = append(others, c)
		}
	}
	return append(kinds, others...)
}

// callbackNames are the predefined callbacks of mpif.h and the module mpi.
func callbackNames() []string {
	var all []string
	for _, p := range standard.Procedures() {
		if p.Has("predefined_function") {
			all = append(all, strings.ToUpper(p.Name))
		}
	}
	return append(all, "MPI_CONVERSION_FN_NULL_C")
}

// include returns mpif.h. Every line is one of both source forms: it begins in column
// 7, ends before column 73, and is not continued.
func include() string {
	var b strings.Builder
	b.WriteString("! mpif.h of weft, generated from the facts of MPI-5.0, for fixed\n! and free source form (MPI-5.0, 19.1.4)\n")
	line := func(format string, args ...any) { fmt.Fprintf(&b, "      "+format+"\n", args...) }
	for _, c := range constants() {
		line("%s %s", c.ftype, c.name)
		line("PARAMETER (%s=%s)", c.name, c.value)
	}
	for _, s := range specials {
		line("%s %s", s.ctype, s.declaration)
		line("COMMON /%s/ %s", s.block(), s.name)
	}
	for _, name := range callbackNames() {
		line("EXTERNAL %s", name)
	}
	for _, prefix := range []string{"MPI_", "PMPI_"} {
		for _, name := range []string{"WTIME", "WTICK"} {
			line("DOUBLE PRECISION %s%s", prefix, name)
			line("EXTERNAL %s%s", prefix, name)
		}
		for _, name := range []string{"AINT_ADD", "AINT_DIFF"} {
			line("INTEGER(KIND=MPI_ADDRESS_KIND) %s%s", prefix, name)
			line("EXTERNAL %s%s", prefix, name)
		}
	}
	return b.String()
}
