package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// gappy returns memory and a datatype of n numbers in it, in blocks of the given length with gaps
// between them, and sets them to first, first+1, … and the gaps to -1.
func gappy(n, block, stride, first int) ([]int32, *Datatype) {
	t := MustType(TypeVector(n/block, block, stride, MustType(TypeOf[int32]())))
	mem := make([]int32, (n/block-1)*stride+block+1)
	for i := range mem {
		mem[i] = -1
	}
	for i := range n {
		mem[i/block*stride+i%block] = int32(first + i)
	}
	return mem, t
}

// checkGappy checks memory of gappy: the first got numbers are those from first on, the rest up to n
// were not received and are those from old on, and the gaps are untouched.
func checkGappy(mem []int32, n, got, block, stride, first, old int) error {
	want, _ := gappy(n, block, stride, first)
	for i := got; i < n; i++ {
		want[i/block*stride+i%block] = int32(old + i)
	}
	for i, v := range mem {
		if v != want[i] {
			return fmt.Errorf("element %d is %d, want %d", i, v, want[i])
		}
	}
	return nil
}

// Every way to send and to receive takes items with gaps: of other layouts on the two sides, short
// and long, as many as the receiver has room for and fewer.
func TestItemsByAllForms(t *testing.T) {
	type sendForm struct {
		name string
		send func(ctx context.Context, c *Comm, b Buffer) error
	}
	wait := func(ctx context.Context, r *Request, err error) error {
		if err != nil {
			return err
		}
		_, err = r.Wait(ctx)
		r.Free()
		return err
	}
	start := func(ctx context.Context, p *Persistent, err error) error {
		if err != nil {
			return err
		}
		r, err := p.Start()
		return wait(ctx, r, err)
	}
	sends := []sendForm{
		{"Send", func(ctx context.Context, c *Comm, b Buffer) error { return c.Send(ctx, b, 1, 0) }},
		{"Ssend", func(ctx context.Context, c *Comm, b Buffer) error { return c.Ssend(ctx, b, 1, 0) }},
		{"Bsend", func(ctx context.Context, c *Comm, b Buffer) error { return c.Bsend(b, 1, 0) }},
		{"Isend", func(ctx context.Context, c *Comm, b Buffer) error {
			r, err := c.Isend(b, 1, 0)
			return wait(ctx, r, err)
		}},
		{"Issend", func(ctx context.Context, c *Comm, b Buffer) error {
			r, err := c.Issend(b, 1, 0)
			return wait(ctx, r, err)
		}},
		{"Ibsend", func(ctx context.Context, c *Comm, b Buffer) error {
			r, err := c.Ibsend(b, 1, 0)
			return wait(ctx, r, err)
		}},
		{"SendInit", func(ctx context.Context, c *Comm, b Buffer) error {
			p, err := c.SendInit(b, 1, 0)
			return start(ctx, p, err)
		}},
		{"SsendInit", func(ctx context.Context, c *Comm, b Buffer) error {
			p, err := c.SsendInit(b, 1, 0)
			return start(ctx, p, err)
		}},
		{"BsendInit", func(ctx context.Context, c *Comm, b Buffer) error {
			p, err := c.BsendInit(b, 1, 0)
			return start(ctx, p, err)
		}},
		{"Sendrecv", func(ctx context.Context, c *Comm, b Buffer) error {
			_, err := c.Sendrecv(ctx, b, 1, 0, Buffer{}, ProcNull, 0)
			return err
		}},
		{"Isendrecv", func(ctx context.Context, c *Comm, b Buffer) error {
			r, err := c.Isendrecv(b, 1, 0, Buffer{}, ProcNull, 0)
			return wait(ctx, r, err)
		}},
	}
	type recvForm struct {
		name string
		recv func(ctx context.Context, c *Comm, b Buffer) (Status, error)
	}
	waitRecv := func(ctx context.Context, r *Request, err error) (Status, error) {
		if err != nil {
			return Status{}, err
		}
		return r.Wait(ctx)
	}
	recvs := []recvForm{
		{"Recv", func(ctx context.Context, c *Comm, b Buffer) (Status, error) { return c.Recv(ctx, b, 0, 0) }},
		{"Irecv", func(ctx context.Context, c *Comm, b Buffer) (Status, error) {
			r, err := c.Irecv(b, AnySource, AnyTag)
			return waitRecv(ctx, r, err)
		}},
		{"RecvInit", func(ctx context.Context, c *Comm, b Buffer) (Status, error) {
			p, err := c.RecvInit(b, 0, 0)
			if err != nil {
				return Status{}, err
			}
			r, err := p.Start()
			return waitRecv(ctx, r, err)
		}},
		{"Mrecv", func(ctx context.Context, c *Comm, b Buffer) (Status, error) {
			m, err := Mprobe(ctx, c, 0, 0)
			if err != nil {
				return Status{}, err
			}
			return m.Recv(ctx, b)
		}},
		{"Imrecv", func(ctx context.Context, c *Comm, b Buffer) (Status, error) {
			m, err := Mprobe(ctx, c, 0, 0)
			if err != nil {
				return Status{}, err
			}
			r, err := m.Irecv(b)
			return waitRecv(ctx, r, err)
		}},
		{"Sendrecv", func(ctx context.Context, c *Comm, b Buffer) (Status, error) {
			return c.Sendrecv(ctx, Buffer{}, ProcNull, 0, b, 0, 0)
		}},
		{"Isendrecv", func(ctx context.Context, c *Comm, b Buffer) (Status, error) {
			r, err := c.Isendrecv(Buffer{}, ProcNull, 0, b, 0, 0)
			return waitRecv(ctx, r, err)
		}},
		{"SendrecvReplace", func(ctx context.Context, c *Comm, b Buffer) (Status, error) {
			return c.SendrecvReplace(ctx, b, ProcNull, 0, 0, 0)
		}},
		{"IsendrecvReplace", func(ctx context.Context, c *Comm, b Buffer) (Status, error) {
			r, err := c.IsendrecvReplace(b, ProcNull, 0, 0, 0)
			return waitRecv(ctx, r, err)
		}},
	}
	const few, many = 12, 60_000
	for _, tr := range []string{TransportSCTP, hybridShared} {
		err := RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
			c := w.Comm()
			for i := range len(sends) * len(recvs) {
				s, r := sends[i%len(sends)], recvs[i/len(sends)]
				for _, n := range [][2]int{{few, few}, {many, many}, {few, many}} { // sent, and room
					if c.Rank() == 0 {
						mem, typ := gappy(n[0], 2, 5, i)
						if err := s.send(ctx, c, Items(mem, 1, typ)); err != nil {
							return fmt.Errorf("%s of %d: %w", s.name, n[0], err)
						}
						continue
					}
					mem, typ := gappy(n[1], 3, 4, 1000)
					st, err := r.recv(ctx, c, Items(mem, 1, typ))
					if err == nil && st != (Status{Source: 0, Tag: 0, Bytes: 4 * n[0]}) {
						err = fmt.Errorf("status %+v", st)
					}
					if err == nil {
						err = checkGappy(mem, n[1], n[0], 3, 4, i, 1000)
					}
					if err != nil {
						return fmt.Errorf("%s and %s of %d, room for %d: %w", s.name, r.name, n[0], n[1], err)
					}
				}
			}
			return nil
		}, overTransport(tr))
		if err != nil {
			t.Errorf("%s: %v", tr, err)
		}
	}
}

// Ranks swap their items in place, and what a message does not bring stays as it was.
func TestItemsReplaced(t *testing.T) {
	for _, n := range []int{12, 60_000} {
		err := RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
			c := w.Comm()
			other := 1 - c.Rank()
			for round := range 2 {
				mem, typ := gappy(n, 3, 4, 1000*c.Rank())
				b := Items(mem, 1, typ)
				var err error
				if round == 0 {
					_, err = c.SendrecvReplace(ctx, b, other, 0, other, 0)
				} else {
					var r *Request
					if r, err = c.IsendrecvReplace(b, other, 0, other, 0); err == nil {
						_, err = r.Wait(ctx)
					}
				}
				if err == nil {
					err = checkGappy(mem, n, n, 3, 4, 1000*other, 0)
				}
				if err != nil {
					return fmt.Errorf("round %d: %w", round, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%d numbers: %v", n, err)
		}
	}
}

// A receive into items with gaps ends as others do: withdrawn, with a message that is too long, of
// which the first part is there, or of another type, which leaves the items as they were.
func TestItemsOfFailedReceives(t *testing.T) {
	for _, n := range []int{12, 60_000} {
		err := RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
			c := w.Comm()
			if c.Rank() == 0 {
				if err := recvEmpty(ctx, c, 2); err != nil { // the receive for tag 3 is withdrawn
					return err
				}
				mem, typ := gappy(n+6, 2, 5, 0)
				if err := c.Send(ctx, Items(mem, 1, typ), 1, 0); err != nil {
					return err
				}
				return Send(ctx, c, make([]float32, n), 1, 1)
			}
			mem, typ := gappy(n, 3, 4, 1000)
			b := Items(mem, 1, typ)
			r, err := c.Irecv(b, 0, 3)
			if err != nil {
				return err
			}
			if !r.Cancel() {
				return errors.New("not withdrawn")
			}
			if _, err := r.Wait(ctx); !errors.Is(err, ErrCanceled) {
				return fmt.Errorf("withdrawn: %w", err)
			}
			if err := Send(ctx, c, []byte{}, 0, 2); err != nil {
				return err
			}
			for tag, want := range []error{ErrTruncate, ErrTypeMismatch} {
				r, err := c.Irecv(b, 0, tag)
				if err != nil {
					return err
				}
				if _, err := r.Wait(ctx); !errors.Is(err, want) {
					return fmt.Errorf("%w, want %v", err, want)
				}
				if err := checkGappy(mem, n, n, 3, 4, 0, 0); err != nil {
					return fmt.Errorf("after %v: %w", want, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%d numbers: %v", n, err)
		}
	}
}

// recvEmpty receives an empty message from the other rank of two.
func recvEmpty(ctx context.Context, c *Comm, tag int) error {
	_, err := Recv(ctx, c, []byte{}, 1-c.Rank(), tag)
	return err
}

// Descriptions of nothing are refused by every call, with the reason.
func TestBuffersRefused(t *testing.T) {
	err := RunLocal(t.Context(), 1, func(ctx context.Context, w *World) error {
		c := w.Comm()
		one := MustType(TypeOf[int32]())
		for _, tt := range []struct {
			b    Buffer
			want error
		}{
			{Elements([]*int{nil}), ErrType},
			{Items([]*int{nil}, 1, one), ErrType},
			{Items(make([]int32, 3), 4, one), ErrCount},
			{Items(make([]int32, 3), -1, one), ErrDatatype},
			{Items(make([]int32, 3), 1, nil), ErrDatatype},
		} {
			good := Elements([]int32{1})
			errs := []error{c.Send(ctx, tt.b, 0, 0), c.Ssend(ctx, tt.b, 0, 0), c.Bsend(tt.b, 0, 0)}
			note := func(_ any, err error) { errs = append(errs, err) }
			for _, start := range []func(Buffer, int, int) (*Request, error){c.Isend, c.Issend, c.Ibsend, c.Irecv} {
				r, err := start(tt.b, 0, 0)
				note(r, err)
			}
			for _, prepare := range []func(Buffer, int, int) (*Persistent, error){c.SendInit, c.SsendInit, c.BsendInit, c.RecvInit} {
				p, err := prepare(tt.b, 0, 0)
				note(p, err)
			}
			st, err := c.Recv(ctx, tt.b, 0, 0)
			note(st, err)
			st, err = c.Sendrecv(ctx, tt.b, 0, 0, good, 0, 0)
			note(st, err)
			st, err = c.Sendrecv(ctx, good, 0, 0, tt.b, 0, 0)
			note(st, err)
			st, err = c.SendrecvReplace(ctx, tt.b, 0, 0, 0, 0)
			note(st, err)
			r, err := c.Isendrecv(tt.b, 0, 0, good, 0, 0)
			note(r, err)
			r, err = c.Isendrecv(good, 0, 0, tt.b, 0, 0)
			note(r, err)
			r, err = c.IsendrecvReplace(tt.b, 0, 0, 0, 0)
			note(r, err)
			if err := Bsend(c, []int32{1}, 0, 0); err != nil {
				return err
			}
			m, err := Mprobe(ctx, c, 0, 0)
			if err != nil {
				return err
			}
			st, err = m.Recv(ctx, tt.b)
			note(st, err)
			r, err = m.Irecv(tt.b)
			note(r, err)
			if _, err := m.Recv(ctx, good); err != nil { // it is still there
				return err
			}
			for i, err := range errs {
				if !errors.Is(err, tt.want) {
					return fmt.Errorf("call %d: %w, want %v", i, err, tt.want)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Items with gaps allocate nothing in the long run, whatever their length.
func TestItemsDoNotAllocate(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	for _, tt := range []struct {
		transport string
		n, block  int
	}{
		{hybridShared, 12, 3}, {hybridShared, 60_000, 3},
		{TransportSCTP, 60_000, 1}, {TransportSCTP, 6_000, 300}, {TransportSCTP, 60_000, 75}, {TransportSCTP, 60_000, 1500},
		{TransportTCP, 60_000, 1}, {TransportTCP, 12_000, 750}, {TransportTCP, 60_000, 750}, {TransportTCP, 60_000, 1500},
	} {
		const warm, runs = 200, 100
		err := RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
			c := w.Comm()
			mem, typ := gappy(tt.n, tt.block, tt.block+1, 0)
			b := Items(mem, 1, typ)
			other := 1 - c.Rank()
			var err error
			round := func() {
				if err != nil {
					return
				}
				var r, s *Request
				if r, err = c.Irecv(b, other, 0); err != nil {
					return
				}
				if s, err = c.Isend(b, other, 0); err != nil {
					return
				}
				if _, err = r.Wait(ctx); err == nil {
					_, err = s.Wait(ctx)
				}
				r.Free()
				s.Free()
			}
			if c.Rank() == 1 {
				for range warm + runs + 1 {
					round()
				}
				return err
			}
			for range warm {
				round()
			}
			if got := testing.AllocsPerRun(runs, round); got >= 1 {
				t.Errorf("%s, %d numbers in blocks of %d: %v allocations for each exchange", tt.transport, tt.n, tt.block, got)
			}
			return err
		}, overTransport(tt.transport))
		if err != nil {
			t.Error(err)
		}
	}
}

// A status counts items of a datatype, and the elements that they are made of.
func TestStatusCountsItems(t *testing.T) {
	pair := MustType(TypeStruct([]int{1, 1}, []int{0, 8}, []*Datatype{MustType(TypeOf[float64]()), MustType(TypeOf[int32]())}))
	none := MustType(TypeContiguous(0, pair))
	for _, tt := range []struct {
		bytes           int
		t               *Datatype
		items, elements int // -1: ErrCount
	}{
		{0, pair, 0, 0}, {24, pair, 2, 4}, {20, pair, -1, 3}, {18, pair, -1, -1}, {0, none, 0, 0}, {4, none, -1, -1},
	} {
		st := Status{Bytes: tt.bytes}
		for _, x := range []struct {
			name  string
			count func(*Datatype) (int, error)
			want  int
		}{{"items", st.Items, tt.items}, {"elements", st.Elements, tt.elements}} {
			n, err := x.count(tt.t)
			if x.want < 0 && !errors.Is(err, ErrCount) || x.want >= 0 && (err != nil || n != x.want) {
				t.Errorf("%d bytes of %v: %d %s, %v, want %d", tt.bytes, tt.t, n, x.name, err, x.want)
			}
			if _, err := x.count(nil); !errors.Is(err, ErrDatatype) {
				t.Errorf("%s of no datatype: %v", x.name, err)
			}
		}
	}
}
