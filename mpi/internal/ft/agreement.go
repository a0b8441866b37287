package ft

// Agreement is one rank's part in a consensus with a rotating coordinator (Chandra and Toueg, JACM
// 43(2), 1996, Section 6.1): all survivors of a group get the same decision, whichever members fail
// meanwhile. It is a state machine without locks and I/O.
//
// The lowest rank that has not failed coordinates. All ranks send it their votes; when it has the
// votes of all survivors, it decides, and sends the decision to all. A rank returns when it knows
// the decision, and remembers it. When the coordinator fails, all ranks turn to the next one. The
// failed coordinator may have sent its decision to some ranks, so the next one asks all of them and
// adopts a decision that one of them remembers. Only if none does, it makes its own. A rank that
// has turned to a coordinator accepts no decision from earlier ones, so there cannot be two.
//
// The failure detector suspects every failed rank and no other one. One guarantee is weaker than in
// the paper: a rank that fails after it has returned may have seen a decision that the others do
// not know.
type Agreement struct {
	me, n int
	alive func(rank int) bool
	send  func(to int, step Step, b *Ballot)

	coord    int       // lowest rank that may coordinate
	voted    int       // rank to which this rank has sent its vote; -1: none
	asked    bool      // StepQuery was sent
	votes    []*Ballot // by rank; votes[me] is nil until Vote
	Decision *Ballot   // nil until it is known
}

// Step is the kind of a message of the failure service.
type Step uint8

// Kinds of messages.
const (
	StepVote   Step = iota + 1 // to the coordinator
	StepQuery                  // from a coordinator that took over
	StepDecide                 // from a rank that knows the decision
	StepRevoke                 // a communicator is revoked
	stepLimit
)

// Ballot is a vote, or the decision.
type Ballot struct {
	Flags  uint64
	Failed []bool // ranks that are known to have failed
	Acked  []bool // failures that the program has acknowledged
}

// NewBallot returns the neutral ballot of n ranks: all flags are set, and no rank has failed.
func NewBallot(n int) *Ballot {
	return &Ballot{Flags: ^uint64(0), Failed: make([]bool, n), Acked: make([]bool, n)}
}

// NewAgreement returns the part of rank me of n. alive reports whether a rank has not failed, and send sends a message
// to it without blocking; b is not changed afterwards.
func NewAgreement(me, n int, alive func(int) bool, send func(int, Step, *Ballot)) *Agreement {
	return &Agreement{me: me, n: n, alive: alive, send: send, voted: -1, votes: make([]*Ballot, n)}
}

// Vote gives the vote of this rank.
func (a *Agreement) Vote(b *Ballot) {
	a.votes[a.me] = b
	a.Advance()
}

// Receive handles a message of rank from. It keeps b.
func (a *Agreement) Receive(from int, step Step, b *Ballot) {
	switch {
	case a.Decision != nil:
		if step != StepDecide {
			a.send(from, StepDecide, a.Decision)
		}
	case step == StepVote:
		a.votes[from] = b
		a.Advance()
	case step == StepQuery && from >= a.coord:
		a.coord = from
		a.Advance()
	case step == StepDecide && from >= a.coord:
		a.decide(b, from)
	}
}

// Advance takes the steps that have become possible. It is called after a rank has failed.
func (a *Agreement) Advance() {
	if a.Decision != nil || a.votes[a.me] == nil {
		return
	}
	for a.coord < a.n && a.coord != a.me && !a.alive(a.coord) {
		a.coord++
	}
	if a.coord == a.n {
		a.coord = a.me // later ranks had taken over, and have failed
	}
	if a.coord != a.me {
		if a.voted != a.coord {
			a.voted = a.coord
			a.send(a.coord, StepVote, a.votes[a.me])
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
			a.send(r, StepQuery, a.votes[a.me])
		}
	}
	a.asked = true
	if !missing {
		a.decide(a.combine(), a.me)
	}
}

// combine returns the decision that follows from the votes.
func (a *Agreement) combine() *Ballot {
	d := NewBallot(a.n)
	for r := range d.Acked {
		d.Acked[r] = true
	}
	for r, v := range a.votes {
		d.Failed[r] = d.Failed[r] || !a.alive(r)
		if v == nil {
			continue
		}
		d.Flags &= v.Flags
		for i := range a.n {
			d.Failed[i] = d.Failed[i] || v.Failed[i]
			d.Acked[i] = d.Acked[i] && v.Acked[i]
		}
	}
	return d
}

// decide adopts the decision d, which rank from has sent. The coordinator passes it on to all
// ranks, another rank to those that have taken it for the coordinator.
func (a *Agreement) decide(d *Ballot, from int) {
	a.Decision = d
	for r := range a.n {
		waits := a.coord == a.me || a.votes[r] != nil || r == a.coord
		if waits && r != a.me && r != from && a.alive(r) {
			a.send(r, StepDecide, d)
		}
	}
}

// Unacknowledged returns the lowest rank with a failure that some program has not acknowledged, or
// -1.
func (b *Ballot) Unacknowledged() int {
	for r := range b.Failed {
		if b.Failed[r] && !b.Acked[r] {
			return r
		}
	}
	return -1
}
