package sctptest

import "fmt"

// String tells the seed.
func (n *Network) String() string { return fmt.Sprintf("sctptest.Network of seed %d", n.seed) }

// String tells the addresses.
func (h *Host) String() string { return fmt.Sprintf("sctptest.Host %v", h.addrs) }

// String tells the bound address.
func (c *PacketConn) String() string { return fmt.Sprintf("sctptest.PacketConn %v", c.LocalAddr()) }
