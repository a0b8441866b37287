package udpio

import "net"

// Connection is a Conn on a net.Conn that keeps the boundaries of messages (RFC 8261): it has one
// peer, and ConnLocal and ConnRemote for addresses.
type Connection interface {
	Conn

	// Start comes before everything else. drained is called when there is room again after Full
	// has returned true, and wrote with the result of each write that Write has not returned,
	// both on the goroutine that writes.
	Start(drained func(), wrote func(error))

	// Full reports whether so much waits for the connection that nothing should be added. If so,
	// drained is called when there is room.
	Full() bool

	// Batches returns how many buffers a Read fills at most.
	Batches() int
}

// NewConnection returns a Connection on conn, which it owns from then on. That on a connected
// *net.UDPConn reads and writes batches where the system has them.
func NewConnection(conn net.Conn) Connection {
	if uc, ok := conn.(*net.UDPConn); ok {
		if c := newConnectedUDP(uc); c != nil {
			return c
		}
	}
	return NewMessageConn(conn)
}
