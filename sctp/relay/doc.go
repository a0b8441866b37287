// Package relay carries messages between processes of different sites over gateways.
//
// A site is a cluster with a network of its own. Its processes have one association each to a Gateway of the site;
// gateways have one for each pair of them, across the long, shared leg between sites. A lost packet is repaired on
// the leg that lost it, and processes need no route to other sites. The protocol is in docs/gateway-protocol.md.
//
// # Flows
//
// A process is a Node. Messages from one process to another on a stream are a flow: Node.Sender returns its origin,
// and at the other process Node.Next, or Config.OnFragment, the Receiver. Messages of any length arrive once, in order
// unless they are unordered, with their boundaries and payload protocol identifier. Flows do not hold up each other: a
// receiver that does not read stops the sender of its flow only. Programs that share a node have ranges of streams of their own
// (Node.Handle).
//
// # Gateways that die
//
// The origin keeps what the target has not confirmed. When a gateway dies flows take another gateway of their site,
// from the first message that was not confirmed, and the target drops what it has; a gateway that returns is used again. With NodeConfig.Direct there may be a path beside the
// gateways, for the time when none is up. Mode Lossy keeps less, and ends a flow with ErrLost when a gateway has lost something.
//
// # Shares of a leg
//
// Flows take turns on a leg. Between gateways traffic classes do so first, by weight, and may have rates
// (GatewayConfig.Classes, Peer.Rate); Peer.Associations has several associations share the flows.
//
// # Goroutines and time
//
// A Node and a Gateway have a goroutine for each leg that they connect, and one for a timer; none for flows. Frames are
// forwarded on the goroutine that received them. In steady state nothing allocates. All of it works on the networks in
// memory of package sctptest, and in the virtual time of testing/synctest.
package relay
