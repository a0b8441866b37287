package core

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// confirmAll lets time pass until every path of both ends is confirmed.
func (p *pair) confirmAll() {
	p.t.Helper()
	if !p.driveUntil(time.Minute, func() bool {
		for _, h := range []*host{p.a, p.z} {
			for i := range h.assoc.paths {
				if !h.assoc.paths[i].confirmed {
					return false
				}
			}
		}
		return true
	}) {
		p.t.Fatal("paths are not confirmed after a minute")
	}
}

// RFC 7829, Section 3.2, rules 2, 3 and 5 to 7: with PFMR = 0 the first timeout
// sends data to the other path, the primary one is probed each RTO, and the
// first answer brings the data back.
func TestQuickFailover(t *testing.T) {
	p := newMultihomed(t, 500, fastConfig())
	p.connect()
	p.confirmAll()
	p.advance(5 * time.Second) // let the RTO converge
	a := p.a.assoc
	p.net.cut[p.z.local[0]] = true
	start := p.now
	p.a.send(0, 50_000)
	if !p.driveUntil(time.Minute, func() bool { return a.paths[0].pf }) {
		t.Fatal("the primary path is not potentially failed")
	}
	if d := time.Duration(p.now - start); d > 250*time.Millisecond {
		t.Errorf("potentially failed after %v, want one RTO", d)
	}
	if e := p.a.wantEvent(EventPathFailed); e.Addr != p.z.local[0] {
		t.Errorf("potentially failed: %v", e.Addr)
	}
	if st := a.PathStats(0); !st.PotentiallyFailed || !st.Active || st.Errors != 1 {
		t.Errorf("stats of the primary path: %+v", st)
	}
	if a.dataPath() != 1 {
		t.Errorf("data goes to path %d, want 1", a.dataPath())
	}
	p.drive()
	p.wantDelivered()
	// "HEARTBEAT chunks are sent to destination addresses in PF state once per
	// RTO", which doubles each time.
	var at []clock.Time
	p.net.drop = func(from *host, pkt []byte) bool {
		if from == p.a && hasChunk(pkt, wire.ChunkHeartbeat) && p.now > start {
			at = append(at, p.now)
		}
		return false
	}
	p.driveUntil(time.Minute, func() bool { return a.paths[0].errors == 4 })
	if len(at) < 2 {
		t.Fatalf("heartbeats at %v", at)
	}
	p.a.wantNoEvent(EventPathDown)
	p.net.cut[p.z.local[0]] = false
	if !p.driveUntil(20*time.Second, func() bool { return !a.paths[0].pf }) {
		t.Fatal("the primary path is not active again")
	}
	if e := p.a.wantEvent(EventPathUp); e.Addr != p.z.local[0] {
		t.Errorf("path up: %v", e.Addr)
	}
	if a.dataPath() != 0 || a.paths[0].errors != 0 {
		t.Errorf("data goes to path %d, %d errors", a.dataPath(), a.paths[0].errors)
	}
}

// Rule 8: "Additional PMR - PFMR consecutive timeouts on a destination address in
// PF state confirm the path failure". No T3 is needed: heartbeats find out.
func TestPotentiallyFailedBecomesInactive(t *testing.T) {
	cfg := fastConfig()
	cfg.PFMaxRetrans = 1
	p := newMultihomed(t, 501, cfg)
	p.connect()
	p.confirmAll()
	p.net.cut[p.z.local[1]] = true
	a := p.a.assoc
	if !p.driveUntil(time.Minute, func() bool { return a.paths[1].pf }) {
		t.Fatal("not potentially failed")
	}
	if n := a.paths[1].errors; n != 2 {
		t.Errorf("potentially failed with %d errors, want 2 = PFMR + 1", n)
	}
	since := p.now
	if !p.driveUntil(time.Minute, func() bool { return !a.paths[1].active }) {
		t.Fatal("not inactive")
	}
	if n := a.paths[1].errors; n != DefaultPathMaxRetrans+1 {
		t.Errorf("inactive with %d errors, want PMR + 1", n)
	}
	// RTO 100, 200, 400 ms … from the third on, without heartbeat intervals.
	if d := time.Duration(p.now - since); d > 8*time.Second {
		t.Errorf("%v from potentially failed to inactive", d)
	}
	p.a.wantEvent(EventPathDown)
	if a.errors != 0 {
		t.Errorf("%d errors of the association, want none: data takes another path", a.errors)
	}
}

// Heartbeats are not sent to a potentially failed path if they are off for it
// (rule 5), and a path with PFMR off is left only when it is inactive.
func TestHeartbeatsAndPFCanBeOff(t *testing.T) {
	cfg := fastConfig()
	cfg.PFMaxRetrans = -1
	p := newMultihomed(t, 502, cfg)
	p.connect()
	p.confirmAll()
	a := p.a.assoc
	par, err := a.PathParams(p.z.local[0])
	if err != nil || par.PFMaxRetrans != -1 || par.HBInterval != time.Second || par.MaxRetrans != DefaultPathMaxRetrans || par.MTU != DefaultMTU {
		t.Fatalf("parameters %+v, %v", par, err)
	}
	p.net.cut[p.z.local[0]] = true
	p.driveUntil(10*time.Minute, func() bool { return a.paths[0].errors > 3 })
	if a.paths[0].pf {
		t.Fatal("potentially failed although PFMR is off")
	}
	par.HBInterval, par.PFMaxRetrans = -1, 0
	if err := a.SetPathParams(p.now, p.z.local[0], par); err != nil {
		t.Fatal(err)
	}
	p.net.cut[p.z.local[0]] = false
	a.RequestHeartbeat(p.now, p.z.local[0]) // on request they are sent
	p.driveUntil(time.Minute, func() bool { return a.paths[0].errors == 0 })
	p.net.cut[p.z.local[0]] = true
	p.a.send(0, 1000)
	p.drive()
	if !a.paths[0].pf {
		t.Fatal("not potentially failed")
	}
	n := a.PathStats(0).Heartbeats
	p.advance(time.Hour)
	if got := a.PathStats(0).Heartbeats; got != n {
		t.Errorf("%d heartbeats to a path that wants none", got-n)
	}
	if err := a.SetPathParams(p.now, addrPort("10.9.9.9:9"), par); err != ErrPath {
		t.Errorf("parameters of no path: %v", err)
	}
}

// RFC 7829, Section 3.2, rule 4: if all are potentially failed, "the sender
// SHOULD choose the destination in PF state with the lowest error count"; Section
// 4.1: the same in dormant state, for which counters go on to a limit.
func TestFewestErrorsCarryData(t *testing.T) {
	p := newMultihomed(t, 503, fastConfig())
	p.connect()
	p.confirmAll()
	a := p.a.assoc
	a.cfg.AssocMaxRetrans = 1000
	for i, want := range []int{1, 0, 0, 1, 0} { // paths that fail, in turn
		a.pathError(want, false)
		if i == 0 && (a.dataPath() != 0 || a.otherPath(0) != 0 || a.otherPath(1) != 0) {
			t.Fatalf("path %d carries data beside a potentially failed one", a.dataPath())
		}
	}
	if !a.paths[0].pf || !a.paths[1].pf || a.dataPath() != 1 || a.otherPath(0) != 1 {
		t.Fatalf("errors %d and %d: data takes path %d", a.paths[0].errors, a.paths[1].errors, a.dataPath())
	}
	for range 4 {
		a.pathError(1, false)
	}
	if a.paths[1].active || a.dataPath() != 0 {
		t.Errorf("path 1 active %v, data on %d: want the one potentially failed before an inactive one", a.paths[1].active, a.dataPath())
	}
	for range 4 {
		a.pathError(0, false)
	}
	if a.paths[0].active || a.dataPath() != 1 {
		t.Errorf("dormant: errors %d and %d, data on %d", a.paths[0].errors, a.paths[1].errors, a.dataPath())
	}
	for range 1000 {
		a.pathError(0, false)
	}
	if want := errorCeiling * (DefaultPathMaxRetrans + 1); a.paths[0].errors != want {
		t.Errorf("the counter stops at %d, want %d", a.paths[0].errors, want)
	}
}

// A dormant association comes back when any path does.
func TestDormantAssociationRecovers(t *testing.T) {
	cfg := fastConfig()
	cfg.AssocMaxRetrans = 100
	cfg.RTOMax = 2 * time.Second
	p := newMultihomed(t, 504, cfg)
	p.connect()
	p.confirmAll()
	for _, h := range []*host{p.a, p.z} {
		p.net.cut[h.local[0]], p.net.cut[h.local[1]] = true, true
	}
	p.a.send(0, 20_000)
	p.advance(time.Minute)
	if a := p.a.assoc; a.paths[0].active || a.paths[1].active {
		t.Fatal("paths are active although all is cut")
	}
	p.net.cut[p.a.local[1]], p.net.cut[p.z.local[1]] = false, false
	start := p.now
	p.drive()
	p.wantDelivered()
	if d := time.Duration(p.now - start); d > 10*time.Second {
		t.Errorf("the transfer went on after %v", d)
	}
}

// With one path there is nothing to fail over to, and nothing is potentially
// failed.
func TestSinglePathIsNeverPotentiallyFailed(t *testing.T) {
	p := newPair(t, 505, fastConfig())
	p.connect()
	p.net.drop = func(*host, []byte) bool { return true }
	p.a.send(0, 1000)
	p.advance(time.Second)
	p.a.wantNoEvent(EventPathFailed)
	if st := p.a.assoc.PathStats(0); st.PotentiallyFailed || st.Errors == 0 || st.Timeouts == 0 {
		t.Errorf("stats %+v", st)
	}
}

// RFC 7829, Section 5, rules 2 and 3: "When the path error counter on a set
// primary path exceeds PSMR, the SCTP implementation MUST autonomously select
// and set a new primary path", and does not go back.
func TestPrimaryPathSwitchover(t *testing.T) {
	cfg := fastConfig()
	cfg.SwitchPrimary, cfg.SwitchMaxRetrans = true, 2
	p := newMultihomed(t, 506, cfg)
	p.connect()
	p.confirmAll()
	p.net.cut[p.z.local[0]] = true
	p.a.send(0, 30_000)
	p.drive()
	p.wantDelivered()
	a := p.a.assoc
	p.a.wantNoEvent(EventPrimary)
	if !p.driveUntil(time.Minute, func() bool { return a.paths[0].errors > 2 }) {
		t.Fatal("too few errors")
	}
	if e := p.a.wantEvent(EventPrimary); e.Addr != p.z.local[1] || !a.PathStats(1).Primary {
		t.Errorf("primary path %v", e.Addr)
	}
	p.net.cut[p.z.local[0]] = false
	p.advance(time.Minute)
	if !a.paths[0].usable() || a.dataPath() != 1 {
		t.Errorf("path 0 usable %v, data on path %d; want true, 1", a.paths[0].usable(), a.dataPath())
	}
	// Rule 1: "the PSMR MUST be set greater than or equal to the PFMR value".
	if c := (&Config{PFMaxRetrans: 3}).withDefaults(); c.SwitchMaxRetrans != 3 {
		t.Errorf("PSMR = %d with PFMR = 3", c.SwitchMaxRetrans)
	}
	if c := (&Config{PFMaxRetrans: -1}).withDefaults(); c.SwitchMaxRetrans != DefaultPathMaxRetrans {
		t.Errorf("PSMR = %d without potentially failed paths, want PMR", c.SwitchMaxRetrans)
	}
}

// Packets to an address leave by the local address most like it; if that does
// not work, by another one (RFC 9260, Section 6.4.1).
func TestLocalAddressOfPaths(t *testing.T) {
	a := &Assoc{}
	for _, s := range []string{"10.0.0.1:1", "10.1.0.1:2", "192.168.7.1:3", "[fd00::1]:4", "[fd01::1]:5"} {
		a.local.InUse = append(a.local.InUse, addrPort(s))
	}
	for _, tc := range []struct {
		i            int
		remote, want string
	}{
		{0, "10.1.0.9", "10.1.0.1:2"}, {1, "10.0.0.9", "10.0.0.1:1"}, {2, "192.168.9.9", "192.168.7.1:3"},
		{3, "fd01::9", "[fd01::1]:5"}, {4, "fd00::9", "[fd00::1]:4"},
		{0, "200.0.0.1", "192.168.7.1:3"},
	} {
		if got := a.local.For(tc.i, netip.MustParseAddr(tc.remote)); got != addrPort(tc.want) {
			t.Errorf("to %s: from %v, want %s", tc.remote, got, tc.want)
		}
	}
	a.local.InUse = a.local.InUse[:2]
	if x, y := a.local.For(0, netip.MustParseAddr("200.0.0.1")), a.local.For(1, netip.MustParseAddr("200.0.0.2")); x == y {
		t.Errorf("paths to a remote network both leave by %v", x)
	}
	// Every third failure another one is tried, in turn.
	a.local.InUse = append(a.local.InUse, addrPort("10.2.0.1:6"), addrPort("[fd00::1]:4"))
	a.paths = []path{{home: a.local.InUse[0], confirmed: true, Tuple: Tuple{Local: a.local.InUse[0], Remote: addrPort("10.0.0.9:9")}}}
	for i, want := range []int{0, 0, 1, 0, 0, 2, 0, 0, 1} {
		a.paths[0].errors = i + 1
		a.paths[0].tryLocal(&a.local)
		if got := a.paths[0].Local; got != a.local.InUse[want] {
			t.Errorf("after %d failures by %v, want %v", i+1, got, a.local.InUse[want])
		}
	}
}

// RFC 9260, Section 7.2.5.2: another source address is a change of routes, and
// "the congestion control parameters for the affected destination addresses MUST
// be reset to their initial values".
func TestAnotherSourceAddressResetsCongestionControl(t *testing.T) {
	fresh := func(name string, x *path) {
		t.Helper()
		control := cc.New(cc.Config{Algorithm: cc.Cubic}, x.pmdcs())
		if x.cc.Cwnd() != control.Cwnd() || x.cc.Ssthresh() != control.Ssthresh() {
			t.Errorf("%s: cwnd %d and ssthresh %d, want %d and %d", name, x.cc.Cwnd(), x.cc.Ssthresh(), control.Cwnd(), control.Ssthresh())
		}
	}
	// The user replaces the address.
	p := newMobile(t, 511)
	p.a.send(0, 300_000)
	p.drive()
	x := &p.a.assoc.paths[0]
	if w := x.cc.Cwnd(); w < 10_000 {
		t.Fatalf("cwnd is %d after a transfer", w)
	}
	p.a.wantDone(p.a.must(p.a.assoc.ReplaceLocalAddr(p.a.local[0], extra[0])), nil)
	fresh("address replaced", x)
	// Nothing passes any more between the two addresses, and heartbeats find out
	// that another one works.
	p = newMultihomed(t, 512, fastConfig())
	p.connect()
	p.confirmAll()
	p.a.send(0, 300_000)
	p.drive()
	x = &p.a.assoc.paths[0]
	was := x.Tuple
	p.net.deaf = func(pkt *Packet) bool {
		return pkt.Local == was.Remote && pkt.Remote == was.Local || pkt.Remote == was.Remote && pkt.Local == was.Local
	}
	p.a.send(0, 3000)
	if !p.driveUntil(time.Hour, func() bool { return x.home != was.Local }) {
		t.Fatal("no other source address was found")
	}
	fresh("address found", x)
}

// A path whose prefix misled us is confirmed by another local address.
func TestMisleadingPrefix(t *testing.T) {
	p := newMultihomed(t, 507, fastConfig())
	p.z.local[1] = addrPort("10.0.0.130:9899") // looks like the first network
	bad := Tuple{Local: p.a.local[0], Remote: p.z.local[1]}
	p.net.deaf = func(pkt *Packet) bool {
		return pkt.Local == bad.Remote && pkt.Remote == bad.Local || pkt.Remote == bad.Remote && pkt.Local == bad.Local
	}
	p.connect()
	p.confirmAll()
	if got := p.a.assoc.PathStats(1).Local; got != p.a.local[1] {
		t.Errorf("path 1 leaves by %v, want %v", got, p.a.local[1])
	}
}

// IPv4 and IPv6 addresses make one association (RFC 9260, Section 5.1.2).
func TestBothFamiliesInOneAssociation(t *testing.T) {
	p := newMultihomed(t, 508, fastConfig())
	p.a.local[1], p.z.local[1] = addrPort("[fd00::1]:9899"), addrPort("[fd00::2]:9899")
	p.connect()
	p.confirmAll()
	for _, h := range []*host{p.a, p.z} {
		for i := range 2 {
			if st := h.assoc.PathStats(i); st.Local.Addr().Is4() != st.Remote.Addr().Is4() || st.Remote.Addr().Is4() != (i == 0) {
				t.Errorf("%s: path %d from %v to %v", h.name, i, st.Local, st.Remote)
			}
		}
	}
	p.a.send(0, 100_000)
	p.z.send(0, 100_000)
	p.advance(10 * time.Millisecond)
	p.net.cut[p.z.local[0]], p.net.cut[p.a.local[0]] = true, true
	p.drive()
	p.wantDelivered()
	if st := p.a.assoc.PathStats(1); st.BytesSent == 0 {
		t.Errorf("IPv6 path: %+v", st)
	}
}
