package datatype

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// A conversion is how a value is represented in external32.
type conversion uint8

const (
	convertOrder    conversion = iota // the same bytes in big-endian order
	convertSigned                     // an integer in fewer bytes
	convertUnsigned                   // the same without a sign
	convertExtended                   // a long double of x86-64 as IEEE binary128
)

// to stores a value in external32. It returns mpierr.ErrConversion for an integer that does not
// fit.
func (w *elemWord) to(dst, src []byte) error {
	switch w.conv {
	case convertOrder:
		copy(dst, src[:w.n])
		swapWord(dst[:w.n])
	case convertExtended:
		Quad.Store(dst, Extended.Load(src))
		swapWord(dst[:w.ext])
	default:
		var wide [8]byte
		b := wide[8-w.n:]
		copy(b, src[:w.n])
		swapWord(b)
		sign := byte(0)
		if w.conv == convertSigned && b[w.n-w.ext]>>7 != 0 {
			sign = 0xff
		}
		for _, v := range b[:w.n-w.ext] {
			if v != sign {
				return fmt.Errorf("%w: the integer %#x needs more than the %d bytes of external32",
					mpierr.ErrConversion, binary.BigEndian.Uint64(wide[:]), w.ext)
			}
		}
		copy(dst, b[w.n-w.ext:])
	}
	return nil
}

// from is the reverse of to.
func (w *elemWord) from(dst, src []byte) {
	switch w.conv {
	case convertOrder:
		copy(dst[:w.n], src)
		swapWord(dst[:w.n])
	case convertExtended:
		var quad [16]byte
		copy(quad[:], src)
		swapWord(quad[:])
		Extended.Store(dst, Quad.Load(quad[:]))
	default:
		b := dst[:w.n]
		sign := byte(0)
		if w.conv == convertSigned && src[0]>>7 != 0 {
			sign = 0xff
		}
		for i := range b[:w.n-w.ext] {
			b[i] = sign
		}
		copy(b[w.n-w.ext:], src[:w.ext])
		swapWord(b)
	}
}

// swapWord changes a value from the order of the machine to big-endian order,
// and back.
func swapWord(b []byte) {
	if !bigEndianHost {
		slices.Reverse(b)
	}
}
