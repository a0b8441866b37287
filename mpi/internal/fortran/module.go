package fortran

import (
	"fmt"
	"strings"
)

const generatedFortran = "! Generated from the facts of MPI-5.0 by weft.\n"

// constantsModule returns the constants that the modules mpi and mpi_f08 share: all
// but handles and statuses.
func constantsModule() string {
	var b strings.Builder
	b.WriteString(generatedFortran + "module mpi_weft_constants\n    use, intrinsic :: iso_c_binding, only: c_char\n    implicit none\n")
	for _, c := range constants() {
		if c.handle == "" && c.name != "MPI_SUBARRAYS_SUPPORTED" && c.name != "MPI_ASYNC_PROTECTS_NONBLOCKING" {
			b.WriteString(lines("    ", fmt.Sprintf("%s, parameter :: %s = %s", c.ftype, c.name, c.value)))
		}
	}
	for _, s := range specials {
		if !strings.HasPrefix(s.name, "MPI_STATUS") {
			attributes := ""
			if s.name == "MPI_BUFFER_AUTOMATIC" {
				attributes = "target, " // c_loc of it is what MPI_Buffer_detach returns (MPI-5.0, 3.6)
			}
			b.WriteString(lines("    ", fmt.Sprintf("%s, %sbind(C, name=%q) :: %s", s.module(), attributes, s.symbol(), s.declaration)))
		}
	}
	b.WriteString("end module\n")
	return b.String()
}

func (s special) symbol() string { return strings.ToLower(s.block()) + "_" }

// module returns the type of s in a module.
func (s special) module() string {
	if s.ctype == "INTEGER" {
		return "integer"
	}
	return "character(kind=c_char, len=1)"
}

// f90Module returns the module mpi: explicit interfaces of all procedures, for the
// names with MPI_ and with PMPI_. Choice buffers take anything (MPI-5.0, 19.1.3).
func f90Module() string {
	var b strings.Builder
	b.WriteString(generatedFortran + `module mpi
    use mpi_weft_constants
    use mpi_weft_sizeof
    use mpi_weft_types
    use, intrinsic :: iso_c_binding, only: c_ptr
    implicit none
    private :: c_ptr
    logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false., MPI_ASYNC_PROTECTS_NONBLOCKING = .false.
`)
	for _, c := range constants() {
		if c.handle != "" {
			b.WriteString(lines("    ", fmt.Sprintf("integer, parameter :: %s = %s", c.name, c.value)))
		}
	}
	for _, s := range specials {
		if strings.HasPrefix(s.name, "MPI_STATUS") {
			b.WriteString(lines("    ", fmt.Sprintf("integer, bind(C, name=%q) :: %s", s.symbol(), s.declaration)))
		}
	}
	for _, name := range callbackNames() {
		b.WriteString("    external :: " + name + "\n")
	}
	for _, p := range procedures() {
		f := form{Procedure: p}
		for _, prefix := range []string{"", "P"} {
			name := prefix + f.Name
			if f.pointer() {
				// With a TYPE(C_PTR) the same entry point takes the address (MPI-5.0, 9.2).
				fmt.Fprintf(&b, "    interface %s\n", name)
				f.f90(&b, name+"_weft", strings.ToLower(name)+"_", false)
				f.f90(&b, name+"_cptr", strings.ToLower(name)+"_", true)
			} else {
				b.WriteString("    interface\n")
				f.f90(&b, name, "", false)
			}
			b.WriteString("    end interface\n")
		}
	}
	b.WriteString("end module\n")
	return b.String()
}

// pointer reports whether f returns an address.
func (f form) pointer() bool {
	for _, q := range f.Params {
		if q.Kind == "C_BUFFER" {
			return true
		}
	}
	return false
}

// f90 writes an interface of the module mpi.
func (f form) f90(b *strings.Builder, name, bind string, cptr bool) {
	b.WriteString(f.header("        ", name, bind))
	for _, q := range f.params() {
		d := f.declare(q, false)
		if q.Kind == "C_BUFFER" && cptr {
			d.ftype = "type(c_ptr)"
		}
		if d.ftype == "type(*)" && d.bounds != "" {
			fmt.Fprintf(b, "            !GCC$ ATTRIBUTES NO_ARG_CHECK :: %s\n", q.Name)
		}
		b.WriteString(lines("            ", d.of(q.Name)))
	}
	b.WriteString(f.end("        "))
}

// sizeofModule returns MPI_Sizeof for the types of Fortran (MPI-5.0, 19.1.9).
func sizeofModule() string {
	types := []string{"character(len=*)"}
	for _, t := range []string{"integer", "logical"} {
		for _, k := range []string{"1", "2", "4", "8", "16"} {
			types = append(types, t+"("+k+")")
		}
	}
	for _, t := range []string{"real", "complex"} {
		for _, k := range []string{"4", "8", "10", "16"} {
			types = append(types, t+"("+k+")")
		}
	}
	var b, procedures strings.Builder
	b.WriteString(generatedFortran + "module mpi_weft_sizeof\n    implicit none\n    private\n    public :: MPI_Sizeof, PMPI_Sizeof\n")
	for _, generic := range []string{"MPI_Sizeof", "PMPI_Sizeof"} {
		fmt.Fprintf(&b, "    interface %s\n", generic)
		for i := range types {
			fmt.Fprintf(&b, "        module procedure sizeof_%d\n", i)
		}
		b.WriteString("    end interface\n")
	}
	for i, t := range types {
		fmt.Fprintf(&procedures, `    subroutine sizeof_%d(x, size, ierror)
        %s, dimension(..) :: x
        integer, intent(out) :: size
        integer, optional, intent(out) :: ierror
        size = storage_size(x) / 8
        if (present(ierror)) ierror = 0
    end subroutine
`, i, t)
	}
	b.WriteString("contains\n" + procedures.String() + "end module\n")
	return b.String()
}
