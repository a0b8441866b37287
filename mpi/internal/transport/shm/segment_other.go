//go:build !linux

package shm

import (
	"errors"
	"os"
)

func hostPlace() (string, error)              { return "", errors.ErrUnsupported }
func newFile() (*os.File, error)              { return nil, errors.ErrUnsupported }
func openFile(int, int) (*os.File, error)     { return nil, errors.ErrUnsupported }
func mapFile(*os.File, int) (*mapping, error) { return nil, errors.ErrUnsupported }
