package fortran

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weftstack/weft/mpi/internal/standard"
)

// integers has the types of Fortran for the integers of C.
var integers = map[string]string{
	"int":        "integer",
	"MPI_Aint":   "integer(MPI_ADDRESS_KIND)",
	"MPI_Count":  "integer(MPI_COUNT_KIND)",
	"MPI_Offset": "integer(MPI_OFFSET_KIND)",
}

// declaration declares a dummy argument in an interface: its type without intent, and
// the bounds of an array.
type declaration struct {
	ftype, bounds string
	attributes    string // beginning with a comma
}

func (d declaration) of(name string) string { return d.ftype + d.attributes + " :: " + name + d.bounds }

// declare returns the declaration of a parameter for the module mpi, or for mpi_f08.
func (f form) declare(q standard.Param, f08 bool) declaration {
	ctype, class := f.kind(q)
	d := declaration{}
	if q.Array != "" {
		d.bounds = "(*)"
	}
	switch {
	case q.Kind == "LOGICAL":
		d.ftype = "logical"
	case q.Kind == "LOGICAL_VOID":
		d.ftype = "type(*)"
	case class == standard.Integer:
		d.ftype = integers[ctype]
		if q.Array == "n,3" {
			d.bounds = "(3,*)"
		}
		if strings.HasPrefix(q.Name, "array_of_errcodes") {
			d.bounds = "(*)"
		}
	case class == standard.Handle && f08:
		d.ftype = "type(" + ctype + ")"
	case class == standard.Handle:
		d.ftype = "integer"
	case q.Kind == "F08_STATUS", class == standard.Status && f08:
		d.ftype = "type(MPI_Status)"
	case class == standard.Status:
		d.ftype = "integer"
		d.bounds = "(MPI_STATUS_SIZE)"
		if q.Array != "" {
			d.bounds = "(MPI_STATUS_SIZE,*)"
		}
	case q.Kind == "F90_STATUS":
		d.ftype, d.bounds = "integer", "(MPI_STATUS_SIZE)"
	case q.Kind == "BUFFER" && f08, q.Kind == "BUFFER" && f.choice:
		d.ftype, d.bounds = "type(*), dimension(..)", ""
	case q.Kind == "BUFFER", q.Kind == "C_BUFFER2" && !f08:
		d.ftype, d.bounds = "type(*)", "(*)"
	case (q.Kind == "C_BUFFER" || q.Kind == "C_BUFFER2") && f08:
		d.ftype = "type(c_ptr)"
	case (q.Kind == "C_BUFFER3" || q.Kind == "C_BUFFER4") && f08:
		d.ftype, d.bounds, d.attributes = "type(c_ptr)", "", ", value"
	case q.Kind == "C_BUFFER", q.Kind == "EXTRA_STATE", q.Kind == "ATTRIBUTE_VAL":
		d.ftype = "integer(MPI_ADDRESS_KIND)"
	case q.Kind == "EXTRA_STATE2", q.Kind == "ATTRIBUTE_VAL_10":
		d.ftype = "integer"
	case class == standard.String:
		d.ftype, d.bounds = "character(len=*)", ""
		switch q.Kind {
		case "STRING_ARRAY":
			d.bounds = "(*)"
		case "STRING_2DARRAY":
			d.bounds = "(count,*)"
		}
	case class == standard.Function && f08:
		name := q.Func
		if f.large && q.Kind == "POLYFUNCTION" {
			name += "_c"
		}
		d.ftype = "procedure(" + name + ")"
	case class == standard.Function:
		d.ftype, d.bounds = "external", ""
	default:
		panic(fmt.Sprintf("fortran: %s: parameter %s of kind %s has no type", f.Name, q.Name, q.Kind))
	}
	return d
}

// attributes returns the attributes that mpi_f08 gives a parameter besides its type.
func (f form) attributes(q standard.Param) string {
	s := ""
	if q.Name == ierror {
		return ", optional, intent(out)"
	}
	_, class := f.kind(q)
	address := q.Kind == "BUFFER" || class == standard.Status
	switch {
	case class == standard.Function, q.Kind == "LOGICAL_VOID", slices.Contains(q.Suppress, "f08_intent"),
		q.Kind == "WEIGHT" && q.Direction == "out":
		// No intent: what a special value may stand for is not defined by the call.
	case q.Direction == "in":
		s = ", intent(in)"
	case !address:
		s = ", intent(" + q.Direction + ")"
	}
	if q.Asynchronous {
		s += ", asynchronous"
	}
	return s
}

// statement breaks a long statement of free source form at its commas.
func statement(indent, text string) string {
	var b strings.Builder
	line := indent
	for i, part := range strings.SplitAfter(text, ", ") {
		if i > 0 && len(line)+len(part) > 110 {
			b.WriteString(line + "&\n")
			line = indent + "    "
		}
		line += part
	}
	b.WriteString(line + "\n")
	return b.String()
}

// header begins a subroutine or a function in an interface.
func (f form) header(prefix string, name, bind string) string {
	var names []string
	for _, q := range f.params() {
		names = append(names, q.Name)
	}
	keyword := "subroutine"
	switch f.Result {
	case "WALL_TIME", "TICK_RESOLUTION":
		keyword = "double precision function"
	case "LOCATION_SMALL", "DISPLACEMENT":
		keyword = "integer(MPI_ADDRESS_KIND) function"
	}
	if bind != "" {
		bind = fmt.Sprintf(" bind(C, name=%q)", bind)
	}
	return statement(prefix, fmt.Sprintf("%s %s(%s)%s", keyword, name, strings.Join(names, ", "), bind)) +
		prefix + "    import\n"
}

// end ends what header begins.
func (f form) end(prefix string) string {
	if f.Result == "ERROR_CODE" || f.Result == "NOTHING" {
		return prefix + "end subroutine\n"
	}
	return prefix + "end function\n"
}

// lines returns a line for each string.
func lines(indent string, text ...string) string {
	var b strings.Builder
	for _, t := range text {
		b.WriteString(statement(indent, t))
	}
	return b.String()
}
