package mpi

import "github.com/weftstack/weft/mpi/internal/mpierr"

// Class is an MPI error class (MPI-4.1, Section 9.4). Errors of this package are
// told apart with errors.Is; classes are for programs that report, or
// translate, them in the terms of the standard.
type Class int

// The classes that errors of this package have. The standard calls them MPI_SUCCESS,
// MPI_ERR_BUFFER and so on.
const (
	ClassSuccess              Class = mpierr.ClassSuccess              // MPI_SUCCESS
	ClassBuffer               Class = mpierr.ClassBuffer               // MPI_ERR_BUFFER
	ClassCount                Class = mpierr.ClassCount                // MPI_ERR_COUNT
	ClassType                 Class = mpierr.ClassType                 // MPI_ERR_TYPE
	ClassTag                  Class = mpierr.ClassTag                  // MPI_ERR_TAG
	ClassComm                 Class = mpierr.ClassComm                 // MPI_ERR_COMM
	ClassRank                 Class = mpierr.ClassRank                 // MPI_ERR_RANK
	ClassRequest              Class = mpierr.ClassRequest              // MPI_ERR_REQUEST
	ClassRoot                 Class = mpierr.ClassRoot                 // MPI_ERR_ROOT
	ClassGroup                Class = mpierr.ClassGroup                // MPI_ERR_GROUP
	ClassOp                   Class = mpierr.ClassOp                   // MPI_ERR_OP
	ClassTopology             Class = mpierr.ClassTopology             // MPI_ERR_TOPOLOGY
	ClassArg                  Class = mpierr.ClassArg                  // MPI_ERR_ARG
	ClassUnknown              Class = mpierr.ClassUnknown              // MPI_ERR_UNKNOWN
	ClassTruncate             Class = mpierr.ClassTruncate             // MPI_ERR_TRUNCATE
	ClassOther                Class = mpierr.ClassOther                // MPI_ERR_OTHER
	ClassIntern               Class = mpierr.ClassIntern               // MPI_ERR_INTERN
	ClassPending              Class = mpierr.ClassPending              // MPI_ERR_PENDING
	ClassWin                  Class = mpierr.ClassWin                  // MPI_ERR_WIN
	ClassRMARange             Class = mpierr.ClassRMARange             // MPI_ERR_RMA_RANGE
	ClassRMASync              Class = mpierr.ClassRMASync              // MPI_ERR_RMA_SYNC
	ClassRMAAccess            Class = mpierr.ClassRMAAccess            // MPI_ERR_RMA_ACCESS
	ClassInfo                 Class = mpierr.ClassInfo                 // MPI_ERR_INFO
	ClassNoMem                Class = mpierr.ClassNoMem                // MPI_ERR_NO_MEM
	ClassSession              Class = mpierr.ClassSession              // MPI_ERR_SESSION
	ClassProcAborted          Class = mpierr.ClassProcAborted          // MPI_ERR_PROC_ABORTED
	ClassProcFailed           Class = mpierr.ClassProcFailed           // MPIX_ERR_PROC_FAILED
	ClassRevoked              Class = mpierr.ClassRevoked              // MPIX_ERR_REVOKED
	ClassPort                 Class = mpierr.ClassPort                 // MPI_ERR_PORT
	ClassName                 Class = mpierr.ClassName                 // MPI_ERR_NAME
	ClassService              Class = mpierr.ClassService              // MPI_ERR_SERVICE
	ClassSpawn                Class = mpierr.ClassSpawn                // MPI_ERR_SPAWN
	ClassFile                 Class = mpierr.ClassFile                 // MPI_ERR_FILE
	ClassMode                 Class = mpierr.ClassMode                 // MPI_ERR_AMODE
	ClassNoSuchFile           Class = mpierr.ClassNoSuchFile           // MPI_ERR_NO_SUCH_FILE
	ClassFileExists           Class = mpierr.ClassFileExists           // MPI_ERR_FILE_EXISTS
	ClassFileAccess           Class = mpierr.ClassFileAccess           // MPI_ERR_ACCESS
	ClassNoSpace              Class = mpierr.ClassNoSpace              // MPI_ERR_NO_SPACE
	ClassIO                   Class = mpierr.ClassIO                   // MPI_ERR_IO
	ClassDatarep              Class = mpierr.ClassDatarep              // MPI_ERR_UNSUPPORTED_DATAREP
	ClassConversion           Class = mpierr.ClassConversion           // MPI_ERR_CONVERSION
	ClassProcFailedPending    Class = mpierr.ClassProcFailedPending    // MPIX_ERR_PROC_FAILED_PENDING
	ClassNotSame              Class = mpierr.ClassNotSame              // MPI_ERR_NOT_SAME
	ClassReadOnly             Class = mpierr.ClassReadOnly             // MPI_ERR_READ_ONLY
	ClassUnsupportedOperation Class = mpierr.ClassUnsupportedOperation // MPI_ERR_UNSUPPORTED_OPERATION
	ClassDupDatarep           Class = mpierr.ClassDupDatarep           // MPI_ERR_DUP_DATAREP
	ClassBadFile              Class = mpierr.ClassBadFile              // MPI_ERR_BAD_FILE
	ClassFileInUse            Class = mpierr.ClassFileInUse            // MPI_ERR_FILE_IN_USE
	ClassQuota                Class = mpierr.ClassQuota                // MPI_ERR_QUOTA
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
