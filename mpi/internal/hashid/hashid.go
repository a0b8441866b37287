// Package hashid makes numbers of what processes know in common: each of them gets the same identifier
// without a message.
package hashid

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// Of returns a hash of parts that does not tell what they are.
func Of(parts ...string) uint64 {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return binary.BigEndian.Uint64(h[:])
}
