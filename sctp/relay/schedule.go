package relay

import (
	"slices"
	"time"
)

// shares are the classes of a leg: those with frames take turns by deficit round robin (Shreedhar and
// Varghese, IEEE/ACM ToN 4(3), 1996), and the flows of each by frame. The mutex of the leg guards it.
type shares struct {
	only   share   // of a leg without classes
	all    []share // by class; nil: only
	active []*share
	trunk  *trunk // of a leg to a gateway: its rates

	// A leg whose classes all wait for a rate sleeps until the timer has fired.
	asleep bool
	timer  *time.Timer
}

// share is a class on one leg.
type share struct {
	class      uint8
	weight     int
	deficit    int    // bytes that it may send in this turn
	head, tail *queue // flows with frames, in the order of their turns
}

// divide gives the leg classes. It is called before the leg is used.
func (s *shares) divide(cfg []Class, t *trunk, wake func()) {
	s.trunk = t
	s.all = make([]share, len(cfg))
	s.active = make([]*share, 0, len(cfg))
	for i := range s.all {
		s.all[i].class, s.all[i].weight = uint8(i), cfg[i].Weight
	}
	if t.limited {
		s.timer = time.AfterFunc(time.Hour, wake)
		s.timer.Stop()
	}
}

func (s *shares) of(q *queue) *share {
	if s.all == nil {
		return &s.only
	}
	return &s.all[q.class]
}

// list puts q at the end of its class.
func (s *shares) list(q *queue) {
	c := s.of(q)
	if q.next = nil; c.tail != nil {
		c.tail.next = q
	} else {
		c.head = q
		if s.all != nil {
			s.active = append(s.active, c)
			s.asleep = false
		}
	}
	c.tail = q
}

// empty reports whether no flow has frames.
func (s *shares) empty() bool { return s.only.head == nil && len(s.active) == 0 }

// take removes the next frame, nil if there is none that may be sent now.
func (s *shares) take() *packet {
	c := &s.only
	if s.all != nil {
		if c = s.turn(); c == nil {
			return nil
		}
	} else if c.head == nil {
		return nil
	}
	q := c.head
	if c.head = q.next; c.head == nil {
		c.tail = nil
	}
	p := q.frames.Pop()
	if q.listed, q.next = q.frames.Len() > 0, nil; q.listed {
		if c.tail == nil {
			c.head = q
		} else {
			c.tail.next = q
		}
		c.tail = q
	}
	if s.all != nil {
		c.deficit -= p.n
		s.trunk.sent(c.class, p.n)
		if c.head == nil {
			c.deficit = 0
			s.active = append(s.active[:0], s.active[1:]...)
		}
	}
	return p
}

// turn returns the class whose turn it is; nil if none has frames, or all have to wait for their rates.
func (s *shares) turn() *share {
	var now, soonest time.Duration
	if s.trunk.limited {
		now = time.Since(s.trunk.began)
	}
	for waiting := 0; waiting < len(s.active); {
		c := s.active[0]
		if s.trunk.limited {
			if d := s.trunk.wait(c.class, now); d > 0 {
				if soonest == 0 || d < soonest {
					soonest = d
				}
				waiting++
				s.rotate()
				continue
			}
		}
		if c.deficit >= (*c.head.frames.At(0)).n {
			return c
		}
		c.deficit += c.weight * quantum
		waiting = 0
		s.rotate()
	}
	if len(s.active) > 0 {
		s.asleep = true
		s.timer.Reset(soonest)
		for _, c := range s.active {
			s.trunk.classes[c.class].waits.Add(1)
		}
	}
	return nil
}

// rotate ends the turn of the first class.
func (s *shares) rotate() {
	c := s.active[0]
	copy(s.active, s.active[1:])
	s.active[len(s.active)-1] = c
}

// unlist takes q, with its frames, out of its class.
func (s *shares) unlist(q *queue) {
	if !q.listed {
		return
	}
	c := s.of(q)
	var last *queue
	for p := &c.head; *p != nil; {
		if *p != q {
			last, p = *p, &(*p).next
			continue
		}
		if *p = q.next; c.tail == q {
			c.tail = last
		}
		break
	}
	q.listed, q.next = false, nil
	if c.head == nil {
		c.deficit = 0
		s.active = slices.DeleteFunc(s.active, func(o *share) bool { return o == c })
	}
}

// drop releases all frames.
func (s *shares) drop() {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.only.drop()
	for i := range s.all {
		s.all[i].drop()
	}
	s.active = s.active[:0]
}

func (c *share) drop() {
	for q := c.head; q != nil; {
		q.drop()
		next := q.next
		q.listed, q.next = false, nil
		q = next
	}
	c.head, c.tail, c.deficit = nil, nil, 0
}
