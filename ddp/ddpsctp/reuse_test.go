package ddpsctp

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// usable returns how many streams can carry a session.
func (l *testLink) usable() (n int) {
	for i := range l.assoc.sessions {
		if s := l.assoc.sessions[i].Load(); s == nil || s.idle.Load() != 0 {
			n++
		}
	}
	return n
}

// TestStreamsAreUsableAgain opens, answers, takes back and ends sessions from both
// sides at random, on streams that both sides choose by the same rule, so that many
// collide. In the end every request had one outcome and every stream is usable.
func TestStreamsAreUsableAgain(t *testing.T) {
	base := rand.Uint64()
	outcomes := map[string]int{}
	collided := uint64(0)
	for round := range uint64(400) {
		seed := base + round
		rng := rand.New(rand.NewPCG(seed, 1))
		streams := 60 + rng.IntN(6)
		w := newWire(t, seed, streams)
		w.b.tag = w.a.tag
		w.a.assoc.choose()
		w.b.assoc.choose()
		var all []*peerStream
		over := func(p *peerStream) bool {
			return p.lost != nil || p.answer != nil && p.answer.Result != Accepted || slices.Contains(p.got, "end")
		}
		ended := map[*peerStream]bool{}
		tidy := func() {
			for _, p := range all {
				if p.session != nil && over(p) && !ended[p] {
					ended[p] = true
					if p.lost == nil && slices.Contains(p.got, "end") {
						p.session.Terminate()
					}
					p.session.Release()
				}
			}
		}
		links := []*testLink{w.a, w.b}
		initiated := 0
		act := func() {
			l := links[rng.IntN(2)]
			switch rng.IntN(6) {
			case 0, 1:
				p := &peerStream{}
				if _, err := l.assoc.Initiate(p, p.bind, nil, nil); err == nil {
					all = append(all, p)
					initiated++
				} else if !errors.Is(err, ErrNoStream) {
					t.Fatalf("seed %#x: %v", seed, err)
				}
			case 2, 3:
				if len(l.reqs) == 0 {
					return
				}
				r := l.reqs[0]
				l.reqs = l.reqs[1:]
				var err error
				switch rng.IntN(3) {
				case 0:
					err = r.Reject([]byte("no"))
				case 1:
					err = r.Refuse()
				default:
					p := &peerStream{}
					if err = r.Accept(p, p.bind, Enhanced{}, nil); err == nil {
						all = append(all, p)
					}
				}
				if err != nil && !errors.Is(err, ErrAnswered) {
					t.Fatalf("seed %#x: %v", seed, err)
				}
			case 4:
				if len(all) > 0 {
					if p := all[rng.IntN(len(all))]; p.session != nil && !over(p) {
						p.session.Terminate()
					}
				}
			default:
				for range rng.IntN(8) {
					w.step()
				}
			}
			tidy()
		}
		for range 150 {
			act()
		}
		for range 20 { // to its end
			w.run()
			for _, l := range links {
				for _, r := range l.reqs {
					r.Refuse()
				}
				l.reqs = nil
			}
			for _, p := range all {
				if p.session != nil && !over(p) {
					p.session.Terminate()
				}
			}
			tidy()
		}
		for _, p := range all {
			switch {
			case !over(p):
				t.Fatalf("seed %#x: a session has no end", seed)
			case p.lost != nil:
				outcomes[p.lost.Error()]++
			case p.answer != nil:
				outcomes[[...]string{"", "accepted", "rejected", "refused"}[p.answer.Result]]++
			}
		}
		for i, l := range links {
			if n := l.usable(); n != streams || l.assoc.unacked.Load() != 0 {
				t.Fatalf("seed %#x: side %d: %d of %d streams are usable, %d bytes unacknowledged",
					seed, i, n, streams, l.assoc.unacked.Load())
			}
			collided += l.assoc.count.collided.Load()
		}
	}
	if collided == 0 || outcomes["accepted"] == 0 || outcomes["rejected"] == 0 || outcomes["refused"] == 0 || outcomes[ErrClosed.Error()] == 0 {
		t.Errorf("outcomes %v, %d collisions", outcomes, collided)
	}
}

// TestCollidedStreamsAreUsed: however often Initiates collide, on however few streams,
// a session can be opened afterwards.
func TestCollidedStreamsAreUsed(t *testing.T) {
	for _, streams := range []int{1, 2, 5} {
		w := newWire(t, 1, streams)
		w.b.tag = w.a.tag
		w.a.assoc.choose()
		w.b.assoc.choose()
		for range 50 {
			pa, pb := &peerStream{}, &peerStream{}
			w.a.assoc.Initiate(pa, pa.bind, nil, nil)
			w.b.assoc.Initiate(pb, pb.bind, nil, nil)
			w.run()
			for _, l := range []*testLink{w.a, w.b} {
				for _, r := range l.reqs {
					r.Reject(nil)
				}
				l.reqs = nil
			}
			w.run()
			if n, m := w.a.usable(), w.b.usable(); n != streams || m != streams {
				t.Fatalf("%d and %d of %d streams are usable", n, m, streams)
			}
			if pa, pb = open(t, w, nil); pa.session == nil {
				t.Fatal("no session")
			}
			w.b.reqs = nil
			w.run()
			pa.session.Terminate()
			pb.session.Terminate()
			w.run()
			pa.session.Release()
			pb.session.Release()
		}
		if w.a.assoc.count.collided.Load() == 0 {
			t.Errorf("%d streams: no collision", streams)
		}
	}
}

// TestStreamsOfSilentPeersAreUsedLast: a stream whose peer has never ended the session
// is used when there is no other, and free when the peer does.
func TestStreamsOfSilentPeersAreUsedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, 1, 2)
		pa, _ := open(t, w, nil)
		w.run()
		pa.session.Terminate()
		w.run()
		pa.session.Release() // given up: the peer has not terminated
		if pa.session.SID() != 0 || w.a.assoc.Sessions() != 1 {
			t.Fatalf("stream %d, %d sessions", pa.session.SID(), w.a.assoc.Sessions())
		}
		initiate := func() (*Session, error) {
			p := &peerStream{}
			return w.a.assoc.Initiate(p, p.bind, nil, nil)
		}
		if s, err := initiate(); err != nil || s.SID() != 1 {
			t.Fatalf("the other stream: %v", err)
		}
		// What the peer has sent may still come, and would be taken for data of another
		// session.
		time.Sleep(lateAfter - 1)
		if s, err := initiate(); !errors.Is(err, ErrNoStream) {
			t.Fatalf("before %v: %v, %v; want ErrNoStream", lateAfter, s, err)
		}
		time.Sleep(time.Nanosecond)
		if s, err := initiate(); err != nil || s.SID() != 0 {
			t.Fatalf("after %v: %v", lateAfter, err)
		}
	})
}

// TestUnreadAnswersEndTheAssociation: a peer that initiates sessions and does not
// acknowledge the answers has no more of them than it may have; one that initiates a
// session on each stream has an answer to each.
func TestUnreadAnswersEndTheAssociation(t *testing.T) {
	const streams = 256
	w := newWire(t, 1, streams)
	w.b.assoc.acc.onRequest = nil // all are refused
	initiate := func(n int) {
		for i := range n {
			w.b.assoc.receive(uint16(i%streams), PPIDControl, []byte{0, 0, 0, byte(Initiate)})
		}
	}
	initiate(streams)
	if len(w.b.log) != streams || w.b.aborted != "" {
		t.Fatalf("%d answers to %d requests, aborted %q", len(w.b.log), streams, w.b.aborted)
	}
	for range 10 { // acknowledged
		for _, m := range w.b.queue {
			m.owner.Released(nil)
		}
		w.b.queue = nil
		initiate(streams)
	}
	if w.b.aborted != "" {
		t.Fatalf("aborted: %q", w.b.aborted)
	}
	w.b.queue = nil
	initiate(100 * streams)
	if n := len(w.b.queue); w.b.aborted == "" || n > 3*streams {
		t.Errorf("%d answers are not acknowledged, aborted %q", n, w.b.aborted)
	}
}

// TestAnswerDoesNotOvertakeTheLastEnd: a Terminate that takes a request back crosses its
// refusal, and is under way yet when the peer initiates the next session on the stream.
// The peer would take it for the end of that, if it had an answer.
func TestAnswerDoesNotOvertakeTheLastEnd(t *testing.T) {
	w := newWire(t, 1, 1)
	pa, pb, qa := &peerStream{}, &peerStream{}, &peerStream{}
	if _, err := w.a.assoc.Initiate(pa, pa.bind, nil, nil); err != nil {
		t.Fatal(err)
	}
	w.a.deliver(0, 1)
	if err := w.b.reqs[0].Refuse(); err != nil {
		t.Fatal(err)
	}
	if err := pa.session.Terminate(); err != nil { // lost, and to be sent again
		t.Fatal(err)
	}
	w.b.deliver(0, 1)
	if _, err := w.b.assoc.Initiate(pb, pb.bind, nil, nil); err != nil {
		t.Fatalf("the stream is not free: %v", err)
	}
	w.b.deliver(0, 1)
	if len(w.a.reqs) != 0 {
		t.Fatal("the request is to be answered while the last Terminate is under way")
	}
	w.a.deliver(0, 1)
	if len(w.a.reqs) != 1 {
		t.Fatalf("%d requests after it has come, want 1", len(w.a.reqs))
	}
	if err := w.a.reqs[0].Accept(qa, qa.bind, Enhanced{}, nil); err != nil {
		t.Fatal(err)
	}
	w.run()
	if pb.answer == nil || pb.answer.Result != Accepted || pb.lost != nil || slices.Contains(pb.got, "end") {
		t.Errorf("the session: answer %+v, lost %v, got %q", pb.answer, pb.lost, pb.got)
	}
}
