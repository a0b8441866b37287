package core

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// The addresses of an end become what they are to be, in any order of changes: also
// when none of them stays, and there are more than one ASCONF takes.
func TestFollowLocalAddrs(t *testing.T) {
	p := newMobile(t, 590)
	first := p.a.local[0]
	many := func(net byte) (list []netip.AddrPort) {
		for i := range byte(12) {
			list = append(list, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, net, 0, 10 + i}), first.Port()))
		}
		return list
	}
	for n, want := range [][]netip.AddrPort{
		{first}, {first, extra[0]}, {extra[0]}, {extra[1]}, {extra[2], extra[1]}, many(5), many(6), many(6)[3:5], {first},
	} {
		done := false
		for tries := 0; !done && tries < 20; tries++ {
			done = p.a.assoc.FollowLocalAddrs(want)
			p.drive()
			p.advance(time.Second)
		}
		got := slices.Clone(p.a.assoc.local.InUse)
		slices.SortFunc(got, netip.AddrPort.Compare)
		slices.SortFunc(want, netip.AddrPort.Compare)
		if !done || !slices.Equal(got, want) {
			t.Fatalf("step %d: done %v, has %v, want %v", n, done, got, want)
		}
		p.z.wantRemotes(want...)
		if p.a.assoc.asc.Pending() > 0 {
			t.Fatalf("step %d: there are changes under way", n)
		}
		if !p.a.assoc.FollowLocalAddrs(want) || p.a.assoc.asc.Pending() > 0 {
			t.Errorf("step %d: what is so is asked for again", n)
		}
		p.a.send(0, 1000)
		p.z.send(0, 1000)
		p.drive()
	}
	p.wantDelivered()
}

// Nothing is asked for of a peer that cannot change addresses, nor when the sockets
// take all; before the association is up, and as long as changes are under way, it is
// to be asked for later.
func TestFollowLocalAddrsOrNot(t *testing.T) {
	p := newMobile(t, 591)
	a := p.a.assoc
	if _, err := a.AddLocalAddr(extra[0]); err != nil {
		t.Fatal(err)
	}
	if a.FollowLocalAddrs(extra[1:2]) || a.asc.Pending() != 1 {
		t.Error("changes are asked for while others are under way")
	}
	p.advance(time.Second)
	a.local.Add(addrPort("0.0.0.0:9899"))
	if !a.FollowLocalAddrs(extra[1:2]) || a.asc.Pending() > 0 {
		t.Error("a socket takes packets to all addresses")
	}
	q := newMobile(t, 592, mobileConfig(), fastConfig())
	if !q.a.assoc.FollowLocalAddrs(extra[:1]) || q.a.assoc.asc.Pending() > 0 {
		t.Error("the peer cannot change addresses")
	}
	r := newPair(t, 593, mobileConfig())
	r.z.listen()
	r.a.dial(r.z)
	if r.a.assoc.FollowLocalAddrs(extra[:1]) {
		t.Error("not established, and done")
	}
}

// The addresses of the peer that seemed dead are tried at once: with another address
// of ours they may be reached.
func TestFollowProbesPaths(t *testing.T) {
	p := newMultihomed(t, 594, mobileConfig())
	p.connect()
	p.confirmAll()
	p.drive()
	a := p.a.assoc
	a.paths[1].active = false
	a.FollowLocalAddrs(append(slices.Clone(p.a.local), extra[0]))
	p.advance(100 * time.Millisecond)
	if !a.paths[1].active {
		t.Error("the path that was inactive was not tried")
	}
}
