// Package verbs is an RDMA device in software: memory regions, queue pairs,
// completion queues and a connection manager, with the names that users of RDMA
// hardware know, above iWARP (packages rdmap and ddp) over SCTP (RFC 5043) or TCP
// (RFC 5044).
//
// A Device is opened on an sctp.Transport. A protection domain (PD) holds
// memory regions (MR) and queue pairs (QP). A QP is connected to one of another
// device with Connect there and Listener.Accept here; then PostSend starts sends,
// RDMA writes and reads, and atomic operations, and PostRecv provides buffers for
// the peer's sends. ConnectTCP and ListenTCP do the same over TCP. Their ends are reported in completion queues (CQ).
//
// What a peer may do to a region is what it was registered for, within its
// bounds, through queue pairs of its domain, by naming its STag. It needs no
// help of the process that owns the memory: writes and reads are carried out on
// the goroutine that receives the packets. An attempt to do more ends the queue
// pair, and only it, with a Terminate message; nothing is written.
//
// Completion of a send or write means that its memory may be used again, not
// that the peer has seen the data. To know that writes have arrived, read
// something through the same queue pair, if only zero bytes: a read is answered
// after all that was posted before it has been placed (RFC 5040, Section 5.5,
// rule 12). A later receive of the peer completes after all earlier writes have
// been placed, too (rule 10).
//
// Every message needs a posted receive, and there is no way to wait for one: a
// message that finds none ends the connection. Consumers agree on how many
// messages may be under way.
//
// Posting and completing work requests does not allocate.
package verbs
