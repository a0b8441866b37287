//go:build !linux

package mpi

import (
	"errors"
	"os"
)

func shmPlace() (string, error)                 { return "", errors.ErrUnsupported }
func newShmFile() (*os.File, error)             { return nil, errors.ErrUnsupported }
func openShmFile(int, int) (*os.File, error)    { return nil, errors.ErrUnsupported }
func mapShm(*os.File, int) (*shmSegment, error) { return nil, errors.ErrUnsupported }
func yieldProcessor()                           {}

func processHolds(int, uint64, *[shmNonceLen]byte) bool { return false }

func readProcess(int, uint64, []byte) error  { return errors.ErrUnsupported }
func writeProcess(int, uint64, []byte) error { return errors.ErrUnsupported }

func writePieces(int, uint64, []byte, []piece) error { return errors.ErrUnsupported }
