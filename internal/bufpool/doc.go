// Package bufpool is a size-class buffer pool: temporary memory in powers of two bytes, with a
// sync.Pool for each size. The memory is aligned for any element type without pointers.
package bufpool
