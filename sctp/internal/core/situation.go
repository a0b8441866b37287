package core

import (
	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/timer"
)

// situation is what all parts of an association look at: its configuration, its identity, its
// state, the timers, the keys, what the user is told, and what the peer is to be answered.
type situation struct {
	identity

	cfg    Config
	rng    random
	state  State
	slow   slowReasons // why the fast paths cannot be taken
	err    error
	timers timer.Set
	events eventQueue
	stats  counters
	auth   auth.State

	// Answers to the peer that wait to leave: chunks, and packets of their own.
	ctl        controlQueue
	standalone packetQueue
}

// counters are those that no part of the association keeps itself.
type counters struct {
	PacketsSent, PacketsReceived, Dropped uint64
	SacksReceived                         uint64
	Timeouts, Heartbeats, WindowProbes    uint64
	Marked                                uint64 // packets received with a congestion mark
}

// State returns the state of the association.
func (c *situation) State() State { return c.state }

// Err returns why the association ended; nil while it lives and after a
// graceful end.
func (c *situation) Err() error { return c.err }
