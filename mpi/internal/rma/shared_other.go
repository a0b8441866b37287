//go:build !unix

package rma

import (
	"errors"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

func makeShared(int) (string, func() error, error) {
	return "", func() error { return nil }, fmt.Errorf("%w: memory shared by processes: %w", mpierr.ErrWindow, errors.ErrUnsupported)
}

func mapShared(string, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapShared([]byte) error { return nil }
