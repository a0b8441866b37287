package p2p

// This file is the byte-level interface that everything above point-to-point
// messages (collectives, windows) is built from. Tags of the slots other than
// SlotUser are private to their owner and may be any int32 ≥ 0; receives there
// may use AnySource, but not AnyTag. Peers may be ProcNull.

// A SendMode selects when a send completes.
type SendMode uint8

const (
	SendStandard SendMode = iota
	SendSync              // completes only when a receive has matched (MPI-4.1, Section 3.4)
	SendHeld              // as SendStandard; the caller calls coalescer.waiting before it blocks
)
