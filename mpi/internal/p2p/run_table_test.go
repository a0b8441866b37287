package p2p

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// runsSink is a link that sends runs, and keeps the last message.
type runsSink struct {
	sink
	min  int
	runs [][]byte
	own  transport.Owner
	err  error // of SendRuns
}

func (l *runsSink) MinRun() int { return l.min }

func (l *runsSink) SendRuns(_ uint16, _ []byte, runs [][]byte, own transport.Owner) error {
	if l.err != nil {
		return l.err
	}
	l.runs, l.own = runs, own
	return nil
}

// vector returns count blocks of n bytes, 8 bytes apart, and their data.
func vector(t *testing.T, count, n int) (x datatype.Items, want []byte) {
	t.Helper()
	typ, err := datatype.Hvector(count, 1, n+8, datatype.OfBytes(n))
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, count*(n+8))
	for i := range mem {
		mem[i] = byte(i * 7)
	}
	if x, err = datatype.ItemsOf(datatype.Buffer{Mem: datatype.In(mem), Count: 1, Type: typ}); err != nil {
		t.Fatal(err)
	}
	b, _ := x.Packed()
	return x, b
}

// Sends of items with gaps, eager ones and the bodies of others: the link gets their runs, and however the send ends, the
// table of them is given back.
func TestRunTableIsGivenBack(t *testing.T) {
	c, p := newTestEngine(t)
	p.Credit.Store(1 << 30)
	l := &runsSink{min: 100}
	p.Link = l
	down := errors.New("down")
	start := func(count, n int) (*Request, []byte, error) {
		x, want := vector(t, count, n)
		r := GetRequest(c.Engine)
		l.runs, l.own = nil, nil
		err := c.BeginSendItems(r, SendStandard, false, &x, 1, 0)
		return r, want, err
	}
	check := func(what string, r *Request, want []byte, err error) {
		t.Helper()
		table, ok := l.own.(*runTable)
		if !ok {
			t.Fatalf("%s: owner %T", what, l.own)
		}
		if got := bytes.Join(l.runs, nil); !bytes.Equal(got, want) {
			t.Fatalf("%s: sent %d bytes, want %d, or others", what, len(got), len(want))
		}
		if r.Finished.Load() {
			t.Errorf("%s: done before it is released", what)
		}
		l.own.Released(err)
		if !r.Finished.Load() || r.Err != err {
			t.Errorf("%s: done %v, error %v, want %v", what, r.Finished.Load(), r.Err, err)
		}
		if table.send != nil || table.runs[:1][0] != nil {
			t.Errorf("%s: the table refers to memory", what)
		}
	}
	for _, err := range []error{nil, down} {
		r, want, serr := start(10, 120)
		if serr != nil {
			t.Fatal(serr)
		}
		check("eager", r, want, err)
		if r, want, serr = start(100, 120); serr != nil || l.own != nil {
			t.Fatalf("announced: %v, owner %v", serr, l.own)
		}
		c.Engine.SendBodyMessage(c.Engine.IDs.remove(r.id, p), 1, len(want)-130, 0)
		check("body", r, want[:len(want)-130], err)
	}
	if _, _, err := start(10, 99); err != nil || l.own != nil {
		t.Errorf("runs of 99 bytes: %v, owner %v", err, l.own)
	}
	if x, _ := vector(t, maxTable+1, 100); c.sendsRuns(&x, 1, false) {
		t.Errorf("%d runs are sent from where they lie", maxTable+1)
	}

	l.err = down
	if _, _, err := start(10, 120); err != down {
		t.Errorf("eager, refused by the link: %v", err)
	}
	r, want, err := start(100, 120)
	if err != nil {
		t.Fatal(err)
	}
	c.Engine.SendBodyMessage(c.Engine.IDs.remove(r.id, p), 1, len(want), 0)
	if r.Err != down {
		t.Errorf("body, refused by the link: %v", r.Err)
	}

	// A send that is withdrawn has no table yet.
	l.err = nil
	if r, _, err = start(100, 120); err != nil {
		t.Fatal(err)
	}
	announced := p.Announced.Load()
	r.Fail(mpierr.ErrCanceled)
	if l.own != nil || r.Gaps.Type != nil {
		t.Errorf("withdrawn: owner %v, items %v", l.own, r.Gaps)
	}
	if announced == 0 {
		t.Error("nothing was announced")
	}
}

// Sending runs allocates nothing.
func TestRunTableDoesNotAllocate(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	c, p := newTestEngine(t)
	l := &runsSink{min: 100}
	p.Link = l
	for _, count := range []int{10, 1000} {
		x, want := vector(t, count, 120)
		got := testing.AllocsPerRun(100, func() {
			p.Credit.Store(1 << 30)
			r := GetRequest(c.Engine)
			if err := c.BeginSendItems(r, SendStandard, false, &x, 1, 0); err != nil {
				t.Fatal(err)
			}
			if r.Gaps.Type != nil {
				p.Announced.Store(0)
				c.Engine.SendBodyMessage(c.Engine.IDs.remove(r.id, p), 1, len(want), 0)
			}
			l.own.Released(nil)
			r.Free()
		})
		if got >= 1 {
			t.Errorf("%d runs: %v allocations", count, got)
		}
	}
}

// A copy of an eager message becomes the link's, and the send is over at once.
func TestPackedCopyIsGivenToTheLink(t *testing.T) {
	c, p := newTestEngine(t)
	p.Credit.Store(1 << 30)
	c.SetHints(Hints{Eager: 1 << 20, Streams: 1})
	own := &ownerSink{}
	p.Link = own
	x, want := vector(t, 1000, 8)
	r := GetRequest(c.Engine)
	if err := c.BeginSendItems(r, SendStandard, false, &x, 1, 0); err != nil {
		t.Fatal(err)
	}
	if !r.Finished.Load() || r.packed != nil || !bytes.Equal(own.body, want) || own.own == nil {
		t.Errorf("done %v, copy %v, %d bytes with owner %v", r.Finished.Load(), r.packed, len(own.body), own.own)
	}
	own.own.Released(nil)
}

// ownerSink is a link that keeps the last body.
type ownerSink struct {
	sink
	body []byte
	own  transport.Owner
}

func (l *ownerSink) Send(_ uint16, _, body []byte, own transport.Owner) error {
	l.body, l.own = body, own
	return nil
}
