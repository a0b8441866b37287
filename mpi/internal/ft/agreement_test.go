package ft

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// ftNet is a group in which messages take any time, ranks die at any moment,
// and each learns of a death when it wants to, but after the last message of
// the dead. Messages to different ranks are cut off one by one.
type ftNet struct {
	rng   *rand.Rand
	ranks []*Agreement
	dead  []bool
	seen  [][]bool    // by rank: whose death it knows of
	lines [][][]ftMsg // messages on their way, by sender and receiver
}

type ftMsg struct {
	step Step
	b    *Ballot
}

func newFTNet(rng *rand.Rand, n int) *ftNet {
	t := &ftNet{rng: rng, dead: make([]bool, n)}
	for me := range n {
		t.seen = append(t.seen, make([]bool, n))
		t.lines = append(t.lines, make([][]ftMsg, n))
		t.ranks = append(t.ranks, NewAgreement(me, n,
			func(r int) bool { return !t.seen[me][r] },
			func(to int, step Step, b *Ballot) {
				if !t.dead[me] && rng.IntN(40) == 0 && t.left() > 1 {
					t.dead[me] = true // in the middle of telling all
				}
				if !t.dead[me] {
					t.lines[me][to] = append(t.lines[me][to], ftMsg{step, b})
				}
			}))
	}
	return t
}

func (t *ftNet) left() int {
	n := 0
	for _, d := range t.dead {
		if !d {
			n++
		}
	}
	return n
}

// move lets one thing happen, and reports whether anything can.
func (t *ftNet) move() bool {
	type event struct{ from, to int }
	var events []event
	for from := range t.lines {
		for to := range t.lines {
			if t.dead[to] {
				t.lines[from][to] = nil
			} else if len(t.lines[from][to]) > 0 || t.dead[from] && !t.seen[to][from] {
				events = append(events, event{from, to})
			}
		}
	}
	if len(events) == 0 {
		return false
	}
	e := events[t.rng.IntN(len(events))]
	if line := t.lines[e.from][e.to]; len(line) > 0 {
		t.lines[e.from][e.to] = line[1:]
		t.ranks[e.to].Receive(e.from, line[0].step, line[0].b)
	} else {
		t.seen[e.to][e.from] = true
		t.ranks[e.to].Advance()
	}
	return true
}

// TestAgreementUnderFailures lets ranks die at random, also coordinators that
// have told half of the others, and checks that those alive all decide alike.
func TestAgreementUnderFailures(t *testing.T) {
	base := rand.Uint64()
	runs := 20_000
	if testing.Short() {
		runs = 2000
	}
	deaths, takeovers := 0, 0
	for i := range runs {
		seed := base + uint64(i)
		rng := rand.New(rand.NewPCG(seed, 7))
		n := 1 + rng.IntN(8)
		net := newFTNet(rng, n)
		starts := rng.Perm(n)
		for {
			switch {
			case len(starts) > 0 && rng.IntN(4) == 0:
				r := starts[0]
				starts = starts[1:]
				if !net.dead[r] {
					v := NewBallot(n)
					v.Flags = rng.Uint64() | 1<<63
					copy(v.Failed, net.seen[r])
					net.ranks[r].Vote(v)
				}
				continue
			case rng.IntN(30) == 0 && net.left() > 1:
				net.dead[rng.IntN(n)] = true
				continue
			}
			if !net.move() && len(starts) == 0 {
				break
			}
		}
		var want *Ballot
		for r, a := range net.ranks {
			if net.dead[r] {
				deaths++
				continue
			}
			if a.Decision == nil {
				t.Fatalf("seed %d: rank %d of %d never decides (dead: %v)", seed, r, n, net.dead)
			}
			if want == nil {
				want = a.Decision
				if a.coord > 0 {
					takeovers++
				}
			}
			if !reflect.DeepEqual(a.Decision, want) {
				t.Fatalf("seed %d: rank %d decides %+v, another one %+v", seed, r, a.Decision, want)
			}
			if want.Failed[r] {
				t.Fatalf("seed %d: rank %d is alive and decided to be dead", seed, r)
			}
			if want.Flags&^a.votes[r].Flags != 0 {
				t.Fatalf("seed %d: decision %x ignores the vote %x of rank %d", seed, want.Flags, a.votes[r].Flags, r)
			}
		}
	}
	if deaths < runs/4 || takeovers < runs/20 {
		t.Errorf("only %d deaths and %d takeovers in %d runs", deaths, takeovers, runs)
	}
}

// TestAgreementRemembersADecision has the coordinator tell one rank only.
func TestAgreementRemembersADecision(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	net := newFTNet(rng, 3)
	for _, a := range net.ranks { // no random deaths
		a.send = func(to int, step Step, b *Ballot) {
			net.lines[a.me][to] = append(net.lines[a.me][to], ftMsg{step, b})
		}
	}
	for r, a := range net.ranks {
		v := NewBallot(3)
		v.Flags = uint64(0b1110 | r)
		a.Vote(v)
	}
	deliver := func(from, to int) {
		m := net.lines[from][to][0]
		net.lines[from][to] = net.lines[from][to][1:]
		net.ranks[to].Receive(from, m.step, m.b)
	}
	deliver(1, 0)
	deliver(2, 0) // rank 0 decides
	deliver(0, 2) // and only rank 2 hears of it
	net.lines[0][1] = nil
	net.dead[0] = true
	for net.move() {
	}
	for _, r := range []int{1, 2} {
		if d := net.ranks[r].Decision; d == nil || d.Flags != 0b1110 || d.Failed[0] {
			t.Errorf("rank %d decides %+v, want what rank 0 did when it was alive", r, d)
		}
	}
}
