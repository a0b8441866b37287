//go:build !linux

package udpio

import "errors"

// Poller is for systems with sockets that can be polled.
type Poller struct{}

// NewPoller fails.
func NewPoller() (*Poller, error) { return nil, errors.ErrUnsupported }

// Add implements nothing, as do the other methods.
func (p *Poller) Add(Conn) bool { return false }

// Wait returns false.
func (p *Poller) Wait(func() bool) bool { return false }

// Kick does nothing.
func (p *Poller) Kick() {}

// Reset does nothing.
func (p *Poller) Reset() {}

// Close does nothing.
func (p *Poller) Close() error { return nil }
