package p2p

import (
	"testing"
)

func TestIDs(t *testing.T) {
	var x idTable
	p, q := new(Peer), new(Peer)
	a, b := new(Request), new(Request)
	ia, ib := x.Add(a, p), x.Add(b, q)
	if x.remove(ia, q) != nil || x.remove(0, p) != nil || x.remove(1<<40, p) != nil || x.remove(77, p) != nil {
		t.Error("an id of nobody names a request")
	}
	if x.remove(ia, p) != a || x.remove(ia, p) != nil {
		t.Error("id does not name its request once")
	}
	ic := x.Add(b, p)
	if ic == ia || x.remove(ia, p) != nil {
		t.Error("old id names a new request")
	}
	if got := x.removeAll(p); len(got) != 1 || got[0] != b || x.Len() != 1 || x.remove(ib, q) != b {
		t.Error("requests of one peer")
	}
}
