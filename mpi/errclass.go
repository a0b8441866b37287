package mpi

import "github.com/weftstack/weft/mpi/internal/mpierr"

// Class is an MPI error class (MPI-4.1, Section 9.4). Errors of this package are
// told apart with errors.Is; classes are for programs that report, or
// translate, them in the terms of the standard.
type Class int

// The classes that errors of this package have. The standard calls them MPI_SUCCESS,
// MPI_ERR_BUFFER and so on.
const (
	ClassSuccess           Class = mpierr.ClassSuccess
	ClassBuffer            Class = mpierr.ClassBuffer
	ClassCount             Class = mpierr.ClassCount
	ClassType              Class = mpierr.ClassType
	ClassTag               Class = mpierr.ClassTag
	ClassComm              Class = mpierr.ClassComm
	ClassRank              Class = mpierr.ClassRank
	ClassRequest           Class = mpierr.ClassRequest
	ClassRoot              Class = mpierr.ClassRoot
	ClassGroup             Class = mpierr.ClassGroup
	ClassOp                Class = mpierr.ClassOp
	ClassTopology          Class = mpierr.ClassTopology
	ClassArg               Class = mpierr.ClassArg
	ClassUnknown           Class = mpierr.ClassUnknown
	ClassTruncate          Class = mpierr.ClassTruncate
	ClassOther             Class = mpierr.ClassOther
	ClassIntern            Class = mpierr.ClassIntern
	ClassPending           Class = mpierr.ClassPending
	ClassWin               Class = mpierr.ClassWin
	ClassRMARange          Class = mpierr.ClassRMARange
	ClassRMASync           Class = mpierr.ClassRMASync
	ClassRMAAccess         Class = mpierr.ClassRMAAccess
	ClassInfo              Class = mpierr.ClassInfo
	ClassNoMem             Class = mpierr.ClassNoMem
	ClassSession           Class = mpierr.ClassSession
	ClassProcAborted       Class = mpierr.ClassProcAborted
	ClassProcFailed        Class = mpierr.ClassProcFailed
	ClassRevoked           Class = mpierr.ClassRevoked
	ClassPort              Class = mpierr.ClassPort
	ClassName              Class = mpierr.ClassName
	ClassService           Class = mpierr.ClassService
	ClassSpawn             Class = mpierr.ClassSpawn
	ClassFile              Class = mpierr.ClassFile
	ClassMode              Class = mpierr.ClassMode
	ClassNoSuchFile        Class = mpierr.ClassNoSuchFile
	ClassFileExists        Class = mpierr.ClassFileExists
	ClassFileAccess        Class = mpierr.ClassFileAccess
	ClassNoSpace           Class = mpierr.ClassNoSpace
	ClassIO                Class = mpierr.ClassIO
	ClassDatarep           Class = mpierr.ClassDatarep
	ClassConversion        Class = mpierr.ClassConversion
	ClassProcFailedPending Class = mpierr.ClassProcFailedPending
	ClassNotSame           Class = mpierr.ClassNotSame
)

// String returns the name, or for a class that was added its text.
func (c Class) String() string { return mpierr.Class(c).String() }

// An ErrorCode is an error with a class, made by AddErrorCode
// (MPI_Add_error_code).
type ErrorCode struct{ errorCode }

// errorCode makes the class known to code that cannot import this package.
type errorCode = mpierr.Code

// Error returns the text (MPI_Error_string).
func (e *ErrorCode) Error() string { return e.errorCode.Error() }

// Class returns the class (MPI_Error_class).
func (e *ErrorCode) Class() Class { return Class(e.ErrorClass()) }

// AddErrorClass makes a new class (MPI_Add_error_class, MPI_Add_error_string).
func AddErrorClass(text string) Class { return Class(mpierr.AddClass(text)) }

// RemoveErrorClass removes a class that was added, and reports whether there
// was one (MPI_Remove_error_class). Its number is not used again.
func RemoveErrorClass(c Class) bool { return mpierr.RemoveClass(mpierr.Class(c)) }

// AddErrorCode makes an error with a class, of this package or added
// (MPI_Add_error_code, MPI_Add_error_string).
func AddErrorCode(class Class, text string) *ErrorCode {
	return &ErrorCode{mpierr.NewCode(mpierr.Class(class), text)}
}

// ErrorClass returns the class of err (MPI_Error_class): that of the ErrorCode,
// the error of this package or the error of the file system that it wraps,
// ClassSuccess for nil and ClassUnknown for others. The text of an error
// (MPI_Error_string) is what its method Error returns.
func ErrorClass(err error) Class { return Class(mpierr.ClassOf(err)) }
