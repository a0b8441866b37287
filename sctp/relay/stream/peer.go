package stream

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"github.com/weftstack/weft/sctp/relay"
)

const (
	// controlStream is the stream for the two endpoints.
	controlStream = 0
	// firstStream is the first one for connections.
	firstStream = 2
)

// peer is a process that there are connections with, or were. All but e, addr and odd is guarded by Endpoint.mu.
type peer struct {
	e    *Endpoint
	addr relay.Address
	odd  uint16 // 1 if this side opens connections on odd streams

	flows map[uint16]*flow
	free  []uint16 // streams of former connections that this side opened
	fresh int      // the next stream that was never used
	open  int      // connections

	control *relay.Sender
	notices map[uint16]notice // that were not sent yet, the last one of each stream
}

// peer returns the process with an address, nil if there are too many. mu is held.
func (e *Endpoint) peer(a relay.Address) *peer {
	p := e.peers[a]
	if p != nil || len(e.peers) >= maxPeers {
		return p
	}
	p = &peer{e: e, addr: a, flows: make(map[uint16]*flow), notices: make(map[uint16]notice)}
	if compare(e.Address(), a) > 0 {
		p.odd = 1
	}
	p.fresh = firstStream + int(p.odd)
	e.peers[a] = p
	return p
}

func compare(a, b relay.Address) int {
	return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Process, b.Process))
}

// flow returns the flow of a stream. mu is held.
func (p *peer) flow(stream uint16) *flow {
	f := p.flows[stream]
	if f == nil {
		f = &flow{p: p, stream: stream, turn: make(chan struct{}, 1)}
		p.flows[stream] = f
	}
	return f
}

// take returns a stream for a connection that this side opens. mu is held.
func (p *peer) take() (stream uint16, ok bool) {
	if n := len(p.free); n > 0 {
		stream = p.free[n-1]
		p.free = p.free[:n-1]
		return stream, true
	}
	if p.fresh > 0xffff {
		return 0, false
	}
	stream = uint16(p.fresh)
	p.fresh += 2
	return stream, true
}

// conns appends the connections. mu is held.
func (p *peer) conns(all []*Conn) []*Conn {
	for _, f := range p.flows {
		if f.conn != nil {
			all = append(all, f.conn)
		}
	}
	return all
}

// firstGeneration returns where a process begins to count connections.
func firstGeneration() uint32 { return rand.Uint32() & generationMask }

// nextGeneration returns the generation of a new connection. mu is held.
func (e *Endpoint) nextGeneration() uint32 {
	e.generation = (e.generation + 1) & generationMask
	return e.generation
}

// tell sends notices that were not sent yet, and a ping. It learns whether the process is gone.
func (p *peer) tell(ping bool) {
	e := p.e
	e.mu.Lock()
	s := p.control
	e.mu.Unlock()
	if s == nil {
		var err error
		if s, err = e.cfg.Node.Sender(p.addr, controlStream); err != nil {
			return // the node has been closed, or has as many flows as it may have
		}
		e.mu.Lock()
		p.control = s
		e.mu.Unlock()
	}
	for {
		e.mu.Lock()
		var r notice
		any := false
		for _, r = range p.notices {
			any = true
			break
		}
		if any {
			delete(p.notices, r.stream)
		}
		e.mu.Unlock()
		if !any {
			break
		}
		var b [noticeSize]byte
		err := s.TrySend(r.append(b[:0]), relay.SendOptions{PPID: ppidOf(r.kind, r.generation)})
		if err == nil {
			continue
		}
		e.mu.Lock()
		if _, newer := p.notices[r.stream]; !newer {
			p.notices[r.stream] = r
		}
		e.mu.Unlock()
		p.check(s, err)
		return // the timer goes on
	}
	if ping {
		p.check(s, s.TrySend([]byte{version}, relay.SendOptions{PPID: ppidOf(kindPing, 0)}))
	}
}

// check resets all connections if err is the end of the control flow s.
func (p *peer) check(s *relay.Sender, err error) {
	if err == nil || isAgain(err) {
		return
	}
	e := p.e
	e.mu.Lock()
	if p.control != s {
		e.mu.Unlock()
		return
	}
	p.control = nil
	clear(p.notices)
	all := p.conns(nil)
	for _, f := range p.flows {
		f.release()
	}
	e.counters.PeersLost++
	e.mu.Unlock()
	if len(all) > 0 {
		e.note(slog.LevelWarn, "process is gone", slog.String("process", p.addr.String()),
			slog.Int("connections", len(all)), slog.Any("error", err))
	}
	for _, c := range all {
		c.fail(fmt.Errorf("%w: %w", ErrReset, err), CodeUnspecified, false)
	}
}
