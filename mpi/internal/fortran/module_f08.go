package fortran

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weftstack/weft/mpi/internal/standard"
)

// handleTypes are the derived types of handles.
var handleTypes = []string{
	"MPI_Comm", "MPI_Datatype", "MPI_Errhandler", "MPI_File", "MPI_Group", "MPI_Info", "MPI_Message", "MPI_Op",
	"MPI_Request", "MPI_Session", "MPI_Win",
}

// typesModule returns the derived types and the operators on handles (MPI-5.0, 19.1.2).
func typesModule() string {
	var b, procedures strings.Builder
	b.WriteString(generatedFortran + "module mpi_weft_types\n    implicit none\n    private\n    public :: MPI_Status, operator(==), operator(/=)\n")
	for _, t := range handleTypes {
		fmt.Fprintf(&b, "    public :: %s\n    type, bind(C) :: %s\n        integer :: MPI_VAL\n    end type\n", t, t)
	}
	b.WriteString(`    type, bind(C) :: MPI_Status
        integer :: MPI_SOURCE, MPI_TAG, MPI_ERROR
        integer, private :: internal(5)
    end type
`)
	for _, op := range []struct{ name, sign string }{{"eq", "=="}, {"ne", "/="}} {
		fmt.Fprintf(&b, "    interface operator(%s)\n", op.sign)
		for _, t := range handleTypes {
			fmt.Fprintf(&b, "        module procedure %s_%s\n", op.name, t)
			fmt.Fprintf(&procedures, `    elemental logical function %s_%s(a, b)
        type(%[2]s), intent(in) :: a, b
        %[1]s_%[2]s = a%%MPI_VAL %s b%%MPI_VAL
    end function
`, op.name, t, op.sign)
		}
		b.WriteString("    end interface\n")
	}
	b.WriteString("contains\n" + procedures.String() + "end module\n")
	return b.String()
}

// callbacksModule returns the abstract interfaces of callbacks and the predefined
// callbacks, which are those of mpif.h with handles as derived types.
func callbacksModule() string {
	var b strings.Builder
	b.WriteString(generatedFortran + `module mpi_weft_callbacks
    use mpi_weft_constants
    use mpi_weft_types
    use, intrinsic :: iso_c_binding, only: c_ptr
    implicit none
`)
	write := func(f form, name string) {
		f.Result = "NOTHING"
		b.WriteString(f.header("        ", name, ""))
		for _, q := range f.params() {
			b.WriteString(lines("            ", f.declare(q, true).of(q.Name)))
		}
		b.WriteString(f.end("        "))
	}
	for _, p := range standard.Procedures() {
		if p.Has("not_f08_expressible") || !p.Has("callback") && !p.Has("predefined_function") {
			continue
		}
		if p.Has("callback") {
			b.WriteString("    abstract interface\n")
		} else {
			b.WriteString("    interface\n")
		}
		write(form{Procedure: p}, p.Name)
		if p.HasLarge() {
			write(form{Procedure: p, large: true}, p.Name+"_C")
		}
		b.WriteString("    end interface\n")
	}
	b.WriteString("end module\n")
	return b.String()
}

// f08Module returns the module mpi_f08: generic interfaces, whose specific procedures
// are the small and the large form of each procedure.
func f08Module() string {
	var b strings.Builder
	b.WriteString(generatedFortran + `module mpi_f08
    use mpi_weft_constants
    use mpi_weft_sizeof
    use mpi_weft_types
    use mpi_weft_callbacks
    use, intrinsic :: iso_c_binding, only: c_ptr
    implicit none
    private :: c_ptr
    logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false., MPI_ASYNC_PROTECTS_NONBLOCKING = .true.
    type(MPI_Status), bind(C, name="mpi_weft_f08_status_ignore_") :: MPI_STATUS_IGNORE
    type(MPI_Status), bind(C, name="mpi_weft_f08_statuses_ignore_") :: MPI_STATUSES_IGNORE(1)
`)
	for _, c := range constants() {
		if c.handle != "" {
			b.WriteString(lines("    ", fmt.Sprintf("type(%s), parameter :: %s = %s(%s)", c.handle, c.name, c.handle, c.value)))
		}
	}
	for _, p := range procedures() {
		if p.Has("not_f08_expressible") {
			continue
		}
		small := form{Procedure: p, choice: hasChoice(p)}
		large := form{Procedure: p, choice: hasChoice(p), large: true}
		for _, prefix := range []string{"", "P"} {
			fmt.Fprintf(&b, "    interface %s%s\n", prefix, p.Name)
			small.f08(&b, prefix)
			if p.HasLarge() {
				if !small.distinct(large) {
					fmt.Fprintf(&b, "    end interface\n    interface %s%s_c\n", prefix, p.Name)
				}
				large.f08(&b, prefix)
			}
			b.WriteString("    end interface\n")
		}
	}
	b.WriteString("end module\n")
	return b.String()
}

// distinct reports whether a compiler can tell calls of f from those of g by their
// arguments, so that both can have one generic name. Integers for addresses and
// counts are of the same kind (MPI-5.0, 19.1.2: such procedures have a name with _c).
func (f form) distinct(g form) bool {
	types := func(f form) []string {
		var all []string
		for _, q := range f.params() {
			t := f.declare(q, true).ftype
			if t != "integer" && strings.HasPrefix(t, "integer") {
				t = "integer(8)"
			}
			if strings.HasPrefix(t, "procedure") {
				t = "procedure"
			}
			all = append(all, t)
		}
		return all
	}
	return !slices.Equal(types(f), types(g))
}

// f08 writes the interface of a specific procedure.
func (f form) f08(b *strings.Builder, prefix string) {
	symbol := f.symbol()
	if !f.choice && !f.large {
		symbol += "_f08"
	}
	name := prefix + "MPI_" + symbol
	bind := strings.ToLower(name) + "_"
	if !f.choice {
		bind = "" // an external procedure of Fortran, with the lengths of its strings
	}
	b.WriteString(f.header("        ", name, bind))
	for _, q := range f.params() {
		d := f.declare(q, true)
		d.attributes += f.attributes(q)
		b.WriteString(lines("            ", d.of(q.Name)))
	}
	b.WriteString(f.end("        "))
}
