package p2p

import (
	"testing"
)

func TestIDs(t *testing.T) {
	var x IDTable
	p, q := new(Peer), new(Peer)
	a, b := new(Request), new(Request)
	ia, ib := x.Add(a, p), x.Add(b, q)
	if x.Remove(ia, q) != nil || x.Remove(0, p) != nil || x.Remove(1<<40, p) != nil || x.Remove(77, p) != nil {
		t.Error("an id of nobody names a request")
	}
	if x.Remove(ia, p) != a || x.Remove(ia, p) != nil {
		t.Error("id does not name its request once")
	}
	ic := x.Add(b, p)
	if ic == ia || x.Remove(ia, p) != nil {
		t.Error("old id names a new request")
	}
	if got := x.RemoveAll(p); len(got) != 1 || got[0] != b || x.Len() != 1 || x.Remove(ib, q) != b {
		t.Error("requests of one peer")
	}
}
