// Package frame is the codec of the relay protocol (docs/gateway-protocol.md): the frames that
// processes and gateways exchange on the associations of package relay.
//
// Parse returns a view of a frame, whose Payload aliases it; the Append functions append
// encoded frames to a buffer. Neither allocates.
package frame
