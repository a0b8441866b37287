// Package sctp is a user-space implementation of the Stream Control
// Transmission Protocol (RFC 9260) over UDP (RFC 6951), or directly over IP where the
// process may have raw sockets.
//
// # Endpoints and associations
//
// A [Transport] owns the sockets of a process, one per local address, and
// carries any number of SCTP ports. An [Endpoint] is one such port: it accepts
// and opens associations, in the one-to-many style of RFC 6458 or one by one.
// An [Association] connects two endpoints by one or more paths, and carries
// messages of any length on independent streams.
//
// [Dial] and [Listen] give the one-to-one style as [net.Conn] and
// [net.Listener], each on a transport of its own.
//
// [Client] and [Server] open an association over a connection that keeps the boundaries of messages,
// such as DTLS (RFC 8261), which is what WebRTC does; package datachannel has its data channels.
//
// # Receiving
//
// There are three ways to receive, and an association uses one of them:
//
//   - [Association.Recv] for any stream or [Association.RecvStream] for one; a
//     stream that waits for a retransmission holds up no other one.
//   - [Endpoint.Recv] for all associations of an endpoint.
//   - Upcalls: with [Config].OnPiece set, the goroutine that received a packet
//     calls back with each message fragment of a message as soon as it is in order, without
//     waiting for the rest and without copying.
//
// # Sending
//
// [Association.Send] copies the message, or refers to it if it has an owner
// ([SendOptions].Owner), and waits while the send buffer is full;
// [Association.TrySend] does not wait. [Association.SendBuffers] and
// [Association.TrySendBuffers] do the same with a message that is in several buffers.
// [Association.TrySendBatch] is TrySend for many
// messages, and [Association.TrySendSeries] for many that are cut from one buffer, in
// little more time than for one. All transmit on the calling goroutine what congestion
// and the peer's window allow. [Association.OpenMessage] sends a message in parts; its
// length need not be known when it begins.
//
// # Goroutines and locks
//
// A transport has one goroutine per socket, its reader. Associations have none:
// the reader, a sending goroutine or a timer runs the protocol where it has work
// for it, under a mutex of the association. No upcall, system call or wait happens
// under that mutex. A goroutine that waits first polls the sockets itself where that
// pays ([TransportConfig].BusyPoll), which saves two wake-ups per message on an
// otherwise idle machine; readers poll, too, after a batch
// ([Transport.SetBusyRead]). In steady state nothing allocates.
//
// # Time limits, and what went wrong
//
// [Dial] gives up after [Dialer].Timeout, 10 s by default, and at once if the peer refuses:
// its host says by ICMP that nothing uses the UDP port, or its stack by ABORT that nothing
// uses the SCTP port. [Endpoint.Connect] is bounded by its context. A shutdown in the
// background, as after [Association.Close], is bounded by [Config].Linger. An established
// association ends with [ErrTimeout] when the peer does not answer for long, see
// [Config].MaxRetransmits. [TransportConfig].Log records which paths and peers failed and
// came back; [Config].OnNotify tells the program.
//
// # Testing
//
// Package sctptest has networks in memory that lose, delay, duplicate, reorder
// and corrupt packets; programs on top of this package run over them in the
// virtual time of testing/synctest.
package sctp
