package verbs

import (
	"sync"

	"github.com/weftstack/weft/ddp"
)

// PD is a protection domain: regions can only be used through queue pairs of
// the same domain.
type PD struct {
	dev    *Device
	domain ddp.Domain

	mu     sync.Mutex
	users  int  // guarded by mu: regions, windows, queue pairs and shared receive queues
	closed bool // guarded by mu
}

// AllocPD makes a protection domain. Of a closed device it is closed.
func (d *Device) AllocPD() *PD {
	return &PD{dev: d, closed: d.use() != nil}
}

// use counts an object of the domain.
func (pd *PD) use() error {
	pd.mu.Lock()
	defer pd.mu.Unlock()
	if pd.closed {
		return ErrClosed
	}
	pd.users++
	return nil
}

func (pd *PD) unuse() {
	pd.mu.Lock()
	defer pd.mu.Unlock()
	pd.users--
}

// Close frees the domain. It returns ErrBusy while it has regions, windows,
// queue pairs or shared receive queues.
func (pd *PD) Close() error {
	pd.mu.Lock()
	defer pd.mu.Unlock()
	if pd.closed {
		return ErrClosed
	}
	if pd.users > 0 {
		return ErrBusy
	}
	pd.closed = true
	pd.dev.unuse()
	return nil
}
