package mpi

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/weftstack/weft/mpi/internal/ft"
)

// ftService is the failure service of a World: it handles the messages of agreements and
// revocations on a goroutine of its own, independent of the program. They are messages of a context
// that belongs to no communicator.
type ftService struct {
	w     *World
	x     *matchContext
	limit int // bound on the members of a communicator

	mu    sync.Mutex // guards what follows; messages are sent under it
	comms map[uint64]*ftComm
	open  int      // number of comms that are in use, or not known here
	gone  []uint64 // ids of comms that were freed, oldest first
}

// ftComm is the state of a communicator in the service. It exists once an agreement was started on
// the communicator, or a message came for it.
type ftComm struct {
	c       *Comm // nil until this rank has made it
	members []*peer
	me      int // among members
	revoked bool
	started uint64 // number of agreements started here
	cast    uint64 // number of those that this rank has voted in
	rounds  map[uint64]*ftRound
	early   []ftMail // messages for a communicator that is not known here yet
}

// ftRound is one agreement on a communicator.
type ftRound struct {
	*ft.Agreement
	done     chan struct{} // closed when there is a decision
	signaled bool          // done is closed
}

// ftMail is a message of the service with its sender.
type ftMail struct {
	ft.Message
	from *peer
}

const (
	// ftID is the id of the context of the service, in slotColl.
	ftID = 3 << 8
	// maxFTOpen bounds the communicators of the service that are in use.
	maxFTOpen = 1 << 14
	// maxFTGone is how many freed communicators the service remembers, so that slower ranks learn
	// the decision of the last agreement on them.
	maxFTGone = 1 << 10
	// maxFTEarly bounds the messages kept for a communicator not made yet.
	maxFTEarly = 1 << 12
	// keepRounds is how many agreements of a communicator are remembered. Once one has begun
	// everywhere, the one before its predecessor is over everywhere.
	keepRounds = 3
)

func newFTService(w *World) *ftService {
	f := &ftService{w: w, comms: make(map[uint64]*ftComm), limit: w.Size() + ftRoom}
	f.x = newContext(ftID | uint64(slotColl))
	f.x.internal = true
	w.eng.contexts[f.x.id] = f.x
	return f
}

// run receives messages until the World ends.
func (f *ftService) run() {
	e := f.w.eng
	buf := make([]byte, ft.MessageLen(f.limit))
	w := e.internalWaiters.get()
	defer w.recycle()
	for {
		r := getRequest(e)
		r.ctx, r.src, r.tag, r.buf = f.x, AnySource, AnyTag, buf
		e.mu.Lock()
		if e.err != nil {
			e.mu.Unlock()
			return
		}
		f.x.post(r)
		ms := f.x.taken()
		e.mu.Unlock()
		e.handAll(ms)
		if r.addWaiter(w) {
			for !r.done.Load() {
				_ = w.wait(context.Background())
			}
		}
		if r.err != nil {
			continue // the sender died, or the World has ended
		}
		if m, ok := ft.Parse(buf[:r.status.Bytes]); ok {
			f.take(ftMail{m, r.peer})
		}
		r.recycle()
	}
}

// ftRoom is how many more members than the world a communicator with agreements may have.
const ftRoom = 4096

// send sends a message of the service without waiting. The service learns of a failure of p by
// down.
func (f *ftService) send(p *peer, b []byte) {
	c := &Comm{comm: comm{eng: f.w.eng, peers: []*peer{p}, seq: make([]uint32, 1)}, w: f.w, group: []int32{0}}
	c.ctx[slotColl] = f.x
	c.hints.Store(f.w.self.hints.Load())
	_, _ = c.comm.isend(slotColl, sendStandard, b, 0, 0)
}

// comm returns the state of a communicator, which it makes if there is none, or nil if maxFTOpen
// are in use. mu is held.
func (f *ftService) comm(id uint64) *ftComm {
	k := f.comms[id]
	if k == nil {
		if f.open >= maxFTOpen || slices.Contains(f.gone, id) {
			return nil
		}
		f.open++
		k = &ftComm{rounds: make(map[uint64]*ftRound)}
		f.comms[id] = k
	}
	return k
}

// adopt connects a communicator that this rank has made with messages that came for it before, and
// ends its operations if it is revoked.
func (f *ftService) adopt(c *Comm) {
	f.mu.Lock()
	k := f.comms[c.id]
	if k == nil || k.c != nil {
		f.mu.Unlock()
		return
	}
	revoked := f.know(k, c)
	f.mu.Unlock()
	if revoked {
		c.revoked(Undefined)
	}
}

// know makes c the communicator of k and handles the messages that came before. It reports whether
// c is revoked by them. mu is held.
func (f *ftService) know(k *ftComm, c *Comm) bool {
	if k.c != nil {
		return false
	}
	k.c = c
	k.members, k.me = c.members()
	was := k.revoked
	k.revoked = false
	for _, m := range k.early {
		was = f.deliver(k, m) || was
	}
	k.early = nil
	return was && f.revoke(k)
}

// take handles a message.
func (f *ftService) take(m ftMail) {
	f.mu.Lock()
	k := f.comm(m.Comm)
	if k == nil {
		f.mu.Unlock()
		return
	}
	revoked, by := false, Undefined
	if k.c == nil {
		if c := f.w.eng.commOf(m.Comm); c != nil {
			// It has just been made, and adopt has not been called. Earlier messages
			// may have revoked it.
			revoked = f.know(k, c)
		}
	}
	if k.c == nil {
		if m.Step == ft.StepRevoke {
			k.revoked = true
		} else if len(k.early) < maxFTEarly {
			m.Body = slices.Clone(m.Body)
			k.early = append(k.early, m)
		}
		f.mu.Unlock()
		return
	}
	if f.deliver(k, m) && f.revoke(k) {
		revoked, by = true, m.from.rank
	}
	f.mu.Unlock()
	if revoked {
		k.c.revoked(by)
	}
}

// commOf returns the communicator with an id, or nil if this rank has not made it.
func (e *engine) commOf(id uint64) *Comm {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.contexts[id]; x != nil && x.comm != nil {
		return x.comm.owner.(*Comm)
	}
	return nil
}

// deliver gives m to its agreement, and reports whether m is a revocation instead. mu is held.
func (f *ftService) deliver(k *ftComm, m ftMail) bool {
	if m.N != len(k.members) || k.members[m.Rank] != m.from {
		return false // malformed
	}
	if m.Step == ft.StepRevoke {
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
func (f *ftService) round(k *ftComm, round uint64) *ftRound {
	if r := k.rounds[round]; r != nil {
		return r
	}
	r := &ftRound{done: make(chan struct{})}
	r.Agreement = ft.NewAgreement(k.me, len(k.members),
		func(rank int) bool { return rank == k.me || k.members[rank].failure() == nil },
		func(to int, step ft.Step, b *ft.Ballot) {
			m := ft.Message{Step: step, Comm: k.c.id, Round: round, Rank: k.me, N: len(k.members)}
			f.send(k.members[to], m.Encode(b))
		})
	k.rounds[round] = r
	return r
}

// signalDecision wakes the goroutines that wait for the decision.
func (r *ftRound) signalDecision() {
	if r.Decision != nil && !r.signaled {
		r.signaled = true
		close(r.done)
	}
}

// revoke marks a communicator as revoked and notifies its members. It reports false if it was
// marked before. mu is held.
func (f *ftService) revoke(k *ftComm) bool {
	if k.revoked {
		return false
	}
	k.revoked = true
	m := ft.Message{Step: ft.StepRevoke, Comm: k.c.id, Rank: k.me, N: len(k.members)}
	for i, p := range k.members {
		if i != k.me && p.failure() == nil {
			f.send(p, m.Encode(nil))
		}
	}
	return true
}

// down advances the agreements without a rank that has failed.
func (f *ftService) down() {
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

// forget is called when c is freed. The decision of its last agreement is kept for slower ranks.
func (f *ftService) forget(c *Comm) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.comms[c.id]
	if k == nil {
		return
	}
	f.open--
	f.gone = append(f.gone, c.id)
	if len(f.gone) > maxFTGone {
		delete(f.comms, f.gone[0])
		f.gone = slices.Delete(f.gone, 0, 1)
	}
}

// start begins the next agreement on c: once the one before is decided, this rank votes what vote
// returns. It returns a function that waits for the decision.
func (f *ftService) start(c *Comm, vote func() *ft.Ballot) (func(context.Context) (*ft.Ballot, uint64, error), error) {
	f.mu.Lock()
	k := f.comm(c.id)
	if k == nil {
		f.mu.Unlock()
		return nil, fmt.Errorf("%w: too many communicators with agreements", ErrLimit)
	}
	revoked := f.know(k, c)
	if len(k.members) > f.limit {
		f.mu.Unlock()
		return nil, fmt.Errorf("%w: agreement of %d ranks", ErrLimit, len(k.members))
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
		c.revoked(Undefined)
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
			case <-f.w.eng.over:
			}
		}()
	} else {
		cast()
	}
	return func(ctx context.Context) (*ft.Ballot, uint64, error) {
		select {
		case <-r.done:
			return r.Decision, round, nil
		case <-ctx.Done():
			return nil, round, ctx.Err()
		case <-f.w.eng.over:
			return nil, round, f.w.usable()
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
