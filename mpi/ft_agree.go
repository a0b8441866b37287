package mpi

// An agreement is one rank's part in finding one decision for a group of which
// ranks may die at any time, also during the agreement. It is a plain data
// structure: no locks, no I/O.
//
// The lowest rank that is alive coordinates. All ranks vote with it; when it
// has a vote of everybody alive it decides and tells all. A rank returns when
// it knows the decision, and remembers it. When the coordinator dies, all turn
// to the next one. Since the dead one may have told its decision to some, the
// next one asks all, and takes over a decision that one of them remembers; only
// if nobody alive does it make its own. A rank that has turned to a coordinator
// takes no decision from those before it, so there cannot be two: this is
// consensus with a rotating coordinator and a failure detector that suspects
// every dead rank and no other (Chandra and Toueg, JACM 43(2), 1996, Section
// 6.1), with the difference that a rank that dies after it has returned may
// have seen a decision that the others do not know.
type agreement struct {
	me, n int
	alive func(rank int) bool
	send  func(to int, step ftStep, b *ballot)

	coord    int // the lowest rank that may coordinate
	voted    int // who has our vote; -1: nobody
	asked    bool
	votes    []*ballot // by rank; that of me is set when it takes part
	decision *ballot
}

// ftStep is what a message of the failure service is about.
type ftStep uint8

const (
	ftVote   ftStep = iota + 1 // to the coordinator
	ftQuery                    // from a coordinator that took over
	ftDecide                   // from one that knows the decision
	ftRevoke                   // a communicator is revoked
	ftStepLimit
)

// ballot is a vote, and the outcome.
type ballot struct {
	flags  uint64
	failed []bool // ranks known to be dead
	acked  []bool // those of them that the program knows of
}

func newBallot(n int) *ballot {
	return &ballot{flags: ^uint64(0), failed: make([]bool, n), acked: make([]bool, n)}
}

func newAgreement(me, n int, alive func(int) bool, send func(int, ftStep, *ballot)) *agreement {
	return &agreement{me: me, n: n, alive: alive, send: send, voted: -1, votes: make([]*ballot, n)}
}

// vote takes part.
func (a *agreement) vote(b *ballot) {
	a.votes[a.me] = b
	a.step()
}

// receive acts on a message of a rank.
func (a *agreement) receive(from int, step ftStep, b *ballot) {
	switch {
	case a.decision != nil:
		if step != ftDecide {
			a.send(from, ftDecide, a.decision)
		}
	case step == ftVote:
		a.votes[from] = b
		a.step()
	case step == ftQuery && from >= a.coord:
		a.coord = from
		a.step()
	case step == ftDecide && from >= a.coord:
		a.decide(b, from)
	}
}

// step does what can be done. It is called when something has changed, also
// when a rank has died.
func (a *agreement) step() {
	if a.decision != nil || a.votes[a.me] == nil {
		return
	}
	for a.coord < a.n && a.coord != a.me && !a.alive(a.coord) {
		a.coord++
	}
	if a.coord == a.n {
		a.coord = a.me // those after this rank had taken over, and are gone
	}
	if a.coord != a.me {
		if a.voted != a.coord {
			a.voted = a.coord
			a.send(a.coord, ftVote, a.votes[a.me])
		}
		return
	}
	missing := false
	for r := range a.n {
		if r == a.me || a.votes[r] != nil || !a.alive(r) {
			continue
		}
		missing = true
		if !a.asked && a.me > 0 {
			a.send(r, ftQuery, a.votes[a.me])
		}
	}
	a.asked = true
	if !missing {
		a.decide(a.fold(), a.me)
	}
}

// fold makes the decision of all votes.
func (a *agreement) fold() *ballot {
	d := newBallot(a.n)
	for r := range d.acked {
		d.acked[r] = true
	}
	for r, v := range a.votes {
		d.failed[r] = d.failed[r] || !a.alive(r)
		if v == nil {
			continue
		}
		d.flags &= v.flags
		for i := range a.n {
			d.failed[i] = d.failed[i] || v.failed[i]
			d.acked[i] = d.acked[i] && v.acked[i]
		}
	}
	return d
}

// decide takes the decision d that a rank has told. It is passed on to all by
// the coordinator, and by others to those that have taken them for it.
func (a *agreement) decide(d *ballot, from int) {
	a.decision = d
	for r := range a.n {
		waits := a.coord == a.me || a.votes[r] != nil || r == a.coord
		if waits && r != a.me && r != from && a.alive(r) {
			a.send(r, ftDecide, d)
		}
	}
}

// unknown returns the lowest rank that is dead and that not everybody's
// program knows of, or -1.
func (b *ballot) unknown() int {
	for r := range b.failed {
		if b.failed[r] && !b.acked[r] {
			return r
		}
	}
	return -1
}
