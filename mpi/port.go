package mpi

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/weftstack/weft/mpi/internal/dynamic"
)

// Connections between jobs that were started separately (MPI-4.1, Section 11.9). A port is a TCP
// address, whatever the transport, between sites one for gateways too, and a secret: a process that knows its name may
// connect.

// Limits of ports.
const (
	// MaxPortName bounds the name of a port, in bytes.
	MaxPortName = dynamic.MaxPortName
	// MaxPorts bounds the open ports of a process.
	MaxPorts = dynamic.MaxPorts
	// MaxWaiting bounds the connections that wait at a port for an Accept. More
	// are refused.
	MaxWaiting = dynamic.MaxWaiting
	// DefaultConnectTimeout is how long Connect waits for an Accept, unless the
	// hint InfoTimeout says otherwise.
	DefaultConnectTimeout = dynamic.DefaultConnectTimeout
)

// InfoTimeout is the hint of Comm.Connect for how long to wait for an Accept, in
// seconds.
const InfoTimeout = "timeout"

// OpenPort opens a port, and returns its name, by which processes of other jobs connect to it with
// [Comm.Connect] (MPI_Open_port). It is local and does not block.
func (w *World) OpenPort() (string, error) { return w.job.OpenPort() }

// ClosePort closes a port (MPI_Close_port). Calls of [Comm.Accept] and [Comm.Connect] that wait at
// it return ErrPort.
func (w *World) ClosePort(name string) error { return w.job.Ports.Close(name) }

// Accept makes an intercommunicator of c and a group that calls [Comm.Connect] with the name of the
// port (MPI_Comm_accept). All ranks of c must call it; port is the one that rank root has opened,
// and ignored on other ranks. It blocks until a group connects or ctx ends. Errors to test for:
// ErrPort, ErrRoot, ErrComm for an intercommunicator.
func (c *Comm) Accept(ctx context.Context, port string, root int) (*Comm, error) {
	t := c.enter()
	d, err := c.connectGroups(ctx, root, true, func(ctx context.Context) (*dynamic.RootConn, error) {
		return c.w.job.TakeAt(ctx, port)
	})
	c.leave(t, "Comm.Accept", root, 0, 0, err)
	return d, c.raise(err)
}

// Connect makes an intercommunicator of c and the group that calls [Comm.Accept] at a port
// (MPI_Comm_connect). All ranks of c must call it; port and info are those of rank root, and
// ignored on other ranks. Both groups must use the same transport and number of streams, else they
// get ErrOption. It blocks until the group accepts, ctx ends, or [DefaultConnectTimeout], or the
// time of [InfoTimeout], is over. A port that is closed gives ErrPort at once. Errors to test for:
// ErrPort, ErrRoot, ErrOption, ErrComm for an intercommunicator.
func (c *Comm) Connect(ctx context.Context, port string, root int, info Info) (*Comm, error) {
	t := c.enter()
	d, err := c.connectGroups(ctx, root, false, func(ctx context.Context) (*dynamic.RootConn, error) {
		wait := DefaultConnectTimeout
		if s := info[InfoTimeout]; s != "" {
			n, err := strconv.ParseUint(s, 10, 31)
			if err != nil {
				return nil, fmt.Errorf("%w: %s=%q", ErrOption, InfoTimeout, s)
			}
			wait = time.Duration(n) * time.Second
		}
		return dynamic.Dial(ctx, port, wait, c.w.job.DialPort)
	})
	c.leave(t, "Comm.Connect", root, 0, 0, err)
	return d, c.raise(err)
}
