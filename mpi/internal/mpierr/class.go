package mpierr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// Class is an MPI error class (MPI-4.1, Section 9.4).
type Class int

// The predefined classes. Those of the standard have the numbers of its ABI (MPI-5.0, Section 20.4); those that the
// ABI does not have follow its last one. They have no type, so that package mpi can give them its own.
const (
	ClassSuccess              = abi.Success
	ClassBuffer               = abi.ErrBuffer
	ClassCount                = abi.ErrCount
	ClassType                 = abi.ErrType
	ClassTag                  = abi.ErrTag
	ClassComm                 = abi.ErrComm
	ClassRank                 = abi.ErrRank
	ClassRequest              = abi.ErrRequest
	ClassRoot                 = abi.ErrRoot
	ClassGroup                = abi.ErrGroup
	ClassOp                   = abi.ErrOp
	ClassTopology             = abi.ErrTopology
	ClassDims                 = abi.ErrDims
	ClassArg                  = abi.ErrArg
	ClassUnknown              = abi.ErrUnknown
	ClassTruncate             = abi.ErrTruncate
	ClassOther                = abi.ErrOther
	ClassIntern               = abi.ErrIntern
	ClassPending              = abi.ErrPending
	ClassInStatus             = abi.ErrInStatus
	ClassFileAccess           = abi.ErrAccess
	ClassMode                 = abi.ErrAmode
	ClassAssert               = abi.ErrAssert
	ClassBadFile              = abi.ErrBadFile
	ClassBase                 = abi.ErrBase
	ClassConversion           = abi.ErrConversion
	ClassDisp                 = abi.ErrDisp
	ClassDupDatarep           = abi.ErrDupDatarep
	ClassFileExists           = abi.ErrFileExists
	ClassFileInUse            = abi.ErrFileInUse
	ClassFile                 = abi.ErrFile
	ClassInfoKey              = abi.ErrInfoKey
	ClassInfoNoKey            = abi.ErrInfoNokey
	ClassInfoValue            = abi.ErrInfoValue
	ClassInfo                 = abi.ErrInfo
	ClassIO                   = abi.ErrIo
	ClassKeyval               = abi.ErrKeyval
	ClassLockType             = abi.ErrLocktype
	ClassName                 = abi.ErrName
	ClassNoMem                = abi.ErrNoMem
	ClassNotSame              = abi.ErrNotSame
	ClassNoSpace              = abi.ErrNoSpace
	ClassNoSuchFile           = abi.ErrNoSuchFile
	ClassPort                 = abi.ErrPort
	ClassQuota                = abi.ErrQuota
	ClassReadOnly             = abi.ErrReadOnly
	ClassRMAAttach            = abi.ErrRmaAttach
	ClassRMAConflict          = abi.ErrRmaConflict
	ClassRMARange             = abi.ErrRmaRange
	ClassRMAShared            = abi.ErrRmaShared
	ClassRMASync              = abi.ErrRmaSync
	ClassService              = abi.ErrService
	ClassSize                 = abi.ErrSize
	ClassSpawn                = abi.ErrSpawn
	ClassDatarep              = abi.ErrUnsupportedDatarep
	ClassUnsupportedOperation = abi.ErrUnsupportedOperation
	ClassWin                  = abi.ErrWin
	ClassRMAFlavor            = abi.ErrRmaFlavor
	ClassProcAborted          = abi.ErrProcAborted
	ClassValueTooLarge        = abi.ErrValueTooLarge
	ClassSession              = abi.ErrSession
	ClassErrhandler           = abi.ErrErrhandler
	ClassABI                  = abi.ErrAbi
)

// Classes that the ABI does not have.
const (
	ClassRMAAccess = abi.ErrLastcode + 1 + iota
	ClassProcFailed
	ClassRevoked
	ClassProcFailedPending
	lastClass
)

// predefined has the names and the texts of the predefined classes.
var predefined = map[Class]struct {
	name string // short
	text string // of MPI_Error_string
}{
	ClassSuccess:              {"success", "MPI_SUCCESS: no error"},
	ClassBuffer:               {"buffer", "MPI_ERR_BUFFER: invalid buffer pointer"},
	ClassCount:                {"count", "MPI_ERR_COUNT: invalid count argument"},
	ClassType:                 {"type", "MPI_ERR_TYPE: invalid datatype argument"},
	ClassTag:                  {"tag", "MPI_ERR_TAG: invalid tag argument"},
	ClassComm:                 {"communicator", "MPI_ERR_COMM: invalid communicator"},
	ClassRank:                 {"rank", "MPI_ERR_RANK: invalid rank"},
	ClassRequest:              {"request", "MPI_ERR_REQUEST: invalid request"},
	ClassRoot:                 {"root", "MPI_ERR_ROOT: invalid root"},
	ClassGroup:                {"group", "MPI_ERR_GROUP: invalid group"},
	ClassOp:                   {"operator", "MPI_ERR_OP: invalid operation"},
	ClassTopology:             {"topology", "MPI_ERR_TOPOLOGY: invalid topology"},
	ClassDims:                 {"dimensions", "MPI_ERR_DIMS: invalid dimensions"},
	ClassArg:                  {"argument", "MPI_ERR_ARG: invalid argument"},
	ClassUnknown:              {"unknown", "MPI_ERR_UNKNOWN: unknown error"},
	ClassTruncate:             {"truncate", "MPI_ERR_TRUNCATE: message truncated on receive"},
	ClassOther:                {"other", "MPI_ERR_OTHER: other error"},
	ClassIntern:               {"internal", "MPI_ERR_INTERN: internal error"},
	ClassPending:              {"pending", "MPI_ERR_PENDING: pending request"},
	ClassInStatus:             {"error in a status", "MPI_ERR_IN_STATUS: error code is in the status"},
	ClassFileAccess:           {"access to a file", "MPI_ERR_ACCESS: permission denied"},
	ClassMode:                 {"access mode", "MPI_ERR_AMODE: invalid access mode"},
	ClassAssert:               {"assertion", "MPI_ERR_ASSERT: invalid assertion"},
	ClassBadFile:              {"file name", "MPI_ERR_BAD_FILE: invalid file name"},
	ClassBase:                 {"base address", "MPI_ERR_BASE: invalid base address"},
	ClassConversion:           {"conversion", "MPI_ERR_CONVERSION: error in a data conversion function"},
	ClassDisp:                 {"displacement", "MPI_ERR_DISP: invalid displacement"},
	ClassDupDatarep:           {"data representation defined twice", "MPI_ERR_DUP_DATAREP: data representation is registered already"},
	ClassFileExists:           {"file exists", "MPI_ERR_FILE_EXISTS: file exists"},
	ClassFileInUse:            {"file in use", "MPI_ERR_FILE_IN_USE: file is in use"},
	ClassFile:                 {"file", "MPI_ERR_FILE: invalid file handle"},
	ClassInfoKey:              {"info key", "MPI_ERR_INFO_KEY: invalid info key"},
	ClassInfoNoKey:            {"no such info key", "MPI_ERR_INFO_NOKEY: no such info key"},
	ClassInfoValue:            {"info value", "MPI_ERR_INFO_VALUE: invalid info value"},
	ClassInfo:                 {"info", "MPI_ERR_INFO: invalid info object"},
	ClassIO:                   {"input and output", "MPI_ERR_IO: input/output error"},
	ClassKeyval:               {"attribute key", "MPI_ERR_KEYVAL: invalid attribute key"},
	ClassLockType:             {"lock type", "MPI_ERR_LOCKTYPE: invalid lock type"},
	ClassName:                 {"name", "MPI_ERR_NAME: service name is not published"},
	ClassNoMem:                {"no memory", "MPI_ERR_NO_MEM: out of memory"},
	ClassNotSame:              {"not the same on all ranks", "MPI_ERR_NOT_SAME: collective argument differs between processes"},
	ClassNoSpace:              {"no space", "MPI_ERR_NO_SPACE: no space left"},
	ClassNoSuchFile:           {"no such file", "MPI_ERR_NO_SUCH_FILE: no such file"},
	ClassPort:                 {"port", "MPI_ERR_PORT: invalid port"},
	ClassQuota:                {"quota", "MPI_ERR_QUOTA: quota exceeded"},
	ClassReadOnly:             {"read-only file", "MPI_ERR_READ_ONLY: file or file system is read-only"},
	ClassRMAAttach:            {"attached memory", "MPI_ERR_RMA_ATTACH: memory cannot be attached"},
	ClassRMAConflict:          {"conflicting accesses to a window", "MPI_ERR_RMA_CONFLICT: conflicting accesses to a window"},
	ClassRMARange:             {"range of a window", "MPI_ERR_RMA_RANGE: target memory is not part of the window"},
	ClassRMAShared:            {"shared memory", "MPI_ERR_RMA_SHARED: memory cannot be shared"},
	ClassRMASync:              {"synchronization of a window", "MPI_ERR_RMA_SYNC: invalid synchronization of a window"},
	ClassService:              {"service", "MPI_ERR_SERVICE: invalid service name"},
	ClassSize:                 {"size", "MPI_ERR_SIZE: invalid size"},
	ClassSpawn:                {"spawn", "MPI_ERR_SPAWN: processes could not be spawned"},
	ClassDatarep:              {"data representation", "MPI_ERR_UNSUPPORTED_DATAREP: unsupported data representation"},
	ClassUnsupportedOperation: {"unsupported operation", "MPI_ERR_UNSUPPORTED_OPERATION: unsupported operation"},
	ClassWin:                  {"window", "MPI_ERR_WIN: invalid window"},
	ClassRMAFlavor:            {"flavor of a window", "MPI_ERR_RMA_FLAVOR: wrong flavor of window"},
	ClassProcAborted:          {"process aborted", "MPI_ERR_PROC_ABORTED: a peer process has aborted or failed"},
	ClassValueTooLarge:        {"value too large", "MPI_ERR_VALUE_TOO_LARGE: value does not fit its type"},
	ClassSession:              {"session", "MPI_ERR_SESSION: invalid session"},
	ClassErrhandler:           {"error handler", "MPI_ERR_ERRHANDLER: invalid error handler"},
	ClassABI:                  {"ABI", "MPI_ERR_ABI: error of the ABI"},
	ClassRMAAccess:            {"access to a window", "MPIX_ERR_RMA_ACCESS: access right of a window is missing"},
	ClassProcFailed:           {"process failed", "MPIX_ERR_PROC_FAILED: a peer process has failed"},
	ClassRevoked:              {"revoked", "MPIX_ERR_REVOKED: communicator was revoked"},
	ClassProcFailedPending:    {"receive pending, process failed", "MPIX_ERR_PROC_FAILED_PENDING: a peer process has failed, the receive goes on"},
}

// Text returns what MPI_Error_string returns for a predefined class, with the name of the class in C; "" for others.
func (c Class) Text() string { return predefined[c].text }

// String returns the name of a predefined class, or the text of an added one.
func (c Class) String() string {
	if p, ok := predefined[c]; ok {
		return p.name
	}
	addedClasses.Lock()
	defer addedClasses.Unlock()
	if text, ok := addedClasses.text[c]; ok {
		return text
	}
	return fmt.Sprintf("error class %d", int(c))
}

// addedClasses are the classes that the program has added.
var addedClasses = struct {
	sync.Mutex
	next Class
	text map[Class]string
}{next: lastClass, text: map[Class]string{}}

// AddClass makes a new class.
func AddClass(text string) Class {
	addedClasses.Lock()
	defer addedClasses.Unlock()
	c := addedClasses.next
	addedClasses.next++
	addedClasses.text[c] = text
	return c
}

// RemoveClass removes a class made by AddClass and reports whether there was one. Its
// number is not used again.
func RemoveClass(c Class) bool {
	addedClasses.Lock()
	defer addedClasses.Unlock()
	_, ok := addedClasses.text[c]
	delete(addedClasses.text, c)
	return ok
}

// A Code is an error with a class, for errors that the program adds.
type Code struct {
	class Class
	text  string
}

// NewCode makes an error of class c.
func NewCode(c Class, text string) Code { return Code{c, text} }

// Error returns the text.
func (e *Code) Error() string { return e.text }

// ErrorClass returns the class.
func (e *Code) ErrorClass() Class { return e.class }

// WithClass returns err with a class that is not that of the errors of this package which it wraps.
func WithClass(c Class, err error) error { return &classified{err, c} }

// classified is an error with a class of its own.
type classified struct {
	error
	class Class
}

// ErrorClass returns the class.
func (e *classified) ErrorClass() Class { return e.class }

// Unwrap returns the error without the class.
func (e *classified) Unwrap() error { return e.error }

// sentinels lists the errors of this package and of the system with their classes, the
// more special ones first. The index of an entry is its bit in Portable.Is, so there are
// at most 64 and a change of their order changes what ranks send to each other.
var sentinels = []struct {
	err   error
	class Class
}{
	{ErrSpawn, ClassSpawn}, {ErrName, ClassName}, {ErrService, ClassService}, {ErrPort, ClassPort},
	{ErrTruncate, ClassTruncate}, {ErrRank, ClassRank}, {ErrTag, ClassTag}, {ErrType, ClassType},
	{ErrTypeMismatch, ClassType}, {ErrCount, ClassCount}, {ErrRoot, ClassRoot}, {ErrOp, ClassOp},
	{ErrOverlap, ClassBuffer}, {ErrComm, ClassComm}, {ErrFreed, ClassComm}, {ErrTopology, ClassTopology},
	{ErrRange, ClassRMARange}, {ErrAccess, ClassRMAAccess}, {ErrEpoch, ClassRMASync}, {ErrWindow, ClassWin},
	{ErrDatatype, ClassType}, {ErrRevoked, ClassRevoked}, {ErrProcFailedPending, ClassProcFailedPending},
	{ErrProcFailed, ClassProcFailed}, {ErrAborted, ClassProcAborted}, {ErrMode, ClassMode},
	{ErrNotSame, ClassNotSame}, {ErrDatarep, ClassDatarep}, {ErrConversion, ClassConversion}, {ErrFile, ClassFile},
	{fs.ErrNotExist, ClassNoSuchFile}, {fs.ErrExist, ClassFileExists}, {fs.ErrPermission, ClassFileAccess},
	{syscall.ENOSPC, ClassNoSpace}, {ErrOption, ClassArg}, {ErrView, ClassArg}, {ErrPartition, ClassArg},
	{ErrTuning, ClassInfo}, {ErrLimit, ClassNoMem}, {ErrCanceled, ClassRequest}, {ErrMessage, ClassRequest},
	{ErrFinalized, ClassOther}, {ErrInitialized, ClassOther}, {ErrGoexit, ClassOther}, {ErrAuth, ClassOther},
	{ErrProtocol, ClassIntern}, {context.Canceled, ClassPending}, {context.DeadlineExceeded, ClassPending},
	{ErrBuffer, ClassBuffer},
}

// systemErrors are errors of the file system that are of no error of this package, with their classes.
var systemErrors = []struct {
	err   syscall.Errno
	class Class
}{
	{syscall.EROFS, ClassReadOnly}, {syscall.EDQUOT, ClassQuota}, {syscall.EISDIR, ClassBadFile},
	{syscall.ENOTDIR, ClassBadFile}, {syscall.ENAMETOOLONG, ClassBadFile}, {syscall.ELOOP, ClassBadFile},
	{syscall.EBUSY, ClassFileInUse}, {syscall.ETXTBSY, ClassFileInUse},
}

// ClassOf returns the class of err: that of the Code, the error of this package or the
// error of the file system that it wraps, ClassSuccess for nil and ClassUnknown for
// others.
func ClassOf(err error) Class {
	if err == nil {
		return ClassSuccess
	}
	var classed interface{ ErrorClass() Class }
	if errors.As(err, &classed) {
		return classed.ErrorClass()
	}
	for _, x := range sentinels {
		if errors.Is(err, x.err) {
			return x.class
		}
	}
	for _, x := range systemErrors {
		if errors.Is(err, x.err) {
			return x.class
		}
	}
	var file *fs.PathError
	if errors.As(err, &file) {
		return ClassIO
	}
	return ClassUnknown
}
