// Package ddp implements Direct Data Placement (RFC 5041): messages are cut
// into segments that say where their payload belongs, so that the receiver can
// place each one straight from the packet it came in, in any order, and deliver
// messages in the order they were sent.
//
// A tagged message goes into a buffer that its receiver advertised beforehand
// by a steering tag; a Table of Regions holds those. An untagged message goes
// into the next buffer of one of four Queues.
//
// The package is the data path between two interfaces. Below is a Channel: it
// carries segments reliably, preserves their boundaries, and numbers them if it
// reorders them; package ddpsctp has the one over SCTP streams (RFC 5043), package
// ddpmpa the one over TCP (RFC 5044), and package ddptest one in memory. Above is a ULP, in this module package rdmap.
// A Message cuts segments on the sending side; a Receiver validates, places and
// delivers them on the receiving side. Nothing here owns a goroutine, blocks, or
// allocates once it runs.
//
// Nothing is written outside a region or buffer that was meant for the peer:
// rights, bounds and wrap-around are checked before the first byte moves, and
// STags are random (RFC 5042).
package ddp
