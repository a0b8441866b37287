package environment

import (
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// ErrorClass is MPI_Error_class.
func ErrorClass(errorcode int, errorclass uintptr) int {
	class, ok := cbinding.ClassOf(errorcode)
	if !ok {
		return cbinding.Fail("MPI_Error_class", cbinding.ArgError(abi.ErrArg, "errorcode", errorcode, "is no error code"))
	}
	return cbinding.Fail("MPI_Error_class", cbinding.SetInt(errorclass, class, false))
}

// ErrorString is MPI_Error_string.
func ErrorString(errorcode int, text, resultlen uintptr) int {
	if _, ok := cbinding.ClassOf(errorcode); !ok {
		return cbinding.Fail("MPI_Error_string", cbinding.ArgError(abi.ErrArg, "errorcode", errorcode, "is no error code"))
	}
	return cbinding.Fail("MPI_Error_string",
		cbinding.SetStr(text, resultlen, cbinding.CodeText(errorcode), abi.MaxErrorString))
}

// AddErrorClass is MPI_Add_error_class.
func AddErrorClass(errorclass uintptr) int {
	const proc = "MPI_Add_error_class"
	if errorclass == 0 {
		return cbinding.Fail(proc, cbinding.NullError("errorclass"))
	}
	return cbinding.Fail(proc, cbinding.SetInt(errorclass, cbinding.AddClass(), false))
}

// AddErrorCode is MPI_Add_error_code.
func AddErrorCode(errorclass int, errorcode uintptr) int {
	const proc = "MPI_Add_error_code"
	if errorcode == 0 {
		return cbinding.Fail(proc, cbinding.NullError("errorcode"))
	}
	n, err := cbinding.AddCode(errorclass)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, cbinding.SetInt(errorcode, n, false))
}

// AddErrorString is MPI_Add_error_string.
func AddErrorString(errorcode int, text uintptr) int {
	const proc = "MPI_Add_error_string"
	s, err := cbinding.Str("string", text, abi.MaxErrorString)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, cbinding.SetCodeText(errorcode, s))
}

// RemoveErrorClass is MPI_Remove_error_class.
func RemoveErrorClass(errorclass int) int {
	return cbinding.Fail("MPI_Remove_error_class", cbinding.RemoveCode("errorclass", errorclass, true))
}

// RemoveErrorCode is MPI_Remove_error_code.
func RemoveErrorCode(errorcode int) int {
	return cbinding.Fail("MPI_Remove_error_code", cbinding.RemoveCode("errorcode", errorcode, false))
}

// RemoveErrorString is MPI_Remove_error_string.
func RemoveErrorString(errorcode int) int {
	return cbinding.Fail("MPI_Remove_error_string", cbinding.SetCodeText(errorcode, ""))
}
