package gateway

import (
	"time"

	"github.com/weftstack/weft/sctp/relay"
)

const (
	// ticks is how many ticks of the timer there are in the timeout.
	ticks = 8
	// idleTicks is after how many ticks without anything from a process it is asked for a sign of life.
	idleTicks = 2
	// minTick and maxTick bound the period of the timer.
	minTick, maxTick = 100 * time.Millisecond, 5 * time.Second
)

// timer looks after processes that say nothing: an idle flow of the relay does not notice the end of its target.
func (s *Station) timer() {
	tick := min(max(s.cfg.Timeout/ticks, minTick), maxTick)
	t := time.NewTicker(tick)
	defer t.Stop()
	var pairs []*pair
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
		}
		pairs = pairs[:0]
		s.mu.Lock()
		for _, p := range s.pairs {
			pairs = append(pairs, p)
		}
		s.mu.Unlock()
		for _, p := range pairs {
			p.tick(tick)
		}
	}
}

// tick asks a process that has been idle for a sign of life.
func (p *pair) tick(period time.Duration) {
	p.told.Store(false)
	links := *p.links.Load()
	if p.alive.Swap(false) || len(links) == 0 {
		p.idle, p.asked = 0, false
		if p.noAnswers {
			p.noAnswers = false
			p.note(links, true, 0)
		}
		return
	}
	p.idle++
	if p.idle >= idleTicks && !p.asked {
		if f, err := p.flow(0); err == nil {
			p.asked = true
			_ = f.sender.TrySend([]byte{msgAlive}, relay.SendOptions{AckNow: true}) // if it is full it will notice the end itself
		}
	} else if p.asked && p.idle > idleTicks+1 && !p.noAnswers {
		p.noAnswers = true
		p.note(links, false, time.Duration(p.idle-idleTicks)*period)
	}
}

// note reports whether the process answers.
func (p *pair) note(links []*Link, answers bool, since time.Duration) {
	for _, l := range links {
		l.mu.Lock()
		peer := l.peer
		l.mu.Unlock()
		if peer != nil {
			p.station.cfg.Host.NoteLiveness(peer, answers, since)
		}
	}
}
