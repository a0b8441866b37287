// Package inproc carries messages between ranks that are goroutines of one process: the goroutine that flushes a [Link]
// delivers what is queued to the message parsers of the receiver itself.
package inproc
