package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

type (
	kelvin float64
	pair   struct{ A, B float64 }
	mixed  struct {
		N int32
		X float64
	}
)

// TestDatatypeSignature looks at the signature of the values of datatypes: there is one if
// those are all of one type.
func TestDatatypeSignature(t *testing.T) {
	of := func(v any) datatype.Sig { return datatype.SigOf(reflect.TypeOf(v)) }
	num, x := MustType(TypeOf[int32]()), MustType(TypeOf[float64]())
	for _, tt := range []struct {
		name string
		t    *Datatype
		want datatype.Sig
	}{
		{"vector", MustType(TypeVector(2, 3, 4, x)), of(0.0)},
		{"nested", MustType(TypeResized(MustType(TypeContiguous(2, MustType(TypeHindexed([]int{1, 2}, []int{8, 32}, x)))), 0, 99)), of(0.0)},
		{"struct", MustType(TypeStruct([]int{1, 1}, []int{0, 8}, []*Datatype{num, x})), datatype.SigAny},
		{"struct of one kind", MustType(TypeStruct([]int{1, 1, 0}, []int{0, 8, 0}, []*Datatype{x, x, num})), of(0.0)},
		{"subarray of structs", MustType(TypeSubarray([]int{4}, []int{2}, []int{1}, RowMajor, MustType(TypeOf[mixed]()))), of(mixed{})},
		{"nothing", MustType(TypeContiguous(0, x)), datatype.SigAny},
	} {
		if tt.t.rt.Values() != tt.want {
			t.Errorf("datatype %s: %v, want %v", tt.name, tt.t.rt.Values(), tt.want)
		}
	}
}

// wrongType returns an error unless err names both types, and the buffer is as before.
func wrongType(what string, err error, sent, wanted string, buf []int64) error {
	if !errors.Is(err, ErrTypeMismatch) || ErrorClass(err) != ClassType ||
		!strings.Contains(err.Error(), "sent "+sent) || !strings.Contains(err.Error(), "of "+wanted) {
		return fmt.Errorf("%s: %w, want %w of %s and %s", what, err, ErrTypeMismatch, sent, wanted)
	}
	for _, v := range buf {
		if v != -1 {
			return fmt.Errorf("%s: buffer %v", what, buf[:min(len(buf), 4)])
		}
	}
	return nil
}

// TestTypeMismatch sends elements of one type to receives of another in all ways: the
// receive fails, the send does not, and what comes next is as if nothing had been.
func TestTypeMismatch(t *testing.T) {
	const long = 100_000
	for _, how := range []string{"", "message", "write", "read"} {
		for _, tr := range append(slices.Clone(testTransports), TransportHybrid) {
			if how != "" && tr != TransportHybrid && tr != hybridShared {
				continue
			}
			t.Run(tr+how, func(t *testing.T) {
				local(t, 2, func(ctx context.Context, c *Comm) error {
					if how != "" {
						d, err := c.DupWithInfo(ctx, Info{InfoRendezvous: how, InfoEager: "4K"})
						if err != nil {
							return err
						}
						c = d
					}
					for _, n := range []int{1, 100, long} {
						for _, posted := range []bool{true, false} {
							if err := mismatchedMessages(ctx, c, n, posted); err != nil {
								return fmt.Errorf("%d elements, posted %v: %w", n, posted, err)
							}
						}
					}
					return nil
				}, overTransport(tr))
			})
		}
	}
}

func mismatchedMessages(ctx context.Context, c *Comm, n int, posted bool) error {
	meet := func() error { return Barrier(ctx, c) }
	if c.Rank() == 0 {
		x := slices.Repeat([]float64{0.5}, n)
		small := slices.Repeat([]int32{7}, n)
		if posted {
			if err := meet(); err != nil {
				return err
			}
		}
		s, err := Issend(c, x, 1, 0)
		if err != nil {
			return err
		}
		r, err := Isend(c, small, 1, 1)
		if err != nil {
			return err
		}
		wide := MustType(TypeVector(n, 1, 1, MustType(TypeOf[float64]())))
		q, err := IsendType(c, x, 1, wide, 1, 2)
		if err != nil {
			return err
		}
		b, err := Ibsend(c, slices.Repeat([]mixed{{1, 2}}, n), 1, 3)
		if err != nil {
			return err
		}
		p, err := Isend(c, x, 1, 4)
		if err != nil {
			return err
		}
		if !posted {
			if err := meet(); err != nil {
				return err
			}
		}
		if _, err := Waitall(ctx, s, r, q, b, p); err != nil {
			return fmt.Errorf("sends of another type than their receives: %w", err)
		}
		if _, err := Sendrecv(ctx, c, x, 1, 5, slices.Clone(x), 1, 5); err != nil {
			return err
		}
		// []byte and messages without elements match anything.
		raw := datatype.Bytes(slices.Repeat([]int64{42}, n))
		return errors.Join(Send(ctx, c, raw, 1, 6), Send(ctx, c, slices.Repeat([]int64{43}, n), 1, 7), Send(ctx, c, []float32{}, 1, 8),
			Send(ctx, c, slices.Repeat([]pair{{1, 2}}, n), 1, 9))
	}
	fresh := func() []int64 { return slices.Repeat([]int64{-1}, n) }
	bufs := [4][]int64{fresh(), fresh(), fresh(), fresh()}
	var reqs [4]*Request
	post := func() error {
		var errs [4]error
		reqs[0], errs[0] = Irecv(c, bufs[0], AnySource, 0)
		reqs[1], errs[1] = Irecv(c, bufs[1], 0, 1)
		reqs[2], errs[2] = IrecvType(c, bufs[2], n, MustType(TypeOf[int64]()), 0, 2)
		reqs[3], errs[3] = Irecv(c, bufs[3], 0, 3)
		return errors.Join(errs[:]...)
	}
	if posted {
		if err := errors.Join(post(), meet()); err != nil {
			return err
		}
	} else if err := errors.Join(meet(), post()); err != nil {
		return err
	}
	for i, sent := range []string{"float64", "int32", "float64", "mpi.mixed"} {
		st, err := reqs[i].Wait(ctx)
		if err := wrongType(fmt.Sprint("request ", i), err, sent, "int64", bufs[i]); err != nil {
			return err
		}
		if st.Bytes != 0 || st.Tag != i || st.Source != 0 {
			return fmt.Errorf("request %d: status %+v", i, st)
		}
	}
	m, err := Mprobe(ctx, c, 0, 4)
	if err != nil {
		return err
	}
	b := fresh()
	_, err = Mrecv(ctx, m, b)
	if err := wrongType("Mrecv", err, "float64", "int64", b); err != nil {
		return err
	}
	_, err = Sendrecv(ctx, c, make([]float64, n), 0, 5, b, 0, 5)
	if err := wrongType("Sendrecv", err, "float64", "int64", b); err != nil {
		return err
	}
	if _, err := Recv(ctx, c, b, 0, 6); err != nil || b[n-1] != 42 {
		return fmt.Errorf("int64 from bytes: %d, %w", b[n-1], err)
	}
	raw := make([]byte, 8*n)
	if _, err := Recv(ctx, c, raw, 0, 7); err != nil || datatype.View[int64](raw)[n-1] != 43 {
		return fmt.Errorf("bytes from int64: %w", err)
	}
	if st, err := Recv(ctx, c, b, 0, 8); err != nil || st.Bytes != 0 {
		return fmt.Errorf("a message of no elements: %+v, %w", st, err)
	}
	x := make([]kelvin, 2*n)
	if _, err := Recv(ctx, c, x, 0, 9); err != nil || x[2*n-1] != 2 {
		return fmt.Errorf("numbers in pairs: %v, %w", x[2*n-1], err)
	}
	return nil
}

// TestPartitionedTypeMismatch prepares the two sides of a partitioned message with types
// of the same size.
func TestPartitionedTypeMismatch(t *testing.T) {
	local(t, 2, func(ctx context.Context, c *Comm) error {
		if c.Rank() == 0 {
			p, err := PsendInit(c, make([]float64, 4), 2, 1, 0)
			if err != nil {
				return err
			}
			r, err := p.Start()
			if err := errors.Join(err, p.PreadyRange(0, 1)); err != nil {
				return err
			}
			_, err = r.Wait(ctx)
			return err
		}
		buf := slices.Repeat([]int64{-1}, 4)
		p, err := PrecvInit(c, buf, 2, 0, 0)
		if err != nil {
			return err
		}
		r, err := p.Start()
		if err != nil {
			return err
		}
		_, err = r.Wait(ctx)
		return wrongType("Precv", err, "float64", "int64", buf)
	})
}

// TestCollectiveTypeMismatch has one rank give another type than the others: all ranks
// whose result depends on it get an error, and the next collective is right.
func TestCollectiveTypeMismatch(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, n := range []int{1, 3000, 70_000} {
		for _, p := range []int{2, 3, 4, 7, 8} {
			local(t, p, func(ctx context.Context, c *Comm) error {
				rng := rand.New(rand.NewPCG(seed, uint64(n*p))) // the same on all ranks
				for range 3 {
					odd := rng.IntN(p)
					send, recv := slices.Repeat([]int64{1}, n), slices.Repeat([]int64{-1}, n)
					other := slices.Repeat([]float64{1}, n)
					otherRecv := make([]float64, n*p)
					me := c.Rank() == odd
					call := func(what string, all bool, ours, others func() error) error {
						f := others
						if me {
							f = ours
						}
						err := f()
						if all && !errors.Is(err, ErrTypeMismatch) || err != nil && ErrorClass(err) != ClassType {
							return fmt.Errorf("%s with rank %d of another type: %w, want %w", what, odd, err, ErrTypeMismatch)
						}
						return nil
					}
					root := (odd + 1 + rng.IntN(p-1)) % p
					for _, err := range []error{
						call("Allreduce", true, func() error { return Allreduce(ctx, c, other, otherRecv[:n], Sum) },
							func() error { return Allreduce(ctx, c, send, recv, Sum) }),
						call("Reduce", c.Rank() == root, func() error { return Reduce(ctx, c, other, otherRecv[:n], Sum, root) },
							func() error { return Reduce(ctx, c, send, recv, Sum, root) }),
						call("Bcast", me, func() error { return Bcast(ctx, c, other, root) }, func() error { return Bcast(ctx, c, slices.Clone(send), root) }),
						call("Allgather", true, func() error { return Allgather(ctx, c, other, otherRecv) },
							func() error { return Allgather(ctx, c, send, make([]int64, n*p)) }),
						call("Alltoall", true, func() error { return Alltoall(ctx, c, otherRecv, make([]float64, n*p)) },
							func() error { return Alltoall(ctx, c, make([]int64, n*p), make([]int64, n*p)) }),
						call("Gather", c.Rank() == root, func() error { return Gather(ctx, c, other, nil, root) },
							func() error { return Gather(ctx, c, send, make([]int64, n*p), root) }),
					} {
						if err != nil {
							return err
						}
					}
					if err := Allreduce(ctx, c, send, recv, Sum); err != nil || recv[n-1] != int64(p) {
						return fmt.Errorf("the next Allreduce: %d, %w", recv[n-1], err)
					}
				}
				return nil
			})
		}
	}
}

// TestWinTypeMismatch puts values of one type where the target expects another.
func TestWinTypeMismatch(t *testing.T) {
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int64](ctx, c, 4)
		if err != nil {
			return err
		}
		num, x := MustType(TypeOf[int64]()), MustType(TypeOf[float64]())
		for what, err := range map[string]error{
			"PutType":        w.PutType(ctx, make([]int64, 1), 1, x, 1-c.Rank(), 0, 1, num),
			"GetType":        w.GetType(ctx, make([]int64, 1), 1, num, 1-c.Rank(), 0, 1, x),
			"AccumulateType": w.AccumulateType(ctx, make([]int64, 1), 1, x, 1-c.Rank(), 0, 1, num, Sum),
		} {
			if !errors.Is(err, ErrTypeMismatch) {
				return fmt.Errorf("%s: %w, want %w", what, err, ErrTypeMismatch)
			}
		}
		if err := w.PutType(ctx, []int64{3}, 1, num, 1-c.Rank(), 2, 8, MustType(TypeOf[byte]())); err != nil {
			return fmt.Errorf("put as bytes: %w", err)
		}
		if err := w.Fence(ctx); err != nil || w.Buf()[2] != 3 {
			return fmt.Errorf("window %v, %w", w.Buf(), err)
		}
		if err := w.Free(ctx); err != nil {
			return err
		}
		// Structs of one size are told apart, too.
		if c.Rank() == 0 {
			_, err = WinAllocate[mixed](ctx, c, 1)
		} else {
			_, err = WinAllocate[pair](ctx, c, 1)
		}
		if !errors.Is(err, ErrWindow) || !strings.Contains(err.Error(), "float64") || !strings.Contains(err.Error(), "mpi.mixed") {
			return fmt.Errorf("two types of elements: %w", err)
		}
		return nil
	})
}
