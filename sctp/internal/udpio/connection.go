package udpio

import "net"

// Connection is a Conn on a net.Conn that keeps the boundaries of messages (RFC 8261): it has one
// peer, and ConnLocal and ConnRemote for addresses.
type Connection interface {
	Conn

	// Start comes before everything else. flush is called when there is room again after Full has
	// returned true, and after DeferFlush; wrote with the result of each write that Write has not
	// returned. Both are called on the goroutine that writes.
	Start(flush func(), wrote func(error))

	// Full reports whether so much waits for the connection that nothing should be added. If so,
	// flush is called when there is room.
	Full() bool

	// DeferFlush has flush called once the goroutines that can run now have run. Receives that
	// call it meanwhile share that flush: they were waiting, and are answered at once. It
	// reports false if the caller is to flush by itself: there is no such goroutine, or
	// maxDeferred receives share it already.
	DeferFlush() bool

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
