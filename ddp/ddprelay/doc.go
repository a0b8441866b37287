// Package ddprelay carries DDP streams between processes of different sites, through gateways: it gives the sessions
// of RFC 5043, which package ddpsctp implements, relay flows (package relay) in place of an SCTP association.
//
// An Endpoint is a service of a relay.Node. Two endpoints share an Association, whoever opened it. It has the
// properties that RFC 5043 needs of SCTP: numbered streams, whole messages that arrive once, in any order, and whose
// sender learns when they have; and a tag for each side, by which messages of a former association are told from
// those of this one. Segments are sized to fit one frame of the relay, so they are sent as its unordered frames,
// placed as they arrive, and never wait for each other on any leg.
//
// A gateway that dies is not seen here, but for the pause. When the other process has died, has restarted, or does not
// answer for relay.NodeConfig.PeerTimeout, the association ends with relay.ErrRestarted or relay.ErrUnreachable, and
// all its sessions with it. A process that hears nothing for 5 s asks, so that it learns of that even if it sends
// nothing.
//
// docs/gateways.md says how it is used, through package verbs, and has the messages.
package ddprelay
