// Package bufpool is a size-class buffer pool: memory for copies of messages and fragments, for
// messages that arrive before their receive, and for the intermediate results of collectives.
// Sizes are powers of two, and one for packets, with a sync.Pool for each.
//
// One pool serves all layers: memory that one of them has just returned is likely to be still
// in the processor's cache when another one takes it. The memory is aligned for any element
// type without pointers.
package bufpool
