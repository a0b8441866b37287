package gateway

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/sctp/relay"
)

// Messages of flow 0, by their first byte. The payload protocol identifier is the number of the link.
const (
	msgHandshake = 'h' // then a message of package handshake
	msgFIN       = 'f' // then for each flow its number (2 bytes) and the bytes sent on it (8)
	msgAbort     = 'a' // then the reason
	msgAlive     = 'k' // a sign of life; the number of the link is 0
)

const (
	// maxLinks bounds the links between two processes, in use or being made.
	maxLinks = 16
	// maxReason is how much of the reason of an abort is sent, in bytes.
	maxReason = 512
	// finEntry is the length of the entry of a flow in FIN, in bytes.
	finEntry = 10
)

// pair is another process: the flows to it and from it, which all links to it share.
type pair struct {
	station *Station
	to      relay.Address
	flows   []atomic.Pointer[flow]
	links   atomic.Pointer[[]*Link] // copy on write
	alive   atomic.Bool             // something has come from it since the last tick
	told    atomic.Bool             // it was told since the last tick that a link does not exist
	dead    atomic.Bool             // failed is set

	mu        sync.Mutex
	failed    error
	receivers []*relay.Receiver // by stream: another one means that the process has restarted

	// Of the timer.
	idle      int // ticks without anything
	asked     bool
	noAnswers bool
}

func newPair(s *Station, to relay.Address) *pair {
	p := &pair{station: s, to: to, flows: make([]atomic.Pointer[flow], 1+maxFlows), receivers: make([]*relay.Receiver, 1+maxFlows)}
	p.links.Store(new([]*Link))
	return p
}

// flow returns a flow to the process. The first call makes it.
func (p *pair) flow(number int) (*flow, error) {
	if f := p.flows[number].Load(); f != nil {
		return f, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.flows[number].Load(); f != nil {
		return f, nil
	}
	if p.failed != nil {
		return nil, p.failed
	}
	s, err := p.station.node.Load().Sender(p.to, uint16(number))
	if err != nil {
		return nil, p.station.explain(p.to, err)
	}
	f := &flow{pair: p, sender: s, number: number}
	s.SetValue(f)
	p.flows[number].Store(f)
	return f, nil
}

// flush gives the relay what waits.
func (p *pair) flush() {
	for i := range p.flows {
		if f := p.flows[i].Load(); f != nil && f.dirty.Load() && f.dirty.Swap(false) {
			f.pump()
		}
	}
}

// sweepAll removes what belongs to links that have ended.
func (p *pair) sweepAll() {
	for i := range p.flows {
		if f := p.flows[i].Load(); f != nil {
			f.mu.Lock()
			f.sweep = true
			f.mu.Unlock()
			f.pump()
		}
	}
}

// link returns the link with a number, or nil.
func (p *pair) link(id uint32) *Link {
	for _, l := range *p.links.Load() {
		if l.id == id {
			return l
		}
	}
	return nil
}

// add adds a link with a number that none has.
func (p *pair) add(id uint32) (*Link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := *p.links.Load()
	switch {
	case p.failed != nil:
		return nil, p.failed
	case p.link(id) != nil:
		return nil, fmt.Errorf("%w: link %#x to process %v exists", mpierr.ErrProtocol, id, p.to)
	case len(old) >= maxLinks:
		return nil, fmt.Errorf("%w: %d links to process %v", mpierr.ErrLimit, len(old), p.to)
	}
	l := newLink(p, id)
	links := append(slices.Clone(old), l)
	p.links.Store(&links)
	return l, nil
}

// forget removes a link that has ended.
func (p *pair) forget(l *Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := slices.DeleteFunc(slices.Clone(*p.links.Load()), func(o *Link) bool { return o == l })
	p.links.Store(&links)
}

// fail ends all links because a flow has ended.
func (p *pair) fail(err error) {
	p.mu.Lock()
	if p.failed != nil {
		p.mu.Unlock()
		return
	}
	err = p.station.explain(p.to, err)
	p.failed = err
	p.dead.Store(true)
	links := *p.links.Load()
	p.mu.Unlock()
	p.station.drop(p)
	for _, l := range links {
		l.end(err)
	}
	p.station.goTask(p.sweepAll)
}

// send queues a message about a link, and transmits.
func (p *pair) send(l *Link, kind byte, body []byte) {
	f, err := p.flow(0)
	if err != nil {
		p.fail(err)
		return
	}
	f.mu.Lock()
	f.addCopy(l, []byte{kind}, body, true)
	f.mu.Unlock()
	f.pump()
}

func (p *pair) sendFIN(l *Link) {
	var b []byte
	for i := 1; i < len(l.sent); i++ {
		if n := l.sent[i].Load(); n > 0 {
			b = binary.BigEndian.AppendUint16(b, uint16(i))
			b = binary.BigEndian.AppendUint64(b, n)
		}
	}
	p.send(l, msgFIN, b)
}

func (p *pair) sendAbort(l *Link, reason string) {
	p.send(l, msgAbort, []byte(reason)[:min(len(reason), maxReason)])
}

// onFragment handles a part of a message of the process.
func (p *pair) onFragment(r *relay.Receiver, f *relay.Fragment) {
	p.alive.Store(true)
	if f.Aborted || f.Unordered {
		p.station.counters.Invalid.Add(1)
		return
	}
	if r.Stream() == 0 {
		if !f.Begin || !f.End { // these messages are shorter than a packet
			p.station.counters.Invalid.Add(1)
			return
		}
		p.onControl(f.PPID, f.Data)
		return
	}
	if l := p.link(f.PPID); l != nil {
		l.receive(int(r.Stream()), f.Data)
		return
	}
	p.unknown(f.PPID)
}

// unknown handles a message for a link that does not exist here: it has ended, but perhaps the other side does not know.
func (p *pair) unknown(id uint32) {
	p.station.counters.Stale.Add(1)
	if p.told.CompareAndSwap(false, true) {
		p.sendAbort(newLink(p, id), "no such link")
	}
}

// onControl handles a message of flow 0.
func (p *pair) onControl(id uint32, b []byte) {
	kind, b := b[0], b[1:]
	if kind == msgAlive {
		return
	}
	l := p.link(id)
	if kind == msgHandshake {
		if l == nil {
			var err error
			if l, err = p.add(id); err != nil {
				p.station.counters.Invalid.Add(1)
				return
			}
		}
		l.onHandshake(b)
		return
	}
	if l == nil {
		if kind != msgAbort {
			p.unknown(id)
		}
		return
	}
	switch kind {
	case msgFIN:
		l.onFIN(b)
	case msgAbort:
		l.aborted(string(b))
	default:
		l.violated(fmt.Errorf("%w: message %d about a link", mpierr.ErrProtocol, kind))
	}
}

// onFIN handles FIN.
func (l *Link) onFIN(b []byte) {
	l.recv.Lock()
	defer l.recv.Unlock()
	fin := make([]total, 0, len(b)/finEntry)
	for ; len(b) >= finEntry; b = b[finEntry:] {
		t := total{int(binary.BigEndian.Uint16(b)), binary.BigEndian.Uint64(b[2:])}
		if t.flow == 0 || t.flow >= len(l.got) {
			l.violated(fmt.Errorf("%w: end of flow %d", mpierr.ErrProtocol, t.flow))
			return
		}
		fin = append(fin, t)
	}
	l.mu.Lock()
	bad := len(b) > 0 || l.fin != nil || l.peer == nil
	if !bad {
		l.fin = fin
	}
	l.mu.Unlock()
	if bad {
		l.violated(fmt.Errorf("%w: unexpected end", mpierr.ErrProtocol))
		return
	}
	l.checkFinished()
}
