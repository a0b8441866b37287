// Package gateway carries messages between processes of different sites, over the gateways of their sites (package
// sctp/relay).
//
// A [Station] is the end of a process: one relay node, with one association to each gateway of the site, whatever the
// number of processes at other sites. A [Link] is what transport.Link asks for, to one of these processes.
//
// # Flows
//
// The streams of a link are spread over a few flows of the relay, which do not hold up each other; how many depends on
// the number of processes, so that the flows of a large job fit into a gateway. A flow is a series of bytes: short
// messages that wait for Flush, or for credit, go together, and long bodies are cut, so that no message has to fit the
// limits of the relay. All links between two processes share the flows; a number that the connector has chosen tells
// them apart (the payload protocol identifier).
//
// One more flow, with number 0, is for messages about links: the handshake, the end of a link, and signs of life.
//
// # Bodies
//
// What the relay does not take waits in the queue of its flow: copies up to a limit, bodies with an owner by reference.
// In mode Piecewise a body is released when the relay has copied it, in mode Chained when the other process has
// confirmed it.
//
// # The end of a link
//
// The side that shuts a link down sends FIN, with the number of bytes that it has sent on each flow, so that FIN may
// overtake them. The other side sends its own FIN when it has received all of them, and sent all of its own. When a flow
// ends, because the other process does not answer, has restarted, or may not be reached, all links to that process end
// with an error that names its site and the gateways.
package gateway
