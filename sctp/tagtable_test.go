package sctp

import (
	"math/rand/v2"
	"testing"
)

// TestTagTable compares the table with a map, with tags of which many fall into
// the same slots, at its ends above all.
func TestTagTable(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	var table tagTable
	model := map[uint32]*Association{}
	var some [8]Association
	for range 200_000 {
		tag := uint32(rnd.IntN(8))<<12 | uint32(rnd.IntN(40)-20)&4095
		switch rnd.IntN(3) {
		case 0:
			if model[tag] == nil {
				a := &some[rnd.IntN(len(some))]
				table.put(tag, a)
				model[tag] = a
			}
		case 1:
			table.remove(tag)
			delete(model, tag)
		default:
			if got := table.get(tag); got != model[tag] {
				t.Fatalf("seed %d: tag %#x: %p, want %p", seed, tag, got, model[tag])
			}
		}
		if table.len() != len(model) {
			t.Fatalf("seed %d: %d associations, want %d", seed, table.len(), len(model))
		}
	}
	for tag, a := range model {
		if table.get(tag) != a {
			t.Fatalf("seed %d: tag %#x was lost", seed, tag)
		}
		table.remove(tag)
	}
	for i, s := range table.slots {
		if s.a != nil {
			t.Fatalf("seed %d: slot %d is in use after all were removed", seed, i)
		}
	}
}

// TestTagTableIsSparse checks that a table of random tags is found in short time.
func TestTagTableIsSparse(t *testing.T) {
	var table tagTable
	rnd, a := rand.New(rand.NewPCG(1, 2)), new(Association)
	for table.len() < 10_000 {
		if tag := rnd.Uint32(); table.get(tag) == nil {
			table.put(tag, a)
		}
	}
	steps := 0
	for i, s := range table.slots {
		if s.a != nil {
			steps += 1 + int((uint32(i)-s.tag)&uint32(len(table.slots)-1))
		}
	}
	if mean := float64(steps) / float64(table.len()); mean > 1.6 {
		t.Errorf("%.2f slots looked at for an association", mean)
	}
	if len(table.slots) > 4*table.len() {
		t.Errorf("%d slots for %d associations", len(table.slots), table.len())
	}
}
