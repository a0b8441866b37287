//go:build !amd64

package wire

import "github.com/klauspost/crc32"

// crc32c returns the CRC32c of p.
func crc32c(p []byte) uint32 { return UpdateChecksum(0, p) }

// UpdateChecksum returns the CRC32c of what c is that of, followed by p. Begin
// with 0.
func UpdateChecksum(c uint32, p []byte) uint32 { return crc32.Update(c, castagnoli, p) }

// CopyChecksum copies src to dst, which is no shorter and does not overlap it, and
// returns the CRC32c of what c is that of, followed by src.
func CopyChecksum(c uint32, dst, src []byte) uint32 {
	n := copy(dst[:len(src)], src)
	return UpdateChecksum(c, dst[:n])
}
