//go:build !unix

package mpi

import (
	"errors"
	"fmt"
)

func makeShared(int) (string, func() error, error) {
	return "", func() error { return nil }, fmt.Errorf("%w: memory shared by processes: %w", ErrWindow, errors.ErrUnsupported)
}

func mapShared(string, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapShared([]byte) error { return nil }
