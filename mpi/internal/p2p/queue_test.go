package p2p

import (
	"math/rand/v2"
	"testing"
)

func TestTable(t *testing.T) {
	var x matchTable
	model := map[matchKey][]*matchElem{}
	rng := rand.New(rand.NewPCG(7, 8))
	var all []*matchElem
	for range 20_000 {
		if k := (matchKey{src: int32(rng.IntN(30)) - 1, tag: int32(rng.IntN(60)) - 1}); rng.IntN(5) < 3 || len(all) == 0 {
			e := new(matchElem)
			x.push(k, e)
			model[k] = append(model[k], e)
			all = append(all, e)
		} else {
			i := rng.IntN(len(all))
			e := all[i]
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
			k := e.queue.key
			x.remove(e)
			x.remove(e) // harmless
			for j, f := range model[k] {
				if f == e {
					model[k] = append(model[k][:j], model[k][j+1:]...)
					break
				}
			}
		}
	}
	for k, es := range model {
		e := x.head(k)
		for _, want := range es {
			if e != want {
				t.Fatalf("key %v: wrong element", k)
			}
			e = e.next
		}
		if e != nil {
			t.Fatalf("key %v: too many elements", k)
		}
	}
	n := 0
	x.each(func(e *matchElem) { x.remove(e); n++ })
	if n != len(all) || x.size != 0 || x.nfree > maxFreeQueues {
		t.Errorf("%d elements removed of %d, %d queues left, %d kept", n, len(all), x.size, x.nfree)
	}
}

// Receives that are posted again are before all younger ones, whatever is in between.
func TestInsertOrdered(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		var tab matchTable
		rs := make([]*Request, 1+rng.IntN(6))
		for i := range rs {
			rs[i] = &Request{order: uint64(i)}
			rs[i].elem.request = rs[i]
		}
		k := matchKey{src: 1, tag: 2}
		for _, i := range rng.Perm(len(rs)) {
			tab.insertOrdered(k, &rs[i].elem)
		}
		for _, i := range rng.Perm(len(rs))[:len(rs)/2] {
			tab.remove(&rs[i].elem)
			tab.insertOrdered(k, &rs[i].elem)
		}
		for i := range rs {
			el := tab.head(k)
			if el == nil || el.request != rs[i] {
				t.Fatalf("element %d is not next", i)
			}
			tab.remove(el)
		}
		if tab.size != 0 {
			t.Fatal("the table is not empty")
		}
	}
}
