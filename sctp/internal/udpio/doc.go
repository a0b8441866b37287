// Package udpio moves batches of datagrams of UDP, or of SCTP directly over IP.
//
// A Conn reads and writes batches: runs of equal-sized datagrams (the last one
// may be shorter) between one pair of addresses, back to back in one buffer.
// On Linux a batch is one system call each way, by UDP segmentation offload
// (UDP_SEGMENT) and receive offload (UDP_GRO), and several batches are read with
// one recvmmsg. ECN codepoints and local addresses travel with every batch; only of
// short single datagrams between sockets of one host most are read without the
// codepoint. Where the kernel or device refuses an offload, a Conn falls back by itself.
// Other systems, and sockets that are not kernel sockets, use one datagram per
// call behind the same interface.
//
// Nothing allocates per read or write.
package udpio
