package mpi

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// overtake is a job of two ranks whose rank 1 has sent messages with tags 0
// and 1, in this order, on different streams; none has arrived.
type overtake struct {
	*chaos
	c      *Comm // of the receiver
	stream [2]int
}

func newOvertake(t *testing.T, opts ...Option) *overtake {
	t.Helper()
	k := newChaos(t, 2, rand.New(rand.NewPCG(1, 2)), opts...)
	o := &overtake{chaos: k, c: k.worlds[0].Comm()}
	return o.send(t, k.worlds[1].Comm())
}

func (o *overtake) send(t *testing.T, c *Comm) *overtake {
	t.Helper()
	for tag := range 2 {
		if _, err := Isend(c, []byte{byte(tag)}, 0, tag); err != nil {
			t.Fatal(err)
		}
		o.stream[tag] = int(c.comm.Hints.Load().StreamOf(c.comm.Contexts[p2p.SlotUser], int32(tag)))
	}
	if o.stream[0] == o.stream[1] {
		t.Fatal("both tags on one stream")
	}
	return o
}

// arrive delivers the message with a tag.
func (o *overtake) arrive(tag int) {
	o.t.Helper()
	o.link(1, 0).deliver(o.t, o.stream[tag])
}

func (o *overtake) post(src, tag int) *Request {
	o.t.Helper()
	r, err := Irecv(o.c, make([]byte, 1), src, tag)
	if err != nil {
		o.t.Fatal(err)
	}
	return r
}

func (o *overtake) wantTag(r *Request, tag int) {
	o.t.Helper()
	if !r.request.Finished.Load() || r.request.Err != nil || r.request.Status.Tag != tag {
		o.t.Errorf("receive: done %v, status %+v, %v, want tag %d", r.request.Finished.Load(), r.request.Status, r.request.Err, tag)
	}
}

func (o *overtake) wantOpen(r *Request) {
	o.t.Helper()
	if r.request.Finished.Load() {
		o.t.Errorf("receive got %+v, want none yet", r.request.Status)
	}
}

func TestNamedTagDoesNotWait(t *testing.T) {
	o := newOvertake(t)
	r := o.post(1, 1)
	o.arrive(1)
	o.wantTag(r, 1)
	o.arrive(0)
	o.wantTag(o.post(AnySource, AnyTag), 0)
}

// MPI-4.1, Section 3.5: the second message may not be received first.
func TestAnyTagWaitsForTheFirst(t *testing.T) {
	for _, src := range []int{1, AnySource} {
		o := newOvertake(t)
		o.arrive(1)
		r := o.post(src, AnyTag)
		o.wantOpen(r)
		if _, found, _ := Iprobe(o.c, src, AnyTag); found {
			t.Error("probe with AnyTag sees the second message")
		}
		if _, found, _ := Iprobe(o.c, src, 1); found {
			t.Error("probe sees a message that an older receive may get")
		}
		o.arrive(0)
		o.wantTag(r, 0)
		o.wantTag(o.post(src, AnyTag), 1)
	}
}

// The second message leaves an older AnyTag receive the choice, until that is
// gone.
func TestHeldForAnOlderReceive(t *testing.T) {
	o := newOvertake(t)
	wild := o.post(1, AnyTag)
	named := o.post(1, 1)
	o.arrive(1)
	o.wantOpen(named)
	wild.Cancel()
	o.wantTag(named, 1)

	o = newOvertake(t)
	wild, named = o.post(1, AnyTag), o.post(1, 1)
	o.arrive(1)
	o.arrive(0)
	o.wantTag(wild, 0)
	o.wantTag(named, 1)

	// An older receive that names the tag takes precedence.
	o = newOvertake(t)
	named, wild = o.post(1, 1), o.post(1, AnyTag)
	o.arrive(1)
	o.wantTag(named, 1)
	o.wantOpen(wild)
	o.arrive(0)
	o.wantTag(wild, 0)
}

func TestAllowOvertaking(t *testing.T) {
	k := newChaos(t, 2, rand.New(rand.NewPCG(1, 2)))
	var cs [2]*Comm
	for i, w := range k.worlds {
		var err error
		if cs[i], err = w.Comm().DupWithInfo(context.Background(), Info{InfoAllowOvertaking: "true"}); err != nil {
			t.Fatal(err)
		}
	}
	o := (&overtake{chaos: k, c: cs[0]}).send(t, cs[1])
	o.arrive(1)
	o.wantTag(o.post(AnySource, AnyTag), 1)
}

// What a rank sent before it went away can be received, gaps or not.
func TestGapsEndWithTheSender(t *testing.T) {
	o := newOvertake(t)
	o.arrive(1)
	o.worlds[0].eng.Peers[1].Down(nil)
	o.wantTag(o.post(1, AnyTag), 1)
	if r := o.post(1, AnyTag); !r.request.Finished.Load() || !errors.Is(r.request.Err, ErrProcFailed) {
		t.Errorf("receive from a rank that is gone: %v, %v", r.request.Finished.Load(), r.request.Err)
	}
}

// Messages for a communicator that was freed are dropped, and their credit
// returned; so are those that arrive in pieces.
func TestFreedCommunicatorDropsMessages(t *testing.T) {
	k := newChaos(t, 2, rand.New(rand.NewPCG(3, 4)))
	var cs [2]*Comm
	for i, w := range k.worlds {
		var err error
		if cs[i], err = w.Comm().Dup(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for tag := range 4 {
		if _, err := Isend(cs[1], make([]byte, 900), 0, tag); err != nil {
			t.Fatal(err)
		}
	}
	l := k.link(1, 0)
	l.step(t)
	l.step(t)
	// The third is half there.
	var s int
	for s = range l.streams {
		if len(l.streams[s]) > 0 {
			break
		}
	}
	data := l.streams[s][0].data
	f := &l.to.Parsers[s]
	if _, err := f.Parse(data[:500]); err != nil {
		t.Fatal(err)
	}
	cs[0].Free()
	if _, err := f.Parse(data[500:]); err != nil {
		t.Fatal(err)
	}
	l.streams[s] = l.streams[s][1:]
	l.waiting--
	for k.step() {
	}
	if !checkEmpty(t, k) {
		t.Error("something is left")
	}
	if n := len(k.worlds[0].eng.Freed); n != int(p2p.SlotCount) {
		t.Errorf("%d freed contexts remembered", n)
	}
}

// Messages in steady state do not allocate.
func TestNoAllocations(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	err := RunLocal(context.Background(), 1, func(ctx context.Context, w *World) error {
		c := w.Comm()
		for _, tt := range []struct {
			name string
			n    int
			src  int
			tag  int
		}{
			{"eager", 1000, 0, 3},
			{"rendezvous", 100_000, 0, 3},
			{"wildcards", 1000, AnySource, AnyTag},
		} {
			out, in := make([]byte, tt.n), make([]byte, tt.n)
			for _, first := range []string{"receive", "send"} {
				got := testing.AllocsPerRun(200, func() {
					var r, s *Request
					var err error
					if first == "receive" {
						if r, err = Irecv(c, in, tt.src, tt.tag); err != nil {
							t.Fatal(err)
						}
					}
					if s, err = Isend(c, out, 0, 3); err != nil {
						t.Fatal(err)
					}
					if first == "send" {
						if r, err = Irecv(c, in, tt.src, tt.tag); err != nil {
							t.Fatal(err)
						}
					}
					if _, err := r.Wait(ctx); err != nil {
						t.Fatal(err)
					}
					if _, err := s.Wait(ctx); err != nil {
						t.Fatal(err)
					}
					r.Free()
					s.Free()
				})
				if got >= 1 {
					t.Errorf("%s, %s first: %v allocations", tt.name, first, got)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
