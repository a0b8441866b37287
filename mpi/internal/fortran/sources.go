package fortran

import (
	"embed"
	"io/fs"
	"strings"
)

// written has the parts of the library that no rule of the generator covers.
//
//go:embed source
var written embed.FS

// Source is a source file of the bindings.
type Source struct {
	Name string
	Text string
	// Fortran says that the file is compiled only if there is a Fortran compiler:
	// one of Fortran, or one of C that needs the compiler's ISO_Fortran_binding.h.
	Fortran bool
}

// Sources returns all source files, in an order in which they can be compiled:
// modules come before those that use them.
func Sources() ([]Source, error) {
	var all []Source
	err := fs.WalkDir(written, "source", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := written.ReadFile(path)
		all = append(all, Source{d.Name(), string(text), strings.HasPrefix(d.Name(), "sections")})
		return err
	})
	if err != nil {
		return nil, err
	}
	plain, descriptors := entryPoints()
	return append(all,
		Source{"entries.c", plain, false},
		Source{"entries_f08.c", descriptors, true},
		Source{"mpif.h", include(), false},
		Source{"mpi_constants.f90", constantsModule(), true},
		Source{"mpi_sizeof.f90", sizeofModule(), true},
		Source{"mpi_types.f90", typesModule(), true},
		Source{"mpi.f90", f90Module(), true},
		Source{"mpi_callbacks.f90", callbacksModule(), true},
		Source{"mpi_f08.f90", f08Module(), true},
	), nil
}

const generatedC = "/* Generated from the facts of MPI-5.0 by weft. */\n"

// entryPoints returns the files of C with the generated entry points: those of mpif.h
// and the module mpi, which mpi_f08 shares where it can, and those with descriptors.
func entryPoints() (plain, descriptors string) {
	var p, d strings.Builder
	p.WriteString(generatedC + "#include \"fortran.h\"\n\n")
	d.WriteString(generatedC + "#include \"sections.h\"\n\n")
	for _, f := range forms() {
		if f.choice {
			d.WriteString(f.C())
		} else {
			p.WriteString(f.C())
		}
	}
	return p.String(), d.String()
}
