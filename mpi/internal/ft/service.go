package ft

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Host is the rank of a service. Processes are named by handles, which are constant.
type Host interface {
	// Comm returns the communicator with an id, or nil if this rank has not made it.
	Comm(id uint64) Comm
	// Failed reports whether the link to a process has ended.
	Failed(handle int32) bool
	// Send sends a message to the service of a process, without waiting. If the process fails,
	// Down is called.
	Send(handle int32, b []byte)
	// Over is closed when the rank has ended; Ended returns why.
	Over() <-chan struct{}
	Ended() error
}

// Comm is a communicator as the service uses it.
type Comm interface {
	ID() uint64
	// Members returns the handles of all members, in the same order everywhere, and the index of
	// the caller.
	Members() (handles []int32, me int)
	// Revoked is called once when the communicator is revoked, by a process or NoMember.
	Revoked(by int32)
}

// NoMember is the handle of no process.
const NoMember = -1

// Service is the failure service of a rank: it takes part in agreements on communicators and passes
// on revocations. Its host gives it the messages that arrive.
type Service struct {
	host  Host
	limit int // bound on the members of a communicator

	mu    sync.Mutex // guards what follows; messages are sent under it
	comms map[uint64]*comm
	open  int      // number of comms that are in use, or not known here
	gone  []uint64 // ids of comms that were freed, oldest first
}

// NewService makes the service of a rank, for communicators of at most limit members.
func NewService(host Host, limit int) *Service {
	return &Service{host: host, limit: limit, comms: make(map[uint64]*comm)}
}

// comm is the state of a communicator in the service. It exists once an agreement was started on
// the communicator, or a message came for it.
type comm struct {
	c       Comm // nil until this rank has made it
	members []int32
	me      int // among members
	revoked bool
	started uint64 // number of agreements started here
	cast    uint64 // number of those that this rank has voted in
	rounds  map[uint64]*consensus
	early   []mail // messages for a communicator that is not known here yet
}

// consensus is one agreement on a communicator.
type consensus struct {
	*Agreement
	done     chan struct{} // closed when there is a decision
	signaled bool          // done is closed
}

// mail is a message of the service with its sender.
type mail struct {
	Message
	from int32 // its handle
}

const (
	// maxOpen bounds the communicators of the service that are in use.
	maxOpen = 1 << 14
	// maxGone is how many freed communicators the service remembers, so that slower ranks learn
	// the decision of the last agreement on them.
	maxGone = 1 << 10
	// maxEarly bounds the messages kept for a communicator not made yet.
	maxEarly = 1 << 12
	// keepRounds is how many agreements of a communicator are remembered. Once one has begun
	// everywhere, the one before its predecessor is over everywhere.
	keepRounds = 3
)

// comm returns the state of a communicator, which it makes if there is none, or nil if maxOpen
// are in use. mu is held.
func (f *Service) comm(id uint64) *comm {
	k := f.comms[id]
	if k == nil {
		if f.open >= maxOpen || slices.Contains(f.gone, id) {
			return nil
		}
		f.open++
		k = &comm{rounds: make(map[uint64]*consensus)}
		f.comms[id] = k
	}
	return k
}

// Adopt connects a communicator that this rank has made with messages that came for it before, and
// ends its operations if it is revoked.
func (f *Service) Adopt(c Comm) {
	f.mu.Lock()
	k := f.comms[c.ID()]
	if k == nil || k.c != nil {
		f.mu.Unlock()
		return
	}
	revoked := f.know(k, c)
	f.mu.Unlock()
	if revoked {
		c.Revoked(NoMember)
	}
}

// know makes c the communicator of k and handles the messages that came before. It reports whether
// c is revoked by them. mu is held.
func (f *Service) know(k *comm, c Comm) bool {
	if k.c != nil {
		return false
	}
	k.c = c
	k.members, k.me = c.Members()
	was := k.revoked
	k.revoked = false
	for _, m := range k.early {
		was = f.deliver(k, m) || was
	}
	k.early = nil
	return was && f.revoke(k)
}

// Take handles a message of a process.
func (f *Service) Take(m Message, from int32) {
	f.mu.Lock()
	k := f.comm(m.Comm)
	if k == nil {
		f.mu.Unlock()
		return
	}
	revoked, by := false, int32(NoMember)
	if k.c == nil {
		if c := f.host.Comm(m.Comm); c != nil {
			// It has just been made, and Adopt has not been called. Earlier messages
			// may have revoked it.
			revoked = f.know(k, c)
		}
	}
	if k.c == nil {
		if m.Step == StepRevoke {
			k.revoked = true
		} else if len(k.early) < maxEarly {
			m.Body = slices.Clone(m.Body)
			k.early = append(k.early, mail{m, from})
		}
		f.mu.Unlock()
		return
	}
	if f.deliver(k, mail{m, from}) && f.revoke(k) {
		revoked, by = true, from
	}
	f.mu.Unlock()
	if revoked {
		k.c.Revoked(by)
	}
}

// deliver gives m to its agreement, and reports whether m is a revocation instead. mu is held.
func (f *Service) deliver(k *comm, m mail) bool {
	if m.N != len(k.members) || k.members[m.Rank] != m.from {
		return false // malformed
	}
	if m.Step == StepRevoke {
		return true
	}
	if m.Round > k.cast+1 || m.Round+keepRounds <= k.cast {
		return false // long over, or forged: no rank can be so far ahead
	}
	r := f.round(k, m.Round)
	r.Receive(m.Rank, m.Step, m.Ballot())
	r.signalDecision()
	return false
}

// round returns an agreement. mu is held.
func (f *Service) round(k *comm, round uint64) *consensus {
	if r := k.rounds[round]; r != nil {
		return r
	}
	r := &consensus{done: make(chan struct{})}
	r.Agreement = NewAgreement(k.me, len(k.members),
		func(rank int) bool { return rank == k.me || !f.host.Failed(k.members[rank]) },
		func(to int, step Step, b *Ballot) {
			m := Message{Step: step, Comm: k.c.ID(), Round: round, Rank: k.me, N: len(k.members)}
			f.host.Send(k.members[to], m.Encode(b))
		})
	k.rounds[round] = r
	return r
}

// signalDecision wakes the goroutines that wait for the decision.
func (r *consensus) signalDecision() {
	if r.Decision != nil && !r.signaled {
		r.signaled = true
		close(r.done)
	}
}

// Revoke revokes a communicator. It reports false if it was revoked before.
func (f *Service) Revoke(c Comm) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.comm(c.ID())
	if k == nil {
		return false, fmt.Errorf("%w: too many communicators with failures", mpierr.ErrLimit)
	}
	news := f.know(k, c)
	return f.revoke(k) || news, nil
}

// revoke marks a communicator as revoked and notifies its members. It reports false if it was
// marked before. mu is held.
func (f *Service) revoke(k *comm) bool {
	if k.revoked {
		return false
	}
	k.revoked = true
	m := Message{Step: StepRevoke, Comm: k.c.ID(), Rank: k.me, N: len(k.members)}
	for i, p := range k.members {
		if i != k.me && !f.host.Failed(p) {
			f.host.Send(p, m.Encode(nil))
		}
	}
	return true
}

// Down advances the agreements without a rank that has failed.
func (f *Service) Down() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.comms {
		for _, r := range k.rounds {
			if r.Decision == nil {
				r.Advance()
				r.signalDecision()
			}
		}
	}
}

// Forget is called when a communicator is freed. The decision of its last agreement is kept for slower ranks.
func (f *Service) Forget(id uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.comms[id]
	if k == nil {
		return
	}
	f.open--
	f.gone = append(f.gone, id)
	if len(f.gone) > maxGone {
		delete(f.comms, f.gone[0])
		f.gone = slices.Delete(f.gone, 0, 1)
	}
}

// Start begins the next agreement on c: once the one before is decided, this rank votes what vote
// returns. It returns a function that waits for the decision.
func (f *Service) Start(c Comm, vote func() *Ballot) (func(context.Context) (*Ballot, uint64, error), error) {
	f.mu.Lock()
	k := f.comm(c.ID())
	if k == nil {
		f.mu.Unlock()
		return nil, fmt.Errorf("%w: too many communicators with agreements", mpierr.ErrLimit)
	}
	revoked := f.know(k, c)
	if len(k.members) > f.limit {
		f.mu.Unlock()
		return nil, fmt.Errorf("%w: agreement of %d ranks", mpierr.ErrLimit, len(k.members))
	}
	var before chan struct{}
	if k.started > 0 {
		before = f.round(k, k.started).done
	}
	k.started++
	round := k.started
	r := f.round(k, round)
	f.mu.Unlock()
	if revoked {
		c.Revoked(NoMember)
	}
	cast := func() {
		b := vote()
		f.mu.Lock()
		defer f.mu.Unlock()
		k.cast = round
		delete(k.rounds, round-keepRounds)
		r.Vote(b)
		r.signalDecision()
	}
	if isOpen(before) {
		go func() {
			select {
			case <-before:
				cast()
			case <-f.host.Over():
			}
		}()
	} else {
		cast()
	}
	return func(ctx context.Context) (*Ballot, uint64, error) {
		select {
		case <-r.done:
			return r.Decision, round, nil
		case <-ctx.Done():
			return nil, round, ctx.Err()
		case <-f.host.Over():
			return nil, round, f.host.Ended()
		}
	}, nil
}

// isOpen reports whether c is a channel that is not closed.
func isOpen(c chan struct{}) bool {
	select {
	case <-c:
		return false
	default:
		return c != nil
	}
}
