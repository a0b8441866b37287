package mpi

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi/internal/transport"
	"github.com/weftstack/weft/mpi/internal/transport/inproc"
)

// inprocTransport connects ranks of one process.
type inprocTransport struct {
	w    *World
	meet func(context.Context, *World) error // links the ranks of the job when all have called it
	name string
}

// inprocTransports holds the transports of this process by address.
var inprocTransports sync.Map

func newInprocTransport(w *World, meet func(context.Context, *World) error) *inprocTransport {
	t := &inprocTransport{w: w, meet: meet, name: TransportInproc + ":" + rand.Text()}
	inprocTransports.Store(t.name, t)
	return t
}

func (t *inprocTransport) addr() string { return t.name }

func (t *inprocTransport) close() error {
	inprocTransports.Delete(t.name)
	return nil
}

// listen implements jobTransport.
func (t *inprocTransport) listen() error { return nil }

// connectRemote implements jobTransport.
func (t *inprocTransport) connectRemote(_ context.Context, m *linkSetup, number int) error {
	p := m.peer(number)
	x, ok := inprocTransports.Load(directOf(p.Remote.Addr))
	if !ok {
		return fmt.Errorf("%w: the other one is not in this process", ErrPort)
	}
	w := x.(*inprocTransport).w
	there := w.linkSetup(m.id)
	if there == nil {
		return fmt.Errorf("%w: no link setup %x", ErrAuth, m.id)
	}
	ab := &inproc.Link{}
	ba := &inproc.Link{To: p, Rev: ab}
	ab.Rev = ba
	if ab.To = there.claim(m.self, ba); ab.To == nil {
		return fmt.Errorf("%w: process %d is not expected", ErrAuth, m.self)
	}
	m.claim(number, ab)
	there.linked(m.self, nil)
	m.linked(number, nil)
	return nil
}

func (t *inprocTransport) polling(bool) (func() bool, func() transport.Parker) { return nil, nil }

// connect implements jobTransport: the last rank to come links all of them.
func (t *inprocTransport) connect(ctx context.Context, addrs []string, key []byte) error {
	return t.meet(ctx, t.w)
}
