package cbinding

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/standard"
)

// This file has errors of package mpi speak of MPI as C has it.

// inC returns the text of an error of a call for a program in C.
func inC(proc string, err error) string {
	text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "mpi: "), ": mpi: ", ": ")
	// Package mpi names the collective, as the procedure does.
	text = strings.TrimSuffix(text, fmt.Sprintf(" (in %s)", strings.ToLower(strings.TrimPrefix(proc, "MPI_"))))
	switch {
	case errors.Is(err, mpi.ErrTypeMismatch):
		text = goElement.ReplaceAllStringFunc(text, func(s string) string {
			if name, ok := elementNames[s]; ok {
				return name
			}
			return s
		})
	case errors.Is(err, mpi.ErrOp):
		text = goOperator.ReplaceAllStringFunc(text, func(s string) string {
			if name := ": MPI_" + strings.ToUpper(s[2:]); isConstant(name[2:]) {
				return name
			}
			return s
		})
	case errors.Is(err, mpi.ErrMode):
		text = goFileCall.ReplaceAllString(text, "not allowed with ")
		text = goFileMode.ReplaceAllStringFunc(text, func(s string) string { return cmp.Or(fileModes[s], s) })
	case errors.Is(err, mpi.ErrBuffer):
		text = strings.Replace(text, ": nil, with ", ": NULL, with ", 1)
	}
	return text
}

// goOperator matches the name of an operator as package mpi has it, behind a colon.
var goOperator = regexp.MustCompile(`: [a-z]+\b`)

// isConstant reports whether there is a constant of that name.
func isConstant(name string) bool {
	for _, c := range standard.Constants() {
		if c.Name == name {
			return true
		}
	}
	return false
}

// goElement matches names of elements as package mpi has them.
var goElement = regexp.MustCompile(`\b(int|uint|float|complex|bool)\d*\b`)

// elementNames are those of C.
var elementNames = map[string]string{
	"int8": "MPI_INT8_T", "int16": "MPI_SHORT", "int32": "MPI_INT", "int64": "MPI_INT64_T",
	"uint8": "MPI_UINT8_T", "uint16": "MPI_UNSIGNED_SHORT", "uint32": "MPI_UNSIGNED", "uint64": "MPI_UINT64_T",
	"float32": "MPI_FLOAT", "float64": "MPI_DOUBLE", "complex64": "MPI_C_FLOAT_COMPLEX",
	"complex128": "MPI_C_DOUBLE_COMPLEX", "bool": "MPI_C_BOOL",
}

// goFileCall matches the method that an access mode of a file does not allow; the procedure is named already.
var goFileCall = regexp.MustCompile(`\bFile\.[A-Za-z]+ with `)

// goFileMode matches access modes of files as package mpi has them.
var goFileMode = regexp.MustCompile(`\bFile[A-Z][A-Za-z]+\b`)

// fileModes are those of C.
var fileModes = map[string]string{
	"FileRead": "MPI_MODE_RDONLY", "FileWrite": "MPI_MODE_WRONLY", "FileReadWrite": "MPI_MODE_RDWR",
	"FileCreate": "MPI_MODE_CREATE", "FileExclusive": "MPI_MODE_EXCL", "FileAppend": "MPI_MODE_APPEND",
	"FileSequential": "MPI_MODE_SEQUENTIAL", "FileUnique": "MPI_MODE_UNIQUE_OPEN", "FileDeleteOnClose": "MPI_MODE_DELETE_ON_CLOSE",
}

// className returns the name of an error class, MPI_ERR_RANK, or the text of a code of the program.
func className(code int) string {
	if class, ok := ClassOf(code); ok && class <= lastClass {
		code = class
	}
	name, _, _ := strings.Cut(ClassText(code), ":")
	return name
}

// HandleName returns the name of a predefined handle, MPI_COMM_NULL, or the number.
func HandleName(h abi.Handle) string {
	if h < abi.MaxPredefined {
		for _, c := range standard.Constants() {
			if v, ok := c.Int(); ok && c.Handle() && abi.Handle(v) == h {
				return c.Name
			}
		}
	}
	return fmt.Sprintf("%#x", uint(h))
}
