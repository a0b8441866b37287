//go:build !linux

package mpi

import (
	"net"
	"time"
)

// userTimeout does nothing: only the probes of an idle connection are timed
// here, see setFailureTimeout.
func userTimeout(*net.TCPConn, time.Duration) error { return nil }
