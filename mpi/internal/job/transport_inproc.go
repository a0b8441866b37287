package job

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/transport"
	"github.com/weftstack/weft/mpi/internal/transport/inproc"
)

// inprocTransport connects ranks of one process.
type inprocTransport struct {
	job  *Job
	meet func(context.Context, *Job) error // links the ranks of the job when all have called it
	name string
}

// inprocTransports holds the transports of this process by address.
var inprocTransports sync.Map

func newInprocTransport(j *Job, meet func(context.Context, *Job) error) *inprocTransport {
	t := &inprocTransport{job: j, meet: meet, name: TransportInproc + ":" + rand.Text()}
	inprocTransports.Store(t.name, t)
	return t
}

func (t *inprocTransport) Addr() string { return t.name }

func (t *inprocTransport) Close() error {
	inprocTransports.Delete(t.name)
	return nil
}

// Listen implements Transport.
func (t *inprocTransport) Listen() error { return nil }

// connectRemote implements Transport.
func (t *inprocTransport) connectRemote(_ context.Context, m *linkSetup, number int) error {
	p := m.peer(number)
	x, ok := inprocTransports.Load(directOf(p.Remote.Addr))
	if !ok {
		return fmt.Errorf("%w: the other one is not in this process", mpierr.ErrPort)
	}
	j := x.(*inprocTransport).job
	there := j.linkSetup(m.id)
	if there == nil {
		return fmt.Errorf("%w: no link setup %x", mpierr.ErrAuth, m.id)
	}
	ab := &inproc.Link{}
	ba := &inproc.Link{To: p, Rev: ab}
	ab.Rev = ba
	if ab.To = there.claim(m.self, ba); ab.To == nil {
		return fmt.Errorf("%w: process %d is not expected", mpierr.ErrAuth, m.self)
	}
	m.claim(number, ab)
	there.linked(m.self, nil)
	m.linked(number, nil)
	return nil
}

func (t *inprocTransport) Polling(bool, time.Duration) (func() bool, func() transport.Parker) {
	return nil, nil
}

// Connect implements Transport: the last rank to come links all of them.
func (t *inprocTransport) Connect(ctx context.Context, addrs []string, key []byte) error {
	return t.meet(ctx, t.job)
}
