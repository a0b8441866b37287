package fifo

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A queue does what a slice does.
func TestQueue(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var q Queue[*int]
	var want []*int
	for range 20_000 {
		switch n := r.IntN(100); {
		case n < 50:
			for range r.IntN(50) {
				v := new(int)
				q.Push(v)
				want = append(want, v)
			}
		case n < 98:
			for range min(len(want), r.IntN(60)) {
				if got := q.Pop(); got != want[0] {
					t.Fatalf("popped %p, want %p", got, want[0])
				}
				want = want[1:]
			}
		default:
			odd := map[*int]bool{}
			for _, v := range want {
				odd[v] = r.IntN(2) == 0
			}
			q.Filter(func(v **int) bool { return odd[*v] })
			want = slices.DeleteFunc(slices.Clone(want), func(v *int) bool { return !odd[v] })
		}
		if q.Len() != len(want) {
			t.Fatalf("%d elements, want %d", q.Len(), len(want))
		}
		for i, v := range want {
			if *q.At(i) != v {
				t.Fatalf("element %d of %d is %p, want %p", i, len(want), *q.At(i), v)
			}
		}
	}
}

// What was popped is not referred to any more, and the memory of a burst is given back.
func TestQueueKeepsNothing(t *testing.T) {
	var q Queue[*int]
	for range 10 * keep {
		q.Push(new(int))
	}
	for q.Len() > 1 {
		q.Pop()
	}
	if n := len(q.ring); n < 10*keep {
		t.Fatalf("a ring of %d elements", n)
	}
	for i, v := range q.ring {
		if v != nil && v != *q.At(0) {
			t.Fatalf("place %d of the ring is not cleared", i)
		}
	}
	q.Pop()
	if q.ring != nil {
		t.Errorf("an empty queue keeps %d elements", len(q.ring))
	}
	q.Push(new(int))
	if q.Len() != 1 || *q.At(0) == nil {
		t.Error("the queue is not used again")
	}
}

func TestQueueAllocates(t *testing.T) {
	var q Queue[int]
	if n := testing.AllocsPerRun(100, func() {
		for i := range 4 {
			q.Push(i)
		}
		for q.Len() > 0 {
			q.Pop()
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
