package tagtable

import (
	"math/rand/v2"
	"testing"
)

type association struct{ _ [64]byte }

// TestTable compares the table with a map, with tags of which many fall into
// the same slots, at its ends above all.
func TestTable(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	var table Table[association]
	model := map[uint32]*association{}
	var some [8]association
	for range 200_000 {
		tag := uint32(rnd.IntN(8))<<12 | uint32(rnd.IntN(40)-20)&4095
		switch rnd.IntN(3) {
		case 0:
			if model[tag] == nil {
				a := &some[rnd.IntN(len(some))]
				table.Put(tag, a)
				model[tag] = a
			}
		case 1:
			if table.Remove(tag) != (model[tag] != nil) {
				t.Fatalf("seed %d: removal of tag %#x: was %p", seed, tag, model[tag])
			}
			delete(model, tag)
		default:
			if got := table.Get(tag); got != model[tag] {
				t.Fatalf("seed %d: tag %#x: %p, want %p", seed, tag, got, model[tag])
			}
		}
		if table.Len() != len(model) {
			t.Fatalf("seed %d: %d associations, want %d", seed, table.Len(), len(model))
		}
	}
	n := 0
	for range table.All() {
		n++
	}
	if n != len(model) {
		t.Fatalf("seed %d: All has %d associations, want %d", seed, n, len(model))
	}
	for tag, a := range model {
		if table.Get(tag) != a {
			t.Fatalf("seed %d: tag %#x was lost", seed, tag)
		}
		table.Remove(tag)
	}
	for i, s := range table.slots {
		if s.a != nil {
			t.Fatalf("seed %d: slot %d is in use after all were removed", seed, i)
		}
	}
}

// TestTableIsSparse checks that a table of random tags is found in short time.
func TestTableIsSparse(t *testing.T) {
	var table Table[association]
	rnd, a := rand.New(rand.NewPCG(1, 2)), new(association)
	for table.Len() < 10_000 {
		if tag := rnd.Uint32(); table.Get(tag) == nil {
			table.Put(tag, a)
		}
	}
	steps := 0
	for i, s := range table.slots {
		if s.a != nil {
			steps += 1 + int((uint32(i)-s.tag)&uint32(len(table.slots)-1))
		}
	}
	if mean := float64(steps) / float64(table.Len()); mean > 1.6 {
		t.Errorf("%.2f slots looked at for an association", mean)
	}
	if len(table.slots) > 4*table.Len() {
		t.Errorf("%d slots for %d associations", len(table.slots), table.Len())
	}
}
