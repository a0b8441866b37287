package mpierr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
)

// Class is an MPI error class (MPI-4.1, Section 9.4).
type Class int

// The predefined classes. They have no type, so that package mpi can give them its own.
const (
	ClassSuccess = iota
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
	ClassReadOnly
	ClassUnsupportedOperation
	ClassDupDatarep
	ClassBadFile
	ClassFileInUse
	ClassQuota
	lastClass
)

var classNames = [...]string{
	"success", "buffer", "count", "type", "tag", "communicator", "rank", "request", "root", "group", "operator",
	"topology", "argument", "unknown", "truncate", "other", "internal", "pending", "window", "range of a window",
	"synchronization of a window", "access to a window", "info", "no memory", "session", "process aborted",
	"process failed", "revoked", "port", "name", "service", "spawn",
	"file", "access mode", "no such file", "file exists", "access to a file", "no space", "input and output",
	"data representation", "conversion", "receive pending, process failed", "not the same on all ranks",
	"read-only file", "unsupported operation", "data representation defined twice", "file name",
	"file in use", "quota",
}

// String returns the name of a predefined class, or the text of an added one.
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
