package rconn

import "fmt"

// String names the connection by the peer.
func (c *Conn) String() string { return fmt.Sprintf("rconn.Conn to %v", c.remote) }

// String names the connection by the peer.
func (s *Stream) String() string { return fmt.Sprintf("rconn.Stream to %v", s.remote) }

// String names the listener by its address.
func (l *Listener) String() string { return fmt.Sprintf("rconn.Listener %v", l.Addr()) }

// String names the listener by its address.
func (s streams) String() string { return s.l.String() }
