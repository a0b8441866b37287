package rdmap

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/weftstack/weft/ddp"
)

// TestMemoryOfReadsIsHeldUntilReleased checks, for every way that responses end,
// that who wants to change the memory is told exactly once, and not before the
// channel has let go of all of it: the pipe panics if the memory changes before.
func TestMemoryOfReadsIsHeldUntilReleased(t *testing.T) {
	for name, end := range map[string]func(p *pair, src *ddp.Region, step, at int) bool{
		"answered": func(p *pair, _ *ddp.Region, _, _ int) bool { return p.pipe.Step() },
		"revoked": func(p *pair, src *ddp.Region, step, at int) bool {
			if step == at {
				src.Revoke()
			}
			return p.pipe.Step()
		},
		"responder aborts": func(p *pair, _ *ddp.Region, step, at int) bool {
			if step == at {
				p.b.s.Abort(ErrClosed)
			}
			return p.pipe.Step()
		},
		"reader aborts": func(p *pair, _ *ddp.Region, step, at int) bool {
			if step == at {
				p.a.s.Abort(ErrClosed)
			}
			return p.pipe.Step()
		},
		"responder fails": func(p *pair, _ *ddp.Region, step, at int) bool {
			if step == at {
				p.b.s.Fail(FaultUnspecified)
			}
			return p.pipe.Step()
		},
		"reader fails": func(p *pair, _ *ddp.Region, step, at int) bool {
			if step == at {
				p.a.s.Fail(FaultUnspecified)
			}
			return p.pipe.Step()
		},
		"lost": func(p *pair, _ *ddp.Region, step, at int) bool {
			if step == at {
				p.pipe.Cut()
			}
			return step < at && p.pipe.Step()
		},
	} {
		for at := range 60 {
			t.Run(fmt.Sprintf("%s/step=%d", name, at), func(t *testing.T) {
				p := newPair(t, pairConfig{seed: uint64(at), mulpdu: 1000, window: 10})
				src := p.b.region(20000, ddp.RemoteRead)
				was := bytes.Clone(src.Bytes())
				// Referenced, copied, in the header of its segment, and of no length.
				bufs := [][]byte{make([]byte, 9000), make([]byte, 500), make([]byte, 10), make([]byte, 12000), {}}
				for i, b := range bufs {
					p.a.post(Work{ID: uint64(i), Kind: OpRead, Flags: FlagSignaled, STag: src.STag()}, b)
				}
				for step := 0; end(p, src, step, at); step++ {
				}
				calls := 0
				src.AfterSources(func() { calls++ })
				for p.pipe.Step() {
				}
				if calls != 1 {
					t.Fatalf("told %d times that the memory is not read any more", calls)
				}
				clear(src.Bytes())
				for _, b := range bufs {
					if name == "answered" && !bytes.Equal(b, was[:len(b)]) {
						t.Errorf("read of %d bytes differs", len(b))
					}
				}
			})
		}
	}
}

// TestMemoryOfReadsWhileTheyGoOn asks for the memory at every step of a read, and
// changes it when told.
func TestMemoryOfReadsWhileTheyGoOn(t *testing.T) {
	for at := range 200 {
		p := newPair(t, pairConfig{seed: uint64(at), mulpdu: 1000, window: 10})
		src := p.b.region(20000, ddp.RemoteRead)
		for i := range uint64(4) {
			p.a.post(Work{ID: i, Kind: OpRead, STag: src.STag()}, make([]byte, 5000))
		}
		calls := 0
		for step := 0; ; step++ {
			if step == at {
				src.AfterSources(func() {
					calls++
					clear(src.Bytes())
				})
				acks := p.b.s.inflight.Load() // whatever they are
				if acks == 0 && calls == 0 && p.b.s.rsTail.Load() == p.b.s.rsHead {
					t.Fatalf("step %d: nothing is sent, and the memory held", step)
				}
			}
			if !p.pipe.Step() && step >= at {
				break
			}
		}
		if calls != 1 {
			t.Fatalf("step %d: told %d times that the memory is not read any more", at, calls)
		}
	}
}

// TestLastSegmentOfAResponseIsUrgent: whoever waits for the memory waits for its
// acknowledgement.
func TestLastSegmentOfAResponseIsUrgent(t *testing.T) {
	var ch [2]urgency
	var s [2]*Stream
	table, domain := ddp.NewTable(), &ddp.Domain{}
	for i := range s {
		var err error
		s[i], err = NewStream(Config{Table: table, Domain: domain, SendDepth: 4, RecvDepth: 1, SendSGEs: 1, IRD: 2, ORD: 2, Observer: &tally{}})
		if err != nil {
			t.Fatal(err)
		}
		ch[i].bufs[0] = nil
		s[i].Bind(&ch[i])
		s[i].Start(2)
	}
	ch[0].peer, ch[1].peer = s[1], s[0]
	region, err := table.Add(make([]byte, 5000), 0, ddp.RemoteRead, domain, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{100, 5000} { // copied, referenced
		ch[1].urgent = nil
		if err := s[0].Reserve(1); err != nil {
			t.Fatal(err)
		}
		op := s[0].NextOp()
		op.Kind, op.STag = OpRead, region.STag()
		op.SGL = append(op.SGL, ddp.Mem{B: make([]byte, n)})
		s[0].Commit()
		for ch[0].move() || ch[1].move() {
		}
		for i, u := range ch[1].urgent {
			if last := i == len(ch[1].urgent)-1; u != (last && n > ddp.MaxCopied) {
				t.Errorf("%d bytes: segment %d of %d: urgent %v", n, i, len(ch[1].urgent), u)
			}
		}
		if len(ch[1].urgent) == 0 {
			t.Errorf("%d bytes: no response", n)
		}
	}
}

// urgency notes which segments are urgent.
type urgency struct {
	direct
	urgent []bool
}

func (u *urgency) Send(segs []ddp.Segment) (int, error) {
	for i := range segs {
		u.urgent = append(u.urgent, segs[i].Urgent)
	}
	return u.direct.Send(segs)
}
