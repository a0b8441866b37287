//go:build !amd64

package wire

import "github.com/klauspost/crc32"

// crc32c returns the CRC32c of p.
func crc32c(p []byte) uint32 { return crc32.Update(0, castagnoli, p) }
