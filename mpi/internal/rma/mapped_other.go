//go:build !linux || !(amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64)

package rma

import (
	"errors"
	"os"
)

func newHostBytes(int, int, bool) ([]byte, *os.File, error) { return nil, nil, errors.ErrUnsupported }
func fileID(*os.File) (uint64, error)                       { return 0, errors.ErrUnsupported }
func mapHostBytes(int, int, uint64, int, bool) ([]byte, error) {
	return nil, errors.ErrUnsupported
}
func unmapHostBytes([]byte) {}
