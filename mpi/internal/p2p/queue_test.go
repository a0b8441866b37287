package p2p

import (
	"math/rand/v2"
	"testing"
)

func TestTable(t *testing.T) {
	var x Table
	model := map[Key][]*Elem{}
	rng := rand.New(rand.NewPCG(7, 8))
	var all []*Elem
	for range 20_000 {
		if k := (Key{Src: int32(rng.IntN(30)) - 1, Tag: int32(rng.IntN(60)) - 1}); rng.IntN(5) < 3 || len(all) == 0 {
			e := new(Elem)
			x.Push(k, e)
			model[k] = append(model[k], e)
			all = append(all, e)
		} else {
			i := rng.IntN(len(all))
			e := all[i]
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
			k := e.Queue.Key
			x.Remove(e)
			x.Remove(e) // harmless
			for j, f := range model[k] {
				if f == e {
					model[k] = append(model[k][:j], model[k][j+1:]...)
					break
				}
			}
		}
	}
	for k, es := range model {
		e := x.Head(k)
		for _, want := range es {
			if e != want {
				t.Fatalf("key %v: wrong element", k)
			}
			e = e.Next
		}
		if e != nil {
			t.Fatalf("key %v: too many elements", k)
		}
	}
	n := 0
	x.Each(func(e *Elem) { x.Remove(e); n++ })
	if n != len(all) || x.Len != 0 || x.Free > MaxFreeQueues {
		t.Errorf("%d elements removed of %d, %d queues left, %d kept", n, len(all), x.Len, x.Free)
	}
}

// Receives that are posted again are before all younger ones, whatever is in between.
func TestInsertOrdered(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		var tab Table
		rs := make([]*Request, 1+rng.IntN(6))
		for i := range rs {
			rs[i] = &Request{Order: uint64(i)}
			rs[i].Elem.Request = rs[i]
		}
		k := Key{Src: 1, Tag: 2}
		for _, i := range rng.Perm(len(rs)) {
			tab.InsertOrdered(k, &rs[i].Elem)
		}
		for _, i := range rng.Perm(len(rs))[:len(rs)/2] {
			tab.Remove(&rs[i].Elem)
			tab.InsertOrdered(k, &rs[i].Elem)
		}
		for i := range rs {
			el := tab.Head(k)
			if el == nil || el.Request != rs[i] {
				t.Fatalf("element %d is not next", i)
			}
			tab.Remove(el)
		}
		if tab.Len != 0 {
			t.Fatal("the table is not empty")
		}
	}
}
