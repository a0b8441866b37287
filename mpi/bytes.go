package mpi

// This file is the byte-level interface that everything above point-to-point
// messages (collectives, windows) is built from. Tags of the slots other than
// slotUser are private to their owner and may be any int32 ≥ 0; receives there
// may use AnySource, but not AnyTag. Peers may be ProcNull.

// A sendMode selects when a send completes.
type sendMode uint8

const (
	sendStandard sendMode = iota
	sendSync              // completes only when a receive has matched (MPI-4.1, Section 3.4)
	sendHeld              // as sendStandard; the caller calls coalescer.waiting before it blocks
)
