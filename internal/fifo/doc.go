// Package fifo has a queue in a ring of memory. It has no lock.
package fifo
