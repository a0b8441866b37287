package gateway

import "github.com/weftstack/weft/mpi/internal/envelope"

// eager returns the header of a message of n bytes.
func eager(n int) []byte {
	var b [envelope.MaxLen]byte
	v := envelope.Header{Kind: envelope.Eager, Source: 0, Context: testCommID, Length: uint64(n)}
	return append([]byte(nil), v.Encode(&b)...)
}
