// Package tcp carries messages between two ranks over a TCP connection, all streams in one byte stream.
//
// A [Link] is written by the goroutine that sends, as long as the socket takes everything without blocking, and read by a
// goroutine of its own or by one that polls. Connections end when their peer has not answered for a time: see
// [SetFailureTimeout].
package tcp
