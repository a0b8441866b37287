package mpi

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Rendezvous methods, for WithRendezvous, WEFT_RENDEZVOUS and InfoRendezvous.
const (
	// RendezvousMessage sends the body as a message, which is placed in the buffer of the receive
	// as it arrives.
	RendezvousMessage = "message"
	// RendezvousWrite has the receiver register the buffer of the receive, and the sender write to
	// it by RDMA Write.
	RendezvousWrite = "write"
	// RendezvousRead has the sender register the buffer of the send, and the receiver read it by
	// RDMA Read into the buffer of the receive.
	RendezvousRead = "read"
)

var rendezvousNames = [...]string{
	p2p.RendezvousMessage: RendezvousMessage, p2p.RendezvousWrite: RendezvousWrite, p2p.RendezvousRead: RendezvousRead,
}

func parseRendezvous(s string) (p2p.Rendezvous, bool) {
	for i, name := range rendezvousNames {
		if s == name {
			return p2p.Rendezvous(i), true
		}
	}
	return 0, false
}

// WithRendezvous sets the rendezvous method of messages that are longer than the eager limit:
// [RendezvousMessage], the default, [RendezvousWrite] or [RendezvousRead]; others give ErrOption.
// The last two need the transport hybrid; with another one all bodies are sent as messages. The
// sender chooses, so ranks may differ.
func WithRendezvous(method string) Option {
	return func(o *options) error {
		m, ok := parseRendezvous(method)
		if !ok {
			return fmt.Errorf("%w: rendezvous method %q", ErrOption, method)
		}
		o.Rendezvous = m
		return nil
	}
}
