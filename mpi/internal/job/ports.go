package job

import (
	"context"
	"net"

	"github.com/weftstack/weft/mpi/internal/dynamic"
)

// OpenPort opens a port, and returns its name.
func (j *Job) OpenPort() (string, error) {
	if err := j.Usable(); err != nil {
		return "", err
	}
	if t, ok := j.Transport.(*sitesTransport); ok {
		return t.openPort()
	}
	ln, addr, err := dynamic.ListenTCP(j.Options.Addr().Addr())
	if err != nil {
		return "", err
	}
	return j.Ports.Open(addr, ln)
}

// DialPort connects to the address in the name of a port.
func (j *Job) DialPort(ctx context.Context, addr string) (net.Conn, error) {
	if t, ok := j.Transport.(*sitesTransport); ok {
		return t.dialPort(ctx, addr)
	}
	return dynamic.DialTCP(ctx, directOf(addr))
}

// TakeAt returns the next connection with a waiting process at the open port with a name.
func (j *Job) TakeAt(ctx context.Context, name string) (*dynamic.RootConn, error) {
	if err := j.Usable(); err != nil {
		return nil, err
	}
	return j.Ports.Take(ctx, name, j.Engine.Over)
}
