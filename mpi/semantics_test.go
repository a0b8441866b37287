package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// MPI-5.0, Section 3.4: a synchronous send "will complete successfully only if
// a matching receive is posted, and the receive operation has started to receive
// the message".
func TestSsendWaitsForReceive(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		for i, n := range []int{0, 10, 60_000, 70_000} {
			b := make([]byte, n)
			if c.Rank() == 0 {
				r, err := Issend(c, b, 1, 1)
				if err != nil {
					return err
				}
				// By the time this comes back the message is there, too, or
				// at least would be.
				if err := Send(ctx, c, b[:0], 1, 2); err != nil {
					return err
				}
				if _, err := Recv(ctx, c, b[:0], 1, 3); err != nil {
					return err
				}
				if _, done, _ := r.Test(); done {
					return fmt.Errorf("synchronous send %d was done before the receive", i)
				}
				if err := Send(ctx, c, b[:0], 1, 4); err != nil {
					return err
				}
				if _, err := r.Wait(ctx); err != nil {
					return err
				}
				continue
			}
			if _, err := Recv(ctx, c, b[:0], 0, 2); err != nil {
				return err
			}
			if _, err := Probe(ctx, c, 0, 1); err != nil {
				return err
			}
			if err := Send(ctx, c, b[:0], 0, 3); err != nil {
				return err
			}
			if _, err := Recv(ctx, c, b[:0], 0, 4); err != nil {
				return err
			}
			if _, err := Recv(ctx, c, b, 0, 1); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestSelfAndProcNull(t *testing.T) {
	runRanks(t, 1, func(ctx context.Context, w *World) error {
		for _, c := range []*Comm{w.Comm(), w.Self()} {
			for i, n := range []int{0, 100, 300_000} {
				out, in := make([]byte, n), make([]byte, n)
				pattern(out, i)
				r, err := Irecv(c, in, 0, 5)
				if err != nil {
					return err
				}
				if err := Ssend(ctx, c, out, 0, 5); err != nil {
					return err
				}
				if _, err := r.Wait(ctx); err != nil {
					return err
				}
				if err := checkPattern(in, i); err != nil {
					return err
				}
			}
			want := Status{Source: ProcNull, Tag: AnyTag}
			if err := Send(ctx, c, []int{1}, ProcNull, 0); err != nil {
				return err
			}
			if st, err := Recv(ctx, c, []int{1}, ProcNull, 0); st != want || err != nil {
				return fmt.Errorf("receive from ProcNull = %+v, %v", st, err)
			}
			if st, err := Sendrecv(ctx, c, []int{1}, ProcNull, 0, []int{1}, ProcNull, 0); st != want || err != nil {
				return fmt.Errorf("exchange with ProcNull = %+v, %v", st, err)
			}
			if st, err := Probe(ctx, c, ProcNull, 0); st != want || err != nil {
				return fmt.Errorf("probe of ProcNull = %+v, %v", st, err)
			}
			m, err := Mprobe(ctx, c, ProcNull, 0)
			if err != nil {
				return err
			}
			if st, err := Mrecv(ctx, m, []int{1}); st != want || err != nil {
				return fmt.Errorf("matched receive from ProcNull = %+v, %v", st, err)
			}
		}
		return nil
	})
}

func TestBadArguments(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		for _, tt := range []struct {
			name string
			err  error
			want error
		}{
			{"rank 2", Send(ctx, c, []int{1}, 2, 0), ErrRank},
			{"rank -3", Send(ctx, c, []int{1}, -3, 0), ErrRank},
			{"send to any", Send(ctx, c, []int{1}, AnySource, 0), ErrRank},
			{"tag -1", Send(ctx, c, []int{1}, 0, -1), ErrTag},
			{"strings", Send(ctx, c, []string{"a"}, 0, 0), ErrType},
			{"struct with slice", Send(ctx, c, []struct{ a []int }{{}}, 0, 0), ErrType},
			{"receive tag -2", second(Recv(ctx, c, []int{1}, 0, -2)), ErrTag},
			{"receive rank 5", second(Recv(ctx, c, []int{1}, 5, 0)), ErrRank},
			{"receive pointers", second(Irecv(c, []*int{nil}, 0, 0)), ErrType},
			{"probe rank 2", second(Probe(ctx, c, 2, 0)), ErrRank},
			{"color", second(c.Split(ctx, -5, 0)), ErrOption},
		} {
			if !errors.Is(tt.err, tt.want) {
				return fmt.Errorf("%s: error %v, want %v", tt.name, tt.err, tt.want)
			}
		}
		return nil
	})
}

func second[T any](_ T, err error) error { return err }

// A cancelled receive gets nothing; a cancelled long send is withdrawn, and a
// later one is not disturbed.
func TestCancel(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if c.Rank() == 1 {
			if err := c.barrier(ctx); err != nil {
				return err
			}
			b := make([]byte, 200_000)
			st, err := Recv(ctx, c, b, 0, 9)
			if err != nil || st.Bytes != len(b) {
				return fmt.Errorf("receive after a withdrawn send = %+v, %v", st, err)
			}
			if err := checkPattern(b, 7); err != nil {
				return err
			}
			return Send(ctx, c, []byte{42}, 0, 1)
		}
		var x [1]byte
		r, err := Irecv(c, x[:], 1, 1)
		if err != nil {
			return err
		}
		if !r.Cancel() {
			return errors.New("receive cannot be cancelled")
		}
		if _, err := r.Wait(ctx); !errors.Is(err, ErrCanceled) {
			return fmt.Errorf("cancelled receive: %v", err)
		}
		if r.Cancel() {
			return errors.New("receive cancelled twice")
		}
		short, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := Recv(short, c, x[:], AnySource, AnyTag); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("receive with a cancelled context: %v", err)
		}
		short, cancel = context.WithCancel(ctx)
		context.AfterFunc(ctx, cancel)
		big := make([]byte, 200_000)
		errc := make(chan error)
		go func() { errc <- Send(short, c, big, 1, 9) }()
		for w.eng.ids.len() == 0 { // until the send waits for its receiver
			r, err := Irecv(c, x[:], 1, 1)
			if err != nil {
				return err
			}
			r.Cancel()
		}
		cancel()
		if err := <-errc; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("withdrawn send: %v", err)
		}
		if err := c.barrier(ctx); err != nil {
			return err
		}
		pattern(big, 7)
		if err := Send(ctx, c, big, 1, 9); err != nil {
			return err
		}
		if _, err := Recv(ctx, c, x[:], AnySource, AnyTag); err != nil || x[0] != 42 {
			return fmt.Errorf("last receive: %d, %v", x[0], err)
		}
		return nil
	})
}

func TestWaitVariants(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		const n = 20
		if c.Rank() == 0 {
			for i := n - 1; i >= 0; i-- {
				if err := Send(ctx, c, []int32{int32(i)}, 1, i); err != nil {
					return err
				}
			}
			_, err := Recv(ctx, c, []int32{}, 1, n)
			return err
		}
		vals := make([]int32, n)
		reqs := make([]*Request, n)
		for i := range reqs {
			var err error
			if reqs[i], err = Irecv(c, vals[i:i+1], 0, i); err != nil {
				return err
			}
		}
		seen := make(map[int]bool)
		take := func(i int) error {
			if seen[i] || vals[i] != int32(i) {
				return fmt.Errorf("request %d: seen %v, value %d", i, seen[i], vals[i])
			}
			seen[i] = true
			reqs[i] = nil
			return nil
		}
		for len(seen) < n/2 {
			i, st, err := Waitany(ctx, reqs...)
			if err != nil {
				return err
			}
			if st.Tag != i {
				return fmt.Errorf("request %d has status %+v", i, st)
			}
			if err := take(i); err != nil {
				return err
			}
		}
		for len(seen) < n {
			is, err := Waitsome(ctx, reqs...)
			if err != nil {
				return err
			}
			for _, i := range is {
				if err := take(i); err != nil {
					return err
				}
			}
		}
		if i, _, err := Waitany(ctx, reqs...); i != Undefined || err != nil {
			return fmt.Errorf("Waitany of nothing = %d, %v", i, err)
		}
		if is, err := Waitsome(ctx, reqs...); is != nil || err != nil {
			return fmt.Errorf("Waitsome of nothing = %v, %v", is, err)
		}
		if i, _, _ := Testany(reqs...); i != Undefined || !Testall(reqs...) {
			return errors.New("test of nothing")
		}
		open, err := Irecv(c, vals, 0, n+1)
		if err != nil {
			return err
		}
		if Testall(open) || len(Testsome(open)) != 0 {
			return errors.New("a receive without message is done")
		}
		short, cancel := context.WithCancel(ctx)
		cancel()
		if _, _, err := Waitany(short, open); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("Waitany with a cancelled context: %v", err)
		}
		if _, err := Waitall(short, open); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("Waitall with a cancelled context: %v", err)
		}
		open.Cancel()
		if _, err := Waitall(ctx, nil, open); !errors.Is(err, ErrCanceled) {
			return fmt.Errorf("Waitall of a cancelled receive: %v", err)
		}
		return Send(ctx, c, []int32{}, 0, n)
	})
}

// Several goroutines share the messages of one tag by Mprobe, without getting
// in each other's way.
func TestMprobeThreads(t *testing.T) {
	const n, workers = 200, 4
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if c.Rank() == 0 {
			for i := range n + workers {
				size := 4 * (1 + i*i%20_000)
				if i >= n {
					size = 0
				}
				b := make([]byte, size)
				pattern(b, size)
				if err := Send(ctx, c, b, 1, i%3); err != nil {
					return err
				}
			}
			return nil
		}
		var wg sync.WaitGroup
		errs := make([]error, workers)
		var mu sync.Mutex
		total := 0
		for k := range workers {
			wg.Go(func() {
				errs[k] = func() error {
					for {
						m, err := Mprobe(ctx, c, AnySource, AnyTag)
						if err != nil {
							return err
						}
						b := make([]byte, m.Status().Bytes)
						st, err := Mrecv(ctx, m, b)
						if err != nil || st != m.Status() {
							return fmt.Errorf("status %+v, %v, want %+v", st, err, m.Status())
						}
						if st.Bytes == 0 {
							return nil
						}
						if err := checkPattern(b, st.Bytes); err != nil {
							return err
						}
						mu.Lock()
						total++
						mu.Unlock()
					}
				}()
			})
		}
		wg.Wait()
		if total != n {
			errs = append(errs, fmt.Errorf("%d messages, want %d", total, n))
		}
		if m, err := Improbe(c, AnySource, AnyTag); m != nil || err != nil {
			errs = append(errs, fmt.Errorf("a message is left: %v, %v", m, err))
		}
		return errors.Join(errs...)
	})
}

// Many goroutines per rank, each with a tag of its own, talk at the same time.
func TestThreadMultiple(t *testing.T) {
	const threads, rounds = 8, 60
	runRanks(t, 3, func(ctx context.Context, w *World) error {
		c := w.Comm()
		var wg sync.WaitGroup
		errs := make([]error, threads)
		for k := range threads {
			wg.Go(func() {
				errs[k] = func() error {
					out, in := make([]byte, 120_000), make([]byte, 120_000)
					right, left := (c.Rank()+1)%3, (c.Rank()+2)%3
					for i := range rounds {
						n := (i * (k + 1) * 1237) % len(out)
						pattern(out[:n], c.Rank()+100*i+k)
						st, err := Sendrecv(ctx, c, out[:n], right, k, in, left, k)
						if err != nil || st.Bytes != n {
							return fmt.Errorf("round %d: %+v, %v, want %d bytes", i, st, err, n)
						}
						if err := checkPattern(in[:n], left+100*i+k); err != nil {
							return err
						}
					}
					return nil
				}()
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

// A sender that runs ahead uses up its credit and falls back to announcing:
// the receiver's memory stays bounded, and nothing is lost or overtaken.
func TestUnexpectedIsBounded(t *testing.T) {
	const n, size, bound = 2000, 1000, 64 << 10
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if c.Rank() == 0 {
			reqs := make([]*Request, n)
			for i := range reqs {
				b := make([]byte, size)
				pattern(b, i)
				var err error
				if reqs[i], err = Isend(c, b, 1, i%7); err != nil {
					return err
				}
			}
			if err := c.barrier(ctx); err != nil {
				return err
			}
			_, err := Waitall(ctx, reqs...)
			return err
		}
		if err := c.barrier(ctx); err != nil {
			return err
		}
		e := w.eng
		e.mu.Lock()
		held := 0
		for _, m := range c.ctx[slotUser].messages(func(m *message) bool { return m.kind == kindEager }) {
			held += int(cost(int(m.length)))
		}
		e.mu.Unlock()
		if held > bound/2 {
			return fmt.Errorf("%d bytes of unexpected messages, want at most %d", held, bound/2)
		}
		b := make([]byte, size)
		for i := range n {
			st, err := Recv(ctx, c, b, 0, AnyTag)
			if err != nil || st.Tag != i%7 {
				return fmt.Errorf("receive %d = %+v, %v", i, st, err)
			}
			if err := checkPattern(b, i); err != nil {
				return err
			}
		}
		return nil
	}, WithUnexpected(bound))
}

func TestCommunicators(t *testing.T) {
	runRanks(t, 6, func(ctx context.Context, w *World) error {
		c := w.Comm()
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		// The same tag on two communicators does not mix.
		right, left := (c.Rank()+1)%6, (c.Rank()+5)%6
		if err := Send(ctx, d, []int{1000 + c.Rank()}, right, 0); err != nil {
			return err
		}
		if err := Send(ctx, c, []int{c.Rank()}, right, 0); err != nil {
			return err
		}
		var x [1]int
		if _, err := Recv(ctx, c, x[:], AnySource, AnyTag); err != nil || x[0] != left {
			return fmt.Errorf("world: %d, %v", x[0], err)
		}
		if _, err := Recv(ctx, d, x[:], AnySource, AnyTag); err != nil || x[0] != 1000+left {
			return fmt.Errorf("dup: %d, %v", x[0], err)
		}
		// Odd and even ranks, in reverse order.
		s, err := d.Split(ctx, c.Rank()%2, -c.Rank())
		if err != nil {
			return err
		}
		if s.Size() != 3 || s.Rank() != 2-c.Rank()/2 || s.Group().WorldRank(s.Rank()) != c.Rank() {
			return fmt.Errorf("split: rank %d of %d", s.Rank(), s.Size())
		}
		st, err := Sendrecv(ctx, s, []int{c.Rank()}, (s.Rank()+1)%3, 0, x[:], AnySource, 0)
		if err != nil || st.Source != (s.Rank()+2)%3 || x[0] != s.Group().WorldRank(st.Source) {
			return fmt.Errorf("split: %+v, %d, %v", st, x[0], err)
		}
		color := Undefined
		if c.Rank() == 3 {
			color = 0
		}
		u, err := c.Split(ctx, color, 0)
		if err != nil || (u != nil) != (c.Rank() == 3) {
			return fmt.Errorf("split with one member: %v, %v", u, err)
		}
		g, err := c.Group().Incl(5, 1)
		if err != nil {
			return err
		}
		p, err := c.Create(ctx, g)
		if err != nil || (p != nil) != (c.Rank() == 5 || c.Rank() == 1) {
			return fmt.Errorf("create: %v, %v", p, err)
		}
		if p != nil {
			if _, err := Sendrecv(ctx, p, []int{c.Rank()}, 1-p.Rank(), 0, x[:], 1-p.Rank(), 0); err != nil || x[0] != 6-c.Rank() {
				return fmt.Errorf("create: %d, %v", x[0], err)
			}
		}
		if err := c.barrier(ctx); err != nil {
			return err
		}
		r, err := Irecv(d, x[:], AnySource, AnyTag)
		if err != nil {
			return err
		}
		d.Free()
		if _, err := r.Wait(ctx); !errors.Is(err, ErrFreed) {
			return fmt.Errorf("receive on a freed communicator: %v", err)
		}
		if err := Send(ctx, d, x[:], 0, 0); !errors.Is(err, ErrFreed) {
			return fmt.Errorf("send on a freed communicator: %v", err)
		}
		return nil
	})
}

func TestGroups(t *testing.T) {
	g := Group{ranks: []int32{4, 2, 7, 0}}
	h := Group{ranks: []int32{7, 1, 4}}
	for _, tt := range []struct {
		name string
		got  Group
		want []int32
	}{
		{"union", g.Union(h), []int32{4, 2, 7, 0, 1}},
		{"intersection", g.Intersection(h), []int32{4, 7}},
		{"difference", g.Difference(h), []int32{2, 0}},
	} {
		if !slices.Equal(tt.got.ranks, tt.want) {
			t.Errorf("%s = %v, want %v", tt.name, tt.got.ranks, tt.want)
		}
	}
	if x, err := g.Excl(0, 3); err != nil || !slices.Equal(x.ranks, []int32{2, 7}) {
		t.Errorf("Excl = %v, %v", x, err)
	}
	if _, err := g.Incl(0, 0); !errors.Is(err, ErrRank) {
		t.Errorf("Incl twice: %v", err)
	}
	if _, err := g.Excl(4); !errors.Is(err, ErrRank) {
		t.Errorf("Excl outside: %v", err)
	}
	if g.Translate(0, h) != 2 || g.Translate(1, h) != Undefined || g.Rank(7) != 2 || g.Equal(h) || !g.Equal(g) {
		t.Error("translation")
	}
}

func TestBsendAndReplace(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		peer := 1 - c.Rank()
		for i, n := range []int{0, 10, 5000, 64 << 10, 500_000} {
			// Both send first; the buffer is reused at once.
			b := make([]byte, n)
			pattern(b, 10*i+c.Rank())
			if err := Bsend(c, b, peer, i); err != nil {
				return err
			}
			r, err := Ibsend(c, b, peer, i)
			if err != nil {
				return err
			}
			clear(b)
			for range 2 {
				if _, err := Recv(ctx, c, b, peer, i); err != nil {
					return err
				}
				if err := checkPattern(b, 10*i+peer); err != nil {
					return err
				}
			}
			if _, err := r.Wait(ctx); err != nil {
				return err
			}
			pattern(b, 20*i+c.Rank())
			st, err := SendrecvReplace(ctx, c, b, peer, i, AnySource, AnyTag)
			if want := (Status{peer, i, n}); err != nil || st != want {
				return fmt.Errorf("replace = %+v, %v, want %+v", st, err, want)
			}
			if err := checkPattern(b, 20*i+peer); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestMoreCommunicators(t *testing.T) {
	runRanks(t, 5, func(ctx context.Context, w *World) error {
		c := w.Comm()
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		rev, err := c.Split(ctx, 0, -c.Rank())
		if err != nil {
			return err
		}
		for _, tt := range []struct {
			d    *Comm
			want Comparison
		}{{c, Identical}, {d, Congruent}, {rev, Similar}, {w.Self(), Unequal}} {
			if got := c.Compare(tt.d); got != tt.want {
				return fmt.Errorf("world and %v are %v, want %v", tt.d, got, tt.want)
			}
		}
		s, err := c.SplitShared(ctx, 0)
		if err != nil || c.Compare(s) != Congruent {
			return fmt.Errorf("shared: %v, %v", s, err)
		}
		// Two groups that overlap in rank 2, made in any order.
		g, err := c.Group().RangeIncl(Range{4, 2, -1})
		if err != nil {
			return err
		}
		h, err := c.Group().RangeExcl(Range{3, 4, 1})
		if err != nil {
			return err
		}
		for i, x := range []Group{g, h} {
			if x.Rank(c.Rank()) == Undefined {
				continue
			}
			p, err := c.CreateGroup(ctx, x, 7+i)
			if err != nil {
				return err
			}
			var got [1]int
			if _, err := Sendrecv(ctx, p, []int{c.Rank()}, (p.Rank()+1)%3, 0, got[:], (p.Rank()+2)%3, 0); err != nil {
				return err
			}
			if want := x.WorldRank((p.Rank() + 2) % 3); got[0] != want {
				return fmt.Errorf("group %d: %d, want %d", i, got[0], want)
			}
		}
		if _, err := c.Group().RangeIncl(Range{0, 5, 1}); !errors.Is(err, ErrRank) {
			return fmt.Errorf("range outside: %v", err)
		}
		if _, err := c.Group().RangeIncl(Range{0, 4, 0}); !errors.Is(err, ErrRank) {
			return fmt.Errorf("range without stride: %v", err)
		}
		_, err = c.CreateGroup(ctx, Group{}, 0)
		if !errors.Is(err, ErrRank) {
			return fmt.Errorf("group without the caller: %v", err)
		}
		return nil
	})
}
