// Package shm carries messages between ranks of one host through memory that they share.
//
// Each rank makes a segment, a memory file that the other ranks of the host find by the [Segment] of its business card
// and map: a ring buffer for each of them, which its writer fills and any polling goroutine of the rank empties. A [Link]
// is a ring buffer in each direction above a link of the network, which carries what memory cannot: doorbells, for a rank
// that does not poll, and the end of the rank. Long bodies are offered instead, and the receiver has the system copy them
// from the memory of the sender.
//
// What another process writes to memory is checked before use: it can end its link, and no more.
package shm
