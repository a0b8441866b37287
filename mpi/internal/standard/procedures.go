package standard

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
)

//go:embed procedures.tsv
var procedureTable string

// Procedure is a procedure, a type of callback, or a predefined callback.
type Procedure struct {
	Name   string // as in C: MPI_Type_create_f90_real
	Result string // kind of the result: ERROR_CODE for most, NOTHING for none
	Flags  []string
	Params []Param
}

// Param is a parameter of a procedure.
type Param struct {
	Name      string
	Kind      string // the standard's language-independent kind: POLYXFER_NUM_ELEM_NNI
	Direction string // in, out or inout
	// Array is the length of an array as the standard writes it, with "*" for one
	// that is not named, and empty if the parameter is no array.
	Array     string
	Pointer   bool // passed by reference in C although it is input
	LargeOnly bool // there only in the form with MPI_Count
	// Asynchronous is true if the call may use the memory after its return, which a
	// Fortran compiler must be told.
	Asynchronous bool
	Func         string
	Suppress     []string // where the parameter is left out: c_parameter, f90_parameter, f08_parameter
}

// Procedures returns all procedures, in alphabetical order. The caller must not
// change them.
func Procedures() []Procedure { return procedures() }

var procedures = sync.OnceValue(func() []Procedure {
	p, err := parseProcedures(procedureTable)
	if err != nil {
		panic(err) // the table is part of the program
	}
	return p
})

// rows calls f with the columns of each line of a table that is not a comment.
func rows(table string, f func(columns []string) error) error {
	for i, line := range strings.Split(strings.TrimSuffix(table, "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if err := f(strings.Split(line, "\t")); err != nil {
			return fmt.Errorf("standard: line %d: %w", i+1, err)
		}
	}
	return nil
}

func parseProcedures(table string) ([]Procedure, error) {
	var all []Procedure
	err := rows(table, func(c []string) error {
		if len(c) < 3 || !strings.HasPrefix(c[0], "MPI_") {
			return fmt.Errorf("%q is not name, result, flags, parameters", c)
		}
		p := Procedure{Name: c[0], Result: c[1]}
		if c[2] != "" {
			p.Flags = strings.Split(c[2], ",")
		}
		for _, column := range c[3:] {
			if column == "" {
				continue
			}
			q, err := parseParam(column)
			if err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			p.Params = append(p.Params, q)
		}
		all = append(all, p)
		return nil
	})
	return all, err
}

func parseParam(column string) (Param, error) {
	f := strings.Split(column, ":")
	if len(f) < 3 || !slices.Contains([]string{"in", "out", "inout"}, f[2]) {
		return Param{}, fmt.Errorf("%q is not name:KIND:direction", column)
	}
	p := Param{Name: f[0], Kind: f[1], Direction: f[2]}
	for _, attribute := range f[3:] {
		key, value, _ := strings.Cut(attribute, "=")
		switch {
		case strings.HasPrefix(attribute, "array[") && strings.HasSuffix(attribute, "]"):
			p.Array = attribute[len("array[") : len(attribute)-1]
		case attribute == "pointer":
			p.Pointer = true
		case attribute == "large-only":
			p.LargeOnly = true
		case key == "func":
			p.Func = value
		case key == "suppress":
			p.Suppress = strings.Split(value, "+")
		case attribute == "asynchronous":
			p.Asynchronous = true
		case attribute == "optional": // ierror of the module mpi_f08
		default:
			return p, fmt.Errorf("parameter %s: attribute %q is unknown", p.Name, attribute)
		}
	}
	if _, ok := kinds[p.Kind]; !ok {
		return p, fmt.Errorf("parameter %s: kind %q is unknown", p.Name, p.Kind)
	}
	return p, nil
}

// Has reports whether p has a flag: callback, predefined_function,
// not_c_expressible, not_f90_expressible or not_f08_expressible.
func (p Procedure) Has(flag string) bool { return slices.Contains(p.Flags, flag) }

// InC reports whether p is a function that a C program can call.
func (p Procedure) InC() bool {
	return !p.Has("callback") && !p.Has("predefined_function") && !p.Has("not_c_expressible")
}

// HasLarge reports whether p has a second form, its name with _c at the end, that
// has MPI_Count where the first has int (MPI-5.0, 2.5.6).
func (p Procedure) HasLarge() bool {
	return slices.ContainsFunc(p.Params, func(q Param) bool { return q.LargeOnly || strings.HasPrefix(q.Kind, "POLY") })
}

// CParams returns the parameters of p in C: without ierror, and, unless large, those
// that only the form for MPI_Count has.
func (p Procedure) CParams(large bool) []Param {
	var in []Param
	for _, q := range p.Params {
		if slices.Contains(q.Suppress, "c_parameter") || q.LargeOnly && !large {
			continue
		}
		in = append(in, q)
	}
	return in
}

// largeEnvelope are constructors without such a parameter: MPI_Type_get_envelope must
// tell from the datatype whether a form with MPI_Count has made it (MPI-5.0, 5.1.13).
var largeEnvelope = []string{"MPI_Type_contiguous", "MPI_Type_vector", "MPI_Type_create_hvector", "MPI_Type_create_hindexed_block",
	"MPI_Type_create_resized"}

// WantsLarge reports whether Go must be told which form C has called: an array or an
// output has int elements in one form and 64-bit ones in the other, a callback has
// one of two types, or the envelope of a datatype differs. MPI_Aint, MPI_Count and
// MPI_Offset all have 64 bits.
func (p Procedure) WantsLarge() bool {
	return slices.Contains(largeEnvelope, p.Name) || p.InC() && slices.ContainsFunc(p.Params, func(q Param) bool {
		k := kinds[q.Kind]
		return k.Small == "int" && k.Large != "int" && q.Memory() || q.Kind == "POLYFUNCTION"
	})
}

// Memory reports whether C passes the address of q rather than its value.
func (q Param) Memory() bool {
	return q.Array != "" || q.Pointer || q.Direction != "in" || kinds[q.Kind].address
}

// GoName returns the Go name of a C name: without MPI_, the parts between
// underscores joined in camel case, X before a digit. MPI_Type_create_f90_real is
// TypeCreateF90Real, MPI_ERR_COMM ErrComm, MPI_2INT X2int.
func GoName(c string) string {
	var b strings.Builder
	for i, part := range strings.Split(strings.TrimPrefix(c, "MPI_"), "_") {
		r := []rune(strings.ToLower(part))
		if i == 0 && len(r) > 0 && unicode.IsDigit(r[0]) {
			b.WriteByte('X')
		}
		if len(r) > 0 {
			r[0] = unicode.ToUpper(r[0])
		}
		b.WriteString(string(r))
	}
	return b.String()
}
