//go:build !linux

package udpio

import "net"

// newConnectedUDP returns nil: the system has no batches.
func newConnectedUDP(*net.UDPConn) Connection { return nil }
