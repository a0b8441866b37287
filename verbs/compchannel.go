package verbs

import (
	"context"
	"slices"
	"sync"
)

// CompChannel is a completion channel (ibv_create_comp_channel): it collects the events of
// any number of completion queues. It is safe for concurrent use.
type CompChannel struct {
	dev  *Device
	refs refs
	wake doorbell // signalled while queues may have events

	mu    sync.Mutex
	ready []*CQ // guarded by mu: queues whose event was not taken, each once
}

// NewCompChannel makes a completion channel.
func (d *Device) NewCompChannel() (*CompChannel, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	return &CompChannel{dev: d, wake: newDoorbell()}, nil
}

// NewCQ makes a completion queue whose events come to the channel.
func (c *CompChannel) NewCQ(depth int) (*CQ, error) {
	if err := c.refs.enter(); err != nil {
		return nil, err
	}
	cq, err := c.dev.newCQ(depth, c)
	if err != nil {
		c.refs.leave()
	}
	return cq, err
}

// push queues an event. cq.mu is held.
func (c *CompChannel) push(cq *CQ) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !cq.queued {
		cq.queued = true
		c.ready = append(c.ready, cq)
	}
	c.wake.signal()
}

// forget takes a queue out that is being closed. cq.mu is held.
func (c *CompChannel) forget(cq *CQ) {
	c.mu.Lock()
	for i := range c.ready {
		if c.ready[i] == cq {
			c.ready = slices.Delete(c.ready, i, i+1)
			break
		}
	}
	c.mu.Unlock()
	c.refs.leave()
}

// GetEvent returns the next queue whose event, armed by [CQ.Notify], has occurred, in the
// order of the events (ibv_get_cq_event). It blocks until there is one or ctx is done. To
// miss no completion, arm the queue again before polling it.
func (c *CompChannel) GetEvent(ctx context.Context) (*CQ, error) {
	return await(ctx, c.wake, c.take)
}

// take takes the queue whose event is the oldest.
func (c *CompChannel) take() (cq *CQ, ok bool, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ready) == 0 {
		return nil, false, nil
	}
	cq = c.ready[0]
	c.ready = slices.Delete(c.ready, 0, 1) // forgets it, too
	cq.queued = false
	if len(c.ready) > 0 {
		c.wake.signal()
	}
	return cq, true, nil
}

// Close frees the channel. It returns ErrBusy while it has completion queues.
func (c *CompChannel) Close() error {
	if err := c.refs.close("completion channel", "completion queues"); err != nil {
		return err
	}
	c.dev.unuse()
	return nil
}
