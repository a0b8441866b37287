package standard

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:embed constants.tsv
var constantTable string

// Constant is a constant with the value of the ABI.
type Constant struct {
	Name    string
	Value   string // a number, the name of a kind of iso_c_binding, or empty
	C       string // its type in C, empty if C does not have it
	Fortran string // its type in Fortran, empty if Fortran does not have it
	Table   string // the table of the standard that lists it
}

// Int returns the value of c, and false if it is not a number.
func (c Constant) Int() (int, bool) {
	v, err := strconv.Atoi(c.Value)
	return v, err == nil
}

// Handle reports whether c is a handle in C, a pointer with a fixed value
// (MPI-5.0, 20.2).
func (c Constant) Handle() bool {
	switch c.C {
	case "MPI_Comm", "MPI_Datatype", "MPI_Errhandler", "MPI_File", "MPI_Group", "MPI_Info", "MPI_Message", "MPI_Op",
		"MPI_Request", "MPI_Session", "MPI_Win":
		return true
	}
	return false
}

// Constants returns all constants in the order of the table. The caller must not
// change them.
func Constants() []Constant { return constants() }

var constants = sync.OnceValue(func() []Constant {
	c, err := parseConstants(constantTable)
	if err != nil {
		panic(err) // the table is part of the program
	}
	return c
})

func parseConstants(table string) ([]Constant, error) {
	var all []Constant
	err := rows(table, func(c []string) error {
		if len(c) != 5 || !strings.HasPrefix(c[0], "MPI_") {
			return fmt.Errorf("%q is not name, value, two types, table", c)
		}
		all = append(all, Constant{c[0], c[1], c[2], c[3], c[4]})
		return nil
	})
	return all, err
}
