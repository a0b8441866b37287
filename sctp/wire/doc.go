// Package wire reads and writes SCTP packets: the common header, the chunks,
// parameters and error causes of RFC 9260 and of RFC 3758, 4820, 4895, 5061,
// 6525, 8260 and 9653.
//
// Decoders return views: structs whose slices alias the packet. They never
// panic, never allocate, and check every length before they use it. They check
// layout only; whether a value is acceptable in the current state is for the
// caller. Encoders append to a slice, copy what they are given, and pad each
// chunk, parameter and cause to four bytes.
//
// A packet is read in three steps: [ParseHeader], then [Chunks] over what
// follows it, then the ParseX function that belongs to the chunk's type. The
// fields named Params and Causes are walked the same way with [Params] and
// [Causes].
package wire
