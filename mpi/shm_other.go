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
