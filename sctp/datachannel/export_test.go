package datachannel

import "fmt"

// Debug describes the state of c.
func (c *Channel) Debug() string {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("outstanding %d, buffered %d, out %d, in %d, again %v, gone %v; resetting %v, %d resets wait; eof %v, closed %v, %d unread; %+v; association: %+v",
		c.outstanding, c.buffered, c.slot.out, c.slot.in, c.slot.again, c.slot.gone, s.resetting, len(s.resets), c.eof, c.closed, c.queue.len(), s.stats, s.assoc.Stats())
}
