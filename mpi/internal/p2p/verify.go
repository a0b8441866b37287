package p2p

import "fmt"

// CheckMessages returns an error that says what is left of messages, or nil: none waits for a
// receive, for a message before it or for its body. Receives may be posted.
func (e *Engine) CheckMessages() error {
	if err := e.IDs.checkEmpty(); err != nil {
		return err
	}
	e.Mu.Lock()
	defer e.Mu.Unlock()
	for _, x := range e.Contexts {
		if err := x.checkMessages(); err != nil {
			return err
		}
	}
	return e.checkPeers(nil)
}

// CheckIdle returns an error that says what e holds although the program has no operation in
// progress, or nil. Messages of SlotComm may be there: another rank may have begun the next one.
func (e *Engine) CheckIdle() error {
	if err := e.IDs.checkEmpty(); err != nil {
		return err
	}
	held := make(map[*Peer]int64)
	e.Mu.Lock()
	defer e.Mu.Unlock()
	for _, x := range e.Contexts {
		if x.internal {
			continue
		}
		if Slot(x.id)&SlotMask == SlotComm {
			for _, m := range x.messages(func(*Message) bool { return true }) {
				held[m.peer] += cost(int(m.length))
			}
			continue
		}
		if err := x.checkMessages(); err != nil {
			return err
		}
		if x.posted.size != 0 || x.exact+x.anySource+x.anyTag+x.anyBoth != 0 {
			return fmt.Errorf("context %#x has %d queues of receives", x.id, x.posted.size)
		}
	}
	return e.checkPeers(held)
}

// checkMessages is CheckMessages for one context.
func (x *Context) checkMessages() error {
	if x.early != 0 || x.unexpected.size != 0 {
		return fmt.Errorf("context %#x has %d early messages, %d queues of messages", x.id, x.early, x.unexpected.size)
	}
	for i := range x.sources {
		if s := &x.sources[i]; s.ahead != 0 || len(s.held) != 0 {
			return fmt.Errorf("context %#x has a gap before %d messages of rank %d, and holds %d", x.id, s.ahead, i, len(s.held))
		}
	}
	return nil
}

// checkEmpty checks that no request waits for a peer.
func (t *idTable) checkEmpty() error {
	if n := t.Len(); n != 0 {
		return fmt.Errorf("%d requests have ids", n)
	}
	return nil
}

// checkPeers checks that no send waits, and that no credit is missing but for messages that are
// held: their cost by peer.
func (e *Engine) checkPeers(held map[*Peer]int64) error {
	for _, p := range e.Peers {
		if a, r := p.Announced.Load(), p.Ready.Load(); a != 0 || r != 0 {
			return fmt.Errorf("%d sends to rank %d wait, and %d of its", a, p.Rank, r)
		}
		if used, owed := p.Used.Load(), p.owed.Load(); used != owed+held[p] {
			return fmt.Errorf("messages of rank %d use %d bytes, and %d of them are to be given back", p.Rank, used, owed)
		}
	}
	return nil
}

// Waiting counts the receives and probes of the program that wait for a message.
func (c *Comm) Waiting() int {
	c.Engine.Mu.Lock()
	defer c.Engine.Mu.Unlock()
	return c.Contexts[SlotUser].waiting()
}
