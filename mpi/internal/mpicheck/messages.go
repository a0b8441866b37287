package main

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi"
)

// fill writes bytes that depend on seed and place.
func fill(b []byte, seed int) {
	x := uint32(seed)*2654435761 + 99
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
}

func verify(b []byte, seed int) error {
	want := make([]byte, len(b))
	fill(want, seed)
	for i := range b {
		if b[i] != want[i] {
			return fmt.Errorf("byte %d of %d is %d, want %d", i, len(b), b[i], want[i])
		}
	}
	return nil
}

var lengths = []int{0, 1, 100, 1500, 20_000, 65_536, 65_537, 300_000}

// messages go around a ring, in all lengths and modes.
func messages(ctx context.Context, c *mpi.Comm) error {
	n := c.Size()
	next, prev := (c.Rank()+1)%n, (c.Rank()+n-1)%n
	for i, length := range lengths {
		out, in := make([]byte, length), make([]byte, length+10)
		fill(out, c.Rank()*100+i)
		st, err := mpi.Sendrecv(ctx, c, out, next, i, in, prev, i)
		if err != nil || st.Bytes != length || st.Source != prev {
			return fmt.Errorf("%d bytes: %+v, %w", length, st, err)
		}
		if err := verify(in[:length], prev*100+i); err != nil {
			return err
		}
		r, err := mpi.Irecv(c, in, prev, i)
		if err != nil {
			return err
		}
		if err := mpi.Ssend(ctx, c, out, next, i); err != nil {
			return err
		}
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
		if err := mpi.Bsend(c, out, next, i); err != nil {
			return err
		}
		m, err := mpi.Mprobe(ctx, c, mpi.AnySource, i)
		if err != nil || m.Status().Bytes != length {
			return fmt.Errorf("probed %+v, %w", m, err)
		}
		if _, err := mpi.Mrecv(ctx, m, in); err != nil {
			return err
		}
		if err := verify(in[:length], prev*100+i); err != nil {
			return err
		}
	}
	return nil
}

// wildcards receives from all what all send, in the order each sent it.
func wildcards(ctx context.Context, c *mpi.Comm) error {
	const each = 50
	n := c.Size()
	var sends []*mpi.Request
	for i := range each {
		for to := range n {
			b := make([]byte, 4+(i*to)%3*4000)
			b[0] = byte(i)
			r, err := mpi.Isend(c, b, to, i*i%17)
			if err != nil {
				return err
			}
			sends = append(sends, r)
		}
	}
	next := make([]int, n)
	b := make([]byte, 10_000)
	for range n * each {
		st, err := mpi.Recv(ctx, c, b, mpi.AnySource, mpi.AnyTag)
		if err != nil {
			return err
		}
		i := next[st.Source]
		next[st.Source]++
		if int(b[0]) != i || st.Tag != i*i%17 || st.Bytes != 4+(i*c.Rank())%3*4000 {
			return fmt.Errorf("message %d of rank %d: %d, %+v", i, st.Source, b[0], st)
		}
	}
	_, err := mpi.Waitall(ctx, sends...)
	return err
}

// requests waits for any of many, cancels, and starts persistent ones again.
func requests(ctx context.Context, c *mpi.Comm) error {
	n := c.Size()
	in := make([][]int, n)
	reqs := make([]*mpi.Request, n)
	for r := range n {
		in[r] = make([]int, 1)
		var err error
		if reqs[r], err = mpi.Irecv(c, in[r], r, 1); err != nil {
			return err
		}
	}
	for r := range n {
		if err := mpi.Send(ctx, c, []int{c.Rank()}, r, 1); err != nil {
			return err
		}
	}
	for range n {
		i, st, err := mpi.Waitany(ctx, reqs...)
		if err != nil || st.Source != i || in[i][0] != i {
			return fmt.Errorf("request %d: %+v, %v, %w", i, st, in, err)
		}
		reqs[i] = nil
	}
	never, err := mpi.Irecv(c, in[0], mpi.AnySource, 2)
	if err != nil || !never.Cancel() {
		return fmt.Errorf("a receive cannot be cancelled: %w", err)
	}
	out := make([]int, 1)
	send, err := mpi.SendInit(c, out, (c.Rank()+1)%n, 3)
	if err != nil {
		return err
	}
	recv, err := mpi.RecvInit(c, in[0], (c.Rank()+n-1)%n, 3)
	if err != nil {
		return err
	}
	for i := range 10 {
		out[0] = i
		rs, err := mpi.Startall(recv, send)
		if err != nil {
			return err
		}
		if _, err := mpi.Waitall(ctx, rs...); err != nil || in[0][0] != i {
			return fmt.Errorf("round %d: %d, %w", i, in[0][0], err)
		}
	}
	return nil
}

// partitions sends a message in parts around the ring.
func partitions(ctx context.Context, c *mpi.Comm) error {
	const parts = 6
	n := c.Size()
	out, in := make([]int, 60), make([]int, 60)
	s, err := mpi.PsendInit(c, out, parts, (c.Rank()+1)%n, 0)
	if err != nil {
		return err
	}
	prev := (c.Rank() + n - 1) % n
	r, err := mpi.PrecvInit(c, in, 4, prev, 0)
	if err != nil {
		return err
	}
	for round := range 5 {
		a, err := r.Start()
		if err != nil {
			return err
		}
		b, err := s.Start()
		if err != nil {
			return err
		}
		for p := range parts {
			p = (p*5 + round) % parts
			for i := p * 10; i < p*10+10; i++ {
				out[i] = 1000*round + 100*c.Rank() + i
			}
			if err := s.Pready(p); err != nil {
				return err
			}
		}
		if _, err := mpi.Waitall(ctx, a, b); err != nil {
			return err
		}
		for i, x := range in {
			if want := 1000*round + 100*prev + i; x != want {
				return fmt.Errorf("round %d: element %d is %d, want %d", round, i, x, want)
			}
		}
	}
	return nil
}
