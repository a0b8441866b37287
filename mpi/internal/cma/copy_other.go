//go:build !linux

package cma

import "errors"

// Read returns an error: the system has no such call.
func Read(int, uint64, []byte) error { return errors.ErrUnsupported }

// Write returns an error: the system has no such call.
func Write(int, uint64, []byte) error { return errors.ErrUnsupported }

// Holds reports false.
func Holds(int, uint64, *[ProbeLen]byte) bool { return false }

// WritePieces returns an error: the system has no such call.
func WritePieces(int, uint64, []byte, []Piece) error { return errors.ErrUnsupported }

// ReadScattered returns an error: the system has no such call.
func ReadScattered(int, uint64, [][]byte) error { return errors.ErrUnsupported }

// ReadRuns returns an error: the system has no such call.
func ReadRuns(int, []Run, [][]byte) error { return errors.ErrUnsupported }
