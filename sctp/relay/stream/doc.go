// Package stream carries byte streams, as TCP does, between processes of different sites over the flows of package
// relay.
//
// An Endpoint takes all flows of a relay.Node. Endpoint.Dial opens a connection to the endpoint of another process
// with a request, which says what the connection is for; there Endpoint.Accept returns it, to be accepted or refused.
// A Conn is a net.Conn with half-close and reset.
//
// # Flows
//
// A connection is one flow in each direction, on the same stream of both. So connections do not hold up each other:
// one whose reader stops takes the credit of its own flow, and its writer waits. The opener uses the stream for
// another connection when both directions have ended, and the other side is done with what it received.
//
// The payload protocol identifier of a message has its type and the generation of the connection, which differs from
// that of the connection before on the stream: what is left of that one is dropped.
//
//	type     of flow             payload
//	open     from the opener     version, request
//	accept   to the opener       version
//	refuse   to the opener       code, text
//	data     both                bytes of the stream
//	end      both                version: no more bytes in this direction
//	done     to the opener, 0    stream
//	reset    both, stream 0      stream, code
//	ping     both, stream 0      version
//
// Stream 0 is for the two endpoints, so that a reset arrives though the flow that it is about has no credit. After a
// reset both sides begin their flow again (relay.Sender.End), so what was under way is dropped. The process
// with the lower address opens connections on even streams, the other one on odd ones.
//
// # Failures
//
// A gateway on the way that dies is a pause. When the process at the other end dies, restarts or cannot be reached for
// the peer timeout of the node its connections end with ErrReset: endpoints with connections send a ping to each other
// every few seconds.
package stream
