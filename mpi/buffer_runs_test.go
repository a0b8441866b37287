package mpi

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/weftstack/weft/internal/testenv"
)

// TestRandomItems sends items of random datatypes, nested, with negative lower bounds and with blocks from a byte to some
// 10,000, in all modes, eagerly and announced, to a peer with another layout.
func TestRandomItems(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rounds := 20
	if testenv.Race {
		rounds = 4
	}
	for _, transport := range []string{TransportSCTP, TransportTCP, hybridShared, TransportInproc} {
		for _, eager := range []int{0, 20_000, 1 << 20} {
			t.Run(fmt.Sprintf("%s/eager=%d", transport, eager), func(t *testing.T) {
				local(t, 2, func(ctx context.Context, c *Comm) error {
					rng := rand.New(rand.NewPCG(seed, uint64(eager))) // the same choices on both sides
					for i := range rounds {
						if err := sendRandomItems(ctx, c, rng); err != nil {
							return fmt.Errorf("message %d: %w", i, err)
						}
					}
					return nil
				}, overTransport(transport), WithEager(eager))
			})
		}
	}
}

func sendRandomItems(ctx context.Context, c *Comm, rng *rand.Rand) error {
	d, count := randomItems(rng), 1+rng.IntN(3)
	runs := 0
	for range d.Runs(1) {
		runs++
	}
	if most := d.rt.RunCount(); runs > most {
		return fmt.Errorf("%v: %d runs, at most %d expected", d, runs, most)
	}
	mem, at := memoryFor(d, count)
	for i := range mem {
		mem[i] = byte(rng.Uint32())
	}
	b := ItemsAt(at, count, d)
	defer runtime.KeepAlive(mem)
	want, err := b.AppendPacked(nil)
	if err != nil {
		return err
	}
	// The receiver cuts the data elsewhere.
	var lens, displs []int
	for n, at := 0, 0; n < len(want); n += lens[len(lens)-1] {
		lens, displs = append(lens, min(1+rng.IntN(5000), len(want)-n)), append(displs, at)
		at += lens[len(lens)-1] + rng.IntN(2)
	}
	mode := rng.IntN(6)
	if c.Rank() == 1 {
		back := MustType(TypeIndexed(lens, displs, MustType(TypeOf[byte]())))
		got, base := memoryFor(back, 1)
		into := ItemsAt(base, 1, back)
		st, err := c.Recv(ctx, into, 0, 3)
		if err != nil {
			return err
		}
		data, err := into.AppendPacked(nil)
		if err != nil || st.Bytes != len(want) || !bytes.Equal(data, want) {
			return fmt.Errorf("%v: %d items, mode %d: %d bytes, want %d, or others: %w", d, count, mode, st.Bytes, len(want), err)
		}
		runtime.KeepAlive(got)
		return nil
	}
	var r *Request
	switch mode {
	case 0:
		return c.Send(ctx, b, 1, 3)
	case 1:
		return c.Ssend(ctx, b, 1, 3)
	case 2:
		return c.Bsend(b, 1, 3)
	case 3:
		r, err = c.Isend(b, 1, 3)
	case 4:
		r, err = c.Issend(b, 1, 3)
	default:
		_, err = c.Sendrecv(ctx, b, 1, 3, Buffer{}, ProcNull, 0)
		return err
	}
	if err == nil {
		_, err = r.Wait(ctx)
	}
	return err
}

// randomItems returns a datatype of at most some 100 KB.
func randomItems(rng *rand.Rand) *Datatype {
	t := MustType(TypeOf[byte]())
	if n := []int{1, 8, 300, 5000}[rng.IntN(4)]; n > 1 {
		t = MustType(TypeContiguous(n, t))
	}
	for range 1 + rng.IntN(3) {
		most := max(min(50_000/t.Size(), 200), 1)
		n := 1 + rng.IntN(most)
		lens, displs := make([]int, n), make([]int, n)
		_, extent := t.Extent()
		at := -rng.IntN(1000)
		for i := range n {
			lens[i], displs[i] = 1+rng.IntN(2), at
			at += lens[i]*extent + rng.IntN(100)
		}
		switch rng.IntN(4) {
		case 0:
			t = MustType(TypeHvector(n, 1, extent+rng.IntN(100), t))
		case 1:
			t = MustType(TypeHvector(n, 1, -extent-rng.IntN(100), t))
		case 2:
			t = MustType(TypeHindexed(lens, displs, t))
		default:
			t = MustType(TypeStruct(lens[:1], displs[:1], []*Datatype{t}))
		}
	}
	return t
}

// memoryFor returns memory that holds items of d, and the address of offset 0.
func memoryFor(d *Datatype, count int) ([]byte, unsafe.Pointer) {
	lo, hi := 0, 0
	for off, n := range d.Runs(count) {
		lo, hi = min(lo, off), max(hi, off+n)
	}
	mem := make([]byte, hi-lo+1)
	return mem, unsafe.Add(unsafe.Pointer(unsafe.SliceData(mem)), -lo)
}
