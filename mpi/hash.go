package mpi

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// hashOf returns a hash of parts that does not tell what they are.
func hashOf(parts ...string) uint64 {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return binary.BigEndian.Uint64(h[:])
}
