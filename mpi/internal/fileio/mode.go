package fileio

import (
	"fmt"
	"os"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Mode says how a file is opened: one of the first three, with any of the others (MPI-4.1, Section
// 14.2.1). Its values are those of mpi.FileMode.
type Mode uint16

const (
	ReadOnly Mode = 1 << iota
	WriteOnly
	ReadWrite
	Create
	Exclusive
	Append
	Sequential
	Unique
	DeleteOnClose
	modes = 1<<iota - 1 // all of them
)

func (m Mode) check() error {
	switch m & (ReadOnly | WriteOnly | ReadWrite) {
	case ReadOnly:
		if m&(Create|Exclusive) != 0 {
			return fmt.Errorf("%w: FileCreate with FileRead", mpierr.ErrMode)
		}
	case WriteOnly, ReadWrite:
	default:
		return fmt.Errorf("%w: want one of FileRead, FileWrite and FileReadWrite", mpierr.ErrMode)
	}
	if m&^modes != 0 {
		return fmt.Errorf("%w: %#x", mpierr.ErrMode, uint16(m))
	}
	if m&ReadWrite != 0 && m&Sequential != 0 {
		return fmt.Errorf("%w: FileSequential with FileReadWrite", mpierr.ErrMode)
	}
	return nil
}

// sequentialOnly is the error of an operation that a file opened with Sequential does not have.
func sequentialOnly(what string) error {
	return mpierr.WithClass(mpierr.ClassUnsupportedOperation,
		fmt.Errorf("%w: %s with FileSequential", mpierr.ErrMode, what))
}

// readOnly is the error of an operation that changes a file opened with ReadOnly.
func readOnly(what string) error {
	return mpierr.WithClass(mpierr.ClassReadOnly, fmt.Errorf("%w: %s with FileRead", mpierr.ErrMode, what))
}

// writeOnly is the error of an operation that reads a file opened with WriteOnly.
func writeOnly(what string) error {
	return mpierr.WithClass(mpierr.ClassFileAccess, fmt.Errorf("%w: %s with FileWrite", mpierr.ErrMode, what))
}

// flags returns the mode for os.OpenFile.
func (m Mode) flags() int {
	switch {
	case m&ReadOnly != 0:
		return os.O_RDONLY
	case m&WriteOnly != 0:
		return os.O_WRONLY
	}
	return os.O_RDWR
}

// createFlags returns the mode for the rank that makes the file.
func (m Mode) createFlags() int {
	flags := m.flags()
	if m&Create != 0 {
		flags |= os.O_CREATE
	}
	if m&Exclusive != 0 {
		flags |= os.O_EXCL
	}
	return flags
}
