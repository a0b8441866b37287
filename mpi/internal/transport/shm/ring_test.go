package shm

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// The rings of all numbers of ranks fit in what a rank shares, or are the smallest.
func TestRingSizes(t *testing.T) {
	for n := 1; n < MaxRanks; n++ {
		size := ringSize(n)
		if size&(size-1) != 0 || size < minRing || size > MaxRing || size > minRing && n*size > ringBudget {
			t.Errorf("%d rings of %d bytes", n, size)
		}
	}
}

// newRing returns both ends of a ring of the memory of this process.
func newRing(size int) (*ringWriter, *ringReader) {
	ctl, data := new(ringControl), make([]byte, size)
	return &ringWriter{ctl: ctl, data: data}, &ringReader{ctl: ctl, data: data, sent: new(atomic.Uint64)}
}

// What is written to a ring is read from it, however it is cut.
func TestRing(t *testing.T) {
	seed := testSeed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, size := range []int{1, 64, 4 * ringStep} {
		w, r := newRing(size)
		sent, got := make([]byte, 50*size), []byte(nil)
		pattern(sent, size)
		for at := 0; len(got) < len(sent); {
			if rng.IntN(2) == 0 {
				n := w.write(sent[at:min(at+rng.IntN(2*size+1), len(sent))])
				at += n
				if rng.IntN(4) > 0 || at == len(sent) || w.room(1) == 0 {
					w.publish()
				}
			}
			if rng.IntN(2) == 0 {
				b, err := r.next(false)
				if err != nil {
					t.Fatal(err)
				}
				b = b[:rng.IntN(len(b)+1)]
				got = append(got, b...)
				r.skip(len(b))
			}
		}
		if !bytes.Equal(got, sent) || r.ready() {
			t.Errorf("ring of %d bytes: other bytes came out", size)
		}
	}
}

// What a goroutine did before it sent is seen by another that takes in the answer,
// also where Go does not know what is between: the race detector would tell.
func TestRingOrdersAnswers(t *testing.T) {
	var out [2]*ringWriter
	var in [2]*ringReader
	for i := range out { // memory that the race detector does not look at
		s := sharing(t)
		m, err := mapFile(s.file, mappingLen(1))
		if err != nil {
			t.Fatal(err)
		}
		ctl, data := m.ring(0, 1)
		out[i] = &ringWriter{ctl: ctl, data: data}
		in[1-i] = &ringReader{ctl: ctl, data: data}
		defer runtime.KeepAlive(m)
	}
	in[0].sent, in[1].sent = &out[0].order, &out[1].order
	take := func(r *ringReader) {
		for {
			switch b, err := r.next(true); {
			case err != nil:
				t.Error(err)
				return
			case len(b) > 0:
				r.skip(len(b))
				return
			}
			runtime.Gosched()
		}
	}
	send := func(w *ringWriter) {
		w.begin()
		w.write([]byte{1})
		w.publish()
	}
	var before int
	var wg sync.WaitGroup
	wg.Go(func() {
		take(in[0])
		if before != 1 {
			t.Error("the answer came first")
		}
	})
	wg.Go(func() { // the other process
		take(in[1])
		send(out[1])
	})
	wg.Go(func() {
		before = 1
		send(out[0])
	})
	wg.Wait()
}

// Numbers that make no sense are neither believed nor a reason to touch memory
// beyond the ring.
func TestRingNonsense(t *testing.T) {
	w, r := newRing(64)
	r.ctl.tail.Store(65)
	if _, err := r.next(false); !errors.Is(err, mpierr.ErrProtocol) {
		t.Errorf("65 bytes in 64: %v", err)
	}
	r.ctl.tail.Store(^uint64(0))
	if _, err := r.next(false); !errors.Is(err, mpierr.ErrProtocol) {
		t.Errorf("less than nothing: %v", err)
	}
	if n := w.write(make([]byte, 100)); n != 64 {
		t.Errorf("%d bytes written to 64", n)
	}
	for _, head := range []uint64{65, ^uint64(0), 1 << 63} {
		if w.ctl.head.Store(head); w.room(1) != 0 {
			t.Errorf("room of %d with a head of %d", w.room(1), head)
		}
	}
}
