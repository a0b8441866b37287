package mpi

import "github.com/weftstack/weft/mpi/internal/mpierr"

// Class is an MPI error class (MPI-4.1, Section 9.4). Errors of this package are
// told apart with errors.Is; classes are for programs that report, or
// translate, them in the terms of the standard.
type Class int

// The predefined classes. Those of the standard, MPI_SUCCESS, MPI_ERR_BUFFER and so on, have the numbers of its ABI
// (MPI-5.0, Section 20.4), which the C library returns.
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
	ClassDims                 Class = mpierr.ClassDims                 // MPI_ERR_DIMS
	ClassArg                  Class = mpierr.ClassArg                  // MPI_ERR_ARG
	ClassUnknown              Class = mpierr.ClassUnknown              // MPI_ERR_UNKNOWN
	ClassTruncate             Class = mpierr.ClassTruncate             // MPI_ERR_TRUNCATE
	ClassOther                Class = mpierr.ClassOther                // MPI_ERR_OTHER
	ClassIntern               Class = mpierr.ClassIntern               // MPI_ERR_INTERN
	ClassPending              Class = mpierr.ClassPending              // MPI_ERR_PENDING
	ClassInStatus             Class = mpierr.ClassInStatus             // MPI_ERR_IN_STATUS
	ClassFileAccess           Class = mpierr.ClassFileAccess           // MPI_ERR_ACCESS
	ClassMode                 Class = mpierr.ClassMode                 // MPI_ERR_AMODE
	ClassAssert               Class = mpierr.ClassAssert               // MPI_ERR_ASSERT
	ClassBadFile              Class = mpierr.ClassBadFile              // MPI_ERR_BAD_FILE
	ClassBase                 Class = mpierr.ClassBase                 // MPI_ERR_BASE
	ClassConversion           Class = mpierr.ClassConversion           // MPI_ERR_CONVERSION
	ClassDisp                 Class = mpierr.ClassDisp                 // MPI_ERR_DISP
	ClassDupDatarep           Class = mpierr.ClassDupDatarep           // MPI_ERR_DUP_DATAREP
	ClassFileExists           Class = mpierr.ClassFileExists           // MPI_ERR_FILE_EXISTS
	ClassFileInUse            Class = mpierr.ClassFileInUse            // MPI_ERR_FILE_IN_USE
	ClassFile                 Class = mpierr.ClassFile                 // MPI_ERR_FILE
	ClassInfoKey              Class = mpierr.ClassInfoKey              // MPI_ERR_INFO_KEY
	ClassInfoNoKey            Class = mpierr.ClassInfoNoKey            // MPI_ERR_INFO_NOKEY
	ClassInfoValue            Class = mpierr.ClassInfoValue            // MPI_ERR_INFO_VALUE
	ClassInfo                 Class = mpierr.ClassInfo                 // MPI_ERR_INFO
	ClassIO                   Class = mpierr.ClassIO                   // MPI_ERR_IO
	ClassKeyval               Class = mpierr.ClassKeyval               // MPI_ERR_KEYVAL
	ClassLockType             Class = mpierr.ClassLockType             // MPI_ERR_LOCKTYPE
	ClassName                 Class = mpierr.ClassName                 // MPI_ERR_NAME
	ClassNoMem                Class = mpierr.ClassNoMem                // MPI_ERR_NO_MEM
	ClassNotSame              Class = mpierr.ClassNotSame              // MPI_ERR_NOT_SAME
	ClassNoSpace              Class = mpierr.ClassNoSpace              // MPI_ERR_NO_SPACE
	ClassNoSuchFile           Class = mpierr.ClassNoSuchFile           // MPI_ERR_NO_SUCH_FILE
	ClassPort                 Class = mpierr.ClassPort                 // MPI_ERR_PORT
	ClassQuota                Class = mpierr.ClassQuota                // MPI_ERR_QUOTA
	ClassReadOnly             Class = mpierr.ClassReadOnly             // MPI_ERR_READ_ONLY
	ClassRMAAttach            Class = mpierr.ClassRMAAttach            // MPI_ERR_RMA_ATTACH
	ClassRMAConflict          Class = mpierr.ClassRMAConflict          // MPI_ERR_RMA_CONFLICT
	ClassRMARange             Class = mpierr.ClassRMARange             // MPI_ERR_RMA_RANGE
	ClassRMAShared            Class = mpierr.ClassRMAShared            // MPI_ERR_RMA_SHARED
	ClassRMASync              Class = mpierr.ClassRMASync              // MPI_ERR_RMA_SYNC
	ClassService              Class = mpierr.ClassService              // MPI_ERR_SERVICE
	ClassSize                 Class = mpierr.ClassSize                 // MPI_ERR_SIZE
	ClassSpawn                Class = mpierr.ClassSpawn                // MPI_ERR_SPAWN
	ClassDatarep              Class = mpierr.ClassDatarep              // MPI_ERR_UNSUPPORTED_DATAREP
	ClassUnsupportedOperation Class = mpierr.ClassUnsupportedOperation // MPI_ERR_UNSUPPORTED_OPERATION
	ClassWin                  Class = mpierr.ClassWin                  // MPI_ERR_WIN
	ClassRMAFlavor            Class = mpierr.ClassRMAFlavor            // MPI_ERR_RMA_FLAVOR
	ClassProcAborted          Class = mpierr.ClassProcAborted          // MPI_ERR_PROC_ABORTED
	ClassValueTooLarge        Class = mpierr.ClassValueTooLarge        // MPI_ERR_VALUE_TOO_LARGE
	ClassSession              Class = mpierr.ClassSession              // MPI_ERR_SESSION
	ClassErrhandler           Class = mpierr.ClassErrhandler           // MPI_ERR_ERRHANDLER
	ClassABI                  Class = mpierr.ClassABI                  // MPI_ERR_ABI

	// Classes that the standard does not have.
	ClassRMAAccess         Class = mpierr.ClassRMAAccess         // access right of a window
	ClassProcFailed        Class = mpierr.ClassProcFailed        // MPIX_ERR_PROC_FAILED
	ClassRevoked           Class = mpierr.ClassRevoked           // MPIX_ERR_REVOKED
	ClassProcFailedPending Class = mpierr.ClassProcFailedPending // MPIX_ERR_PROC_FAILED_PENDING
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
