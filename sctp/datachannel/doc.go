// Package datachannel has WebRTC data channels (RFC 8831, RFC 8832) on SCTP associations: channels
// with a label, reliable or not, ordered or not, that both sides open and close while the association
// goes on. Over DTLS (RFC 8261) they are what browsers have; over a transport of package sctp they
// serve any program.
//
// # Sessions and channels
//
// A [Session] has the channels of one association. [Connect] opens one over a connection such as
// DTLS. For associations on a transport of package sctp [Config.SCTP] makes the configuration;
// whether the peer or this side opened the association, [From] then returns its session.
//
// [Session.Open] opens a [Channel] and tells the peer its properties by the Data Channel
// Establishment Protocol; the peer gets it from [Session.Accept] or [Config.OnChannel]. With
// [Options].Negotiated both sides open the channel with the same number instead. [Channel.Close]
// closes it for both sides: what was sent before is delivered, then both streams are reset, and their
// number is free for another channel.
//
// # Messages
//
// [Channel.Send], [Channel.SendText] and [Channel.TrySend] copy a message and send it with the
// properties of the channel. [Channel.Recv] receives; with [Config.OnMessage] the goroutine that
// received the packet hands messages over at once, most without a copy. In steady state nothing
// allocates.
//
// # Flow control
//
// A sender waits while its channel has [Config.MaxBufferedAmount] buffered, or as much as is left of
// the send buffer of the association. [Channel.BufferedAmount] and [Channel.SetBufferedAmountLow] are
// those of the WebRTC API.
//
// Received messages stay with their channel until they are read, and count against the receive
// window of the association, which is one for all channels: while the messages of a slow reader fit
// the window the other channels go on; once they fill it the peer cannot send on any channel until
// some of them are read. Nothing is lost. A program that would rather give up the slow channel sets
// [Config.MaxUnread].
//
// # What a peer cannot do
//
// The memory that a peer can use is bounded: by the receive window for complete messages, by
// [Config.AssemblyBuffer] for incomplete ones, by [Config.MaxChannels], [Config.Backlog] and a limit
// of 1 MiB for the labels of channels. A message that violates the protocol, is longer than
// [Config.MaxMessageSize] or has another payload protocol identifier than 50, 51, 53, 56 and 57
// closes its channel; [Session.Stats] counts them. The identifiers 52 and 54, of the deprecated partial
// messages, are among the others.
package datachannel
