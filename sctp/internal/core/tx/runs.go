package tx

import "github.com/weftstack/weft/sctp/wire"

// SetRuns makes the data of m the bytes of runs one after another, in place of Body (gather send:
// RFC 6458, Section 9.12, sctp_sendv with several buffers). Runs may be empty. Both the table and
// the bytes are referenced as Body is, until Owner is released.
func (m *Message) SetRuns(runs [][]byte) {
	m.Body, m.runs, m.runBytes = nil, runs, 0
	var last []byte
	for _, r := range runs {
		if m.runBytes += int64(len(r)); len(r) > 0 {
			last = r
		}
	}
	if m.runBytes == int64(len(last)) { // one that is not empty
		m.Body, m.runs, m.runBytes = last, nil, 0
	}
}

// Len returns the bytes of m; those of Headers do not count.
func (m *Message) Len() int { return len(m.Header) + len(m.Body) + int(m.runBytes) }

// runs are the buffers of a queued message that SetRuns was called for. A record of a message
// keeps them for the next one.
type runs struct {
	list [][]byte // nil: the message has one body
	// next is where the first transmission goes on, and again where the last retransmission
	// ended. Both go forward, from a fragment to the one that follows, save for a fragment that
	// is retransmitted once more. So a packet does not search the list from its beginning.
	next, again runPos
}

// runPos is a place in a list of runs.
type runPos struct {
	i     int   // the run
	begin int64 // where it begins in the body
}

// seek moves p to the run that has the byte at offset off of the body.
func (p *runPos) seek(list [][]byte, off int64) {
	for off < p.begin {
		p.i--
		p.begin -= int64(len(list[p.i]))
	}
	for off >= p.begin+int64(len(list[p.i])) {
		p.begin += int64(len(list[p.i]))
		p.i++
	}
}

// at returns the place of the byte at offset off of the body.
func (r *runs) at(off int64) *runPos {
	p := &r.next
	if off < p.begin {
		if p.begin-off < off-r.again.begin {
			r.again = *p // it is nearer
		}
		p = &r.again
	}
	p.seek(r.list, off)
	return p
}

// setRuns gives m, which is being queued, the runs of a message.
func (m *outMsg) setRuns(list [][]byte) {
	if m.runs == nil {
		m.runs = new(runs)
	}
	*m.runs = runs{list: list}
}

// hasRuns reports whether the data of m are in runs.
func (m *outMsg) hasRuns() bool { return m.runs != nil && m.runs.list != nil }

// appendRuns is appendBody for a message with runs.
func (m *outMsg) appendRuns(b []byte, off int64, n int, g *gather) []byte {
	p, list := m.runs.at(off), m.runs.list
	part := list[p.i][off-p.begin:]
	for {
		k := min(n, len(part))
		b = g.appendPart(b, part[:k])
		if n -= k; n == 0 {
			return b
		}
		p.begin += int64(len(list[p.i]))
		p.i++
		part = list[p.i]
	}
}

// fillRuns fills a packet from at on with the bytes of the body from offset off. It returns the
// checksum of the packet, or 0 if sum is false. Short runs are summed together after their copy,
// long ones with it.
func (m *outMsg) fillRuns(pkt []byte, at int, off int64, sum bool) (c uint32) {
	p, list, summed := m.runs.at(off), m.runs.list, 0
	i, begin := p.i, p.begin
	part := list[i][off-begin:]
	for {
		if k := min(len(pkt)-at, len(part)); sum && k >= minDeferCopy {
			c = wire.UpdateChecksum(c, pkt[summed:at])
			c = wire.CopyChecksum(c, pkt[at:at+k], part[:k])
			at += k
			summed = at
		} else {
			at += copy(pkt[at:], part)
		}
		if at == len(pkt) {
			break
		}
		begin += int64(len(list[i]))
		i++
		part = list[i]
	}
	p.i, p.begin = i, begin
	if sum {
		c = wire.UpdateChecksum(c, pkt[summed:])
	}
	return c
}
