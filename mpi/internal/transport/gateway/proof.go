package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/sctp/relay"
)

// dial begins a link to the process at an address.
func (s *Station) dial(to relay.Address, setup uint64, number int, h *handshake.Exchange, hello []byte) error {
	p, err := s.pairOf(to)
	if err != nil {
		return err
	}
	var id [4]byte
	for {
		_, _ = rand.Read(id[:]) // never fails
		n := binary.BigEndian.Uint32(id[:]) | 1
		if p.link(n) != nil {
			continue
		}
		l, err := p.add(n)
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.exchange, l.setup, l.number = h, setup, number
		l.mu.Unlock()
		p.send(l, msgHandshake, hello)
		s.expire(l)
		return nil
	}
}

// expire ends a link that is not up in time.
func (s *Station) expire(l *Link) {
	time.AfterFunc(handshake.Timeout, func() {
		l.mu.Lock()
		late := l.exchange != nil || l.waiting != nil
		l.mu.Unlock()
		if late {
			l.end(s.explain(l.pair.to, fmt.Errorf("%w: no answer to the handshake in %v", mpierr.ErrAuth, handshake.Timeout)))
		}
	})
}

// onHandshake handles a message of the handshake.
func (l *Link) onHandshake(msg []byte) {
	s := l.pair.station
	l.mu.Lock()
	if l.exchange == nil && l.peer == nil && l.waiting == nil && !l.ended { // hello
		// The key may be known some time before the ranks that it is to be from.
		if params, ok := s.cfg.Host.Params(); ok && s.connecting.Load() {
			l.exchange = handshake.Accept(params, s.cfg.Host.SetupParams)
		} else {
			l.waiting = bytes.Clone(msg)
		}
		s.expire(l)
		if l.waiting != nil {
			l.mu.Unlock()
			return // Connect resumes it
		}
	}
	l.mu.Unlock()
	if err := l.step(msg); err != nil {
		l.violated(err)
	}
}

// resume continues a handshake whose hello came before the key was known.
func (l *Link) resume() {
	l.mu.Lock()
	msg := l.waiting
	l.waiting = nil
	params, ok := l.pair.station.cfg.Host.Params()
	if ok && msg != nil {
		l.exchange = handshake.Accept(params, l.pair.station.cfg.Host.SetupParams)
	}
	l.mu.Unlock()
	if msg == nil || !ok {
		return
	}
	if err := l.step(msg); err != nil {
		l.violated(err)
	}
}

// step processes a message of the handshake and sends the reply.
func (l *Link) step(msg []byte) error {
	s := l.pair.station
	l.mu.Lock()
	h := l.exchange
	if h == nil {
		l.mu.Unlock()
		return fmt.Errorf("%w: unexpected message", mpierr.ErrAuth)
	}
	reply, err := h.Step(msg)
	l.setup, l.number = h.Setup(), h.Peer()
	known, over, number, setup, have := h.Receiving(), h.Sending(), h.Peer(), h.Setup(), l.peer != nil
	if over {
		l.exchange = nil
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if known && !have {
		var p *p2p.Peer
		if setup != 0 || s.claim(number, l) {
			p = s.cfg.Host.Claim(setup, number, l)
		}
		if p == nil {
			return fmt.Errorf("%w: process %d is not expected from process %v", mpierr.ErrAuth, number, l.pair.to)
		}
		l.mu.Lock()
		l.peer = p
		l.mu.Unlock()
	}
	if reply != nil {
		l.pair.send(l, msgHandshake, reply)
	}
	if over {
		l.complete(nil)
	}
	return nil
}

// complete tells that the link is up, or could not be made. Later calls do nothing.
func (l *Link) complete(err error) {
	l.mu.Lock()
	done := l.completed || l.number < 0 || err != nil && l.exchange != nil && l.exchange.Accepting() && l.peer == nil
	l.completed = true
	setup, number := l.setup, l.number
	l.mu.Unlock()
	switch {
	case done: // the end of an incoming link that is not authenticated concerns nobody
	case setup != 0:
		l.pair.station.cfg.Host.Linked(setup, number, err)
	default:
		l.pair.station.linked(number, err)
	}
}

// Dial begins a link to a process of a link setup. Host.Linked tells when it is up.
func (s *Station) Dial(to relay.Address, setup uint64, number int, h *handshake.Exchange, hello []byte) error {
	return s.dial(to, setup, number, h, hello)
}

// Connect makes links to ranks of the job at other sites, and waits until all are up. The higher rank connects to the
// lower. pairs is how many pairs of ranks of different sites the job has. It may be called once.
func (s *Station) Connect(ctx context.Context, self int, ranks map[int]relay.Address, pairs int) error {
	s.spread(pairs)
	s.mu.Lock()
	s.ranks = ranks
	s.connecting.Store(true)
	s.missing += len(ranks)
	var early []*Link
	for _, p := range s.pairs {
		early = append(early, *p.links.Load()...)
	}
	s.mu.Unlock()
	s.checkUp()
	for _, l := range early {
		l.resume()
	}
	params, _ := s.cfg.Host.Params()
	for rank, to := range ranks {
		if rank < self {
			h, hello := handshake.Connect(params, rank)
			if err := s.dial(to, 0, rank, h, hello); err != nil {
				s.linked(rank, err)
			}
		}
	}
	select {
	case <-s.up:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
