package relay

import (
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay/frame"
)

// message is a message that is cut into frames.
type message struct {
	s      *Sender
	header []byte // what is left of it
	rest   []byte // of the message behind it
	ppid   uint32
	flags  frame.Flags
	single bool
	size   int // payload of a frame
	ackNow bool
	owner  sctp.SendOwner // of the last frame
	group  uint32         // of the message
}

func (s *Sender) message(msg []byte, o SendOptions) message {
	m := message{s: s, header: o.Header, rest: msg, ppid: o.PPID, flags: frame.First, size: s.n.frameSize() - frame.Overhead}
	if o.Unordered {
		m.flags |= frame.Unordered
		m.single = m.left() <= m.size
	}
	return m
}

// frameSize is the length of a frame that fills a packet of the smallest leg.
func (n *Node) frameSize() int {
	var few [8]*conn
	n.mu.Lock()
	conns, last := append(few[:0], n.conns...), n.frames
	if len(conns) == 0 {
		for _, d := range n.directs {
			if c := d.leg(); c != nil && len(conns) < len(few) {
				conns = append(conns, c)
			}
		}
	}
	n.mu.Unlock()
	size := frame.MaxSize
	for _, c := range conns {
		if p := c.a.MaxPayload(); p >= 4*frame.Overhead { // else the association has just ended
			size = min(size, p)
		}
	}
	if size == frame.MaxSize && last > 0 && len(conns) == 0 {
		return last // legs to come are like those that were
	}
	if size != last {
		n.mu.Lock()
		n.frames = size
		n.mu.Unlock()
	}
	return size
}

// MaxPayload returns the length of the largest message that fits one frame now. It changes with the paths to the gateways.
func (n *Node) MaxPayload() int { return n.frameSize() - frame.Overhead }

// cost is the memory of one frame of the message at most: a buffer has up to twice the length asked for.
func (m *message) cost() int {
	return max(256, 2*(min(m.left(), m.size)+frame.Overhead)) + packetCost
}

// left is how many bytes are left.
func (m *message) left() int { return len(m.header) + len(m.rest) }

// frames makes frames of what is left, as many as fit into batch, and returns how many.
func (m *message) frames(batch []*packet) int {
	s := m.s
	k := 0
	for ; k < len(batch) && m.left() > 0; k++ {
		size := min(m.left(), m.size)
		h := frame.Header{
			Type: frame.Data, Flags: m.flags, Hops: frame.MaxHops, Stream: s.stream, Job: s.n.cfg.Job,
			From: s.n.cfg.Address, To: s.to, Incarnation: s.incarnation,
		}
		if size == m.left() {
			h.Flags |= frame.Last
			if m.ackNow {
				h.Flags |= frame.AckNow
			}
		}
		if m.single {
			h.Type = frame.Single
		}
		f := frame.Frame{Header: h, PPID: m.ppid}
		var buf [frame.Overhead]byte
		head := frame.Append(buf[:0], &f)
		p := newPacket(len(head) + size)
		body := p.bytes()[copy(p.bytes(), head):]
		n := copy(body, m.header)
		m.header = m.header[n:]
		m.rest = m.rest[copy(body[n:], m.rest):]
		p.hash, p.single, p.credit = s.hash, m.single, size+creditCost
		if m.left() == 0 {
			p.owner, p.group = m.owner, m.group
		}
		if s.n.cfg.Mode == Lossy {
			p.lossy = s
		}
		m.flags &^= frame.First
		batch[k] = p
	}
	return k
}
