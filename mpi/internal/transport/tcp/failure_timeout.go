package tcp

import (
	"net"
	"time"
)

// probes is how many keepalive probes of an idle connection may remain without an answer.
const probes = 5

// KeepAlive returns the keepalive times of an idle connection. The system counts in seconds.
func KeepAlive(timeout time.Duration) net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: max(timeout/2, time.Second),
		Interval: max(timeout/(2*probes), time.Second), Count: probes}
}

// UserTimeoutFor returns how long data may remain unacknowledged: more than the timeout, because
// few segments are sent in that time, as the retransmission timeout doubles.
func UserTimeoutFor(timeout time.Duration) time.Duration { return timeout + timeout/3 }

// SetFailureTimeout makes a connection end after about the given time without an answer.
func SetFailureTimeout(conn *net.TCPConn, timeout time.Duration) error {
	if err := conn.SetKeepAliveConfig(KeepAlive(timeout)); err != nil {
		return err
	}
	return userTimeout(conn, UserTimeoutFor(timeout))
}
