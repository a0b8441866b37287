package mpi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
)

// Class is an MPI error class (MPI-4.1, Section 9.4). Errors of this package are
// told apart with errors.Is; classes are for programs that report, or
// translate, them in the terms of the standard.
type Class int

// The classes that errors of this package have.
const (
	ClassSuccess Class = iota
	ClassBuffer
	ClassCount
	ClassType
	ClassTag
	ClassComm
	ClassRank
	ClassRequest
	ClassRoot
	ClassGroup
	ClassOp
	ClassTopology
	ClassArg
	ClassUnknown
	ClassTruncate
	ClassOther
	ClassIntern
	ClassPending
	ClassWin
	ClassRMARange
	ClassRMASync
	ClassRMAAccess
	ClassInfo
	ClassNoMem
	ClassSession
	ClassProcAborted
	ClassProcFailed
	ClassRevoked
	ClassPort
	ClassName
	ClassService
	ClassSpawn
	ClassFile
	ClassMode
	ClassNoSuchFile
	ClassFileExists
	ClassFileAccess
	ClassNoSpace
	ClassIO
	ClassDatarep
	ClassConversion
	ClassProcFailedPending
	ClassNotSame
	lastClass
)

var classNames = [...]string{
	"success", "buffer", "count", "type", "tag", "communicator", "rank", "request", "root", "group", "operator",
	"topology", "argument", "unknown", "truncate", "other", "internal", "pending", "window", "range of a window",
	"synchronization of a window", "access to a window", "info", "no memory", "session", "process aborted",
	"process failed", "revoked", "port", "name", "service", "spawn",
	"file", "access mode", "no such file", "file exists", "access to a file", "no space", "input and output",
	"data representation", "conversion", "receive pending, process failed", "not the same on all ranks",
}

// String returns the name, or for a class that was added its text.
func (c Class) String() string {
	if c >= 0 && int(c) < len(classNames) {
		return classNames[c]
	}
	addedClasses.Lock()
	defer addedClasses.Unlock()
	if text, ok := addedClasses.text[c]; ok {
		return text
	}
	return fmt.Sprintf("error class %d", int(c))
}

// An ErrorCode is an error with a class, made by AddErrorCode.
type ErrorCode struct {
	class Class
	text  string
}

// Error returns the text.
func (e *ErrorCode) Error() string { return e.text }

// Class returns the class.
func (e *ErrorCode) Class() Class { return e.class }

// addedClasses are those of the program.
var addedClasses = struct {
	sync.Mutex
	next Class
	text map[Class]string
}{next: lastClass, text: map[Class]string{}}

// AddErrorClass makes a new class (MPI_Add_error_class, MPI_Add_error_string).
func AddErrorClass(text string) Class {
	addedClasses.Lock()
	defer addedClasses.Unlock()
	c := addedClasses.next
	addedClasses.next++
	addedClasses.text[c] = text
	return c
}

// RemoveErrorClass removes a class that was added, and reports whether there
// was one (MPI_Remove_error_class). Its number is not used again.
func RemoveErrorClass(c Class) bool {
	addedClasses.Lock()
	defer addedClasses.Unlock()
	_, ok := addedClasses.text[c]
	delete(addedClasses.text, c)
	return ok
}

// AddErrorCode makes an error with a class, of this package or added
// (MPI_Add_error_code, MPI_Add_error_string).
func AddErrorCode(class Class, text string) *ErrorCode { return &ErrorCode{class, text} }

// classes are those of the errors of this package, and of the system, the more
// special first. There are at most 64: see failure.
var classes = []struct {
	err   error
	class Class
}{
	{ErrSpawn, ClassSpawn}, {ErrName, ClassName}, {ErrService, ClassService}, {ErrPort, ClassPort}, {ErrTruncate, ClassTruncate}, {ErrRank, ClassRank}, {ErrTag, ClassTag}, {ErrType, ClassType}, {ErrTypeMismatch, ClassType},
	{ErrCount, ClassCount}, {ErrRoot, ClassRoot}, {ErrOp, ClassOp}, {ErrOverlap, ClassBuffer},
	{ErrComm, ClassComm}, {ErrFreed, ClassComm}, {ErrTopology, ClassTopology}, {ErrRange, ClassRMARange},
	{ErrAccess, ClassRMAAccess}, {ErrEpoch, ClassRMASync}, {ErrWindow, ClassWin}, {ErrDatatype, ClassType},
	{ErrRevoked, ClassRevoked}, {ErrProcFailedPending, ClassProcFailedPending}, {ErrProcFailed, ClassProcFailed}, {ErrAborted, ClassProcAborted},
	{ErrMode, ClassMode}, {ErrNotSame, ClassNotSame}, {ErrDatarep, ClassDatarep}, {ErrConversion, ClassConversion}, {ErrFile, ClassFile},
	{fs.ErrNotExist, ClassNoSuchFile}, {fs.ErrExist, ClassFileExists}, {fs.ErrPermission, ClassFileAccess}, {syscall.ENOSPC, ClassNoSpace},
	{ErrOption, ClassArg}, {ErrView, ClassArg}, {ErrPartition, ClassArg}, {ErrTuning, ClassInfo}, {ErrLimit, ClassNoMem}, {ErrCanceled, ClassRequest}, {ErrMessage, ClassRequest},
	{ErrFinalized, ClassOther}, {ErrInitialized, ClassOther}, {ErrGoexit, ClassOther}, {ErrAuth, ClassOther}, {ErrProtocol, ClassIntern},
	{context.Canceled, ClassPending}, {context.DeadlineExceeded, ClassPending},
}

// ErrorClass returns the class of err (MPI_Error_class): that of the ErrorCode,
// the error of this package or the error of the file system that it wraps,
// ClassSuccess for nil and ClassUnknown for others. The text of an error
// (MPI_Error_string) is what its method Error returns.
func ErrorClass(err error) Class {
	if err == nil {
		return ClassSuccess
	}
	var code interface{ Class() Class }
	if errors.As(err, &code) {
		return code.Class()
	}
	for _, x := range classes {
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
