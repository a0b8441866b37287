//go:build !linux

package tcp

import (
	"net"
	"time"
)

// userTimeout does nothing: only the probes of an idle connection are timed
// here, see SetFailureTimeout.
func userTimeout(*net.TCPConn, time.Duration) error { return nil }
