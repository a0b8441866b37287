package core

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// RFC 6951, Section 5.5: Port Unreachable is like Protocol Unreachable, for one address.
// The association ends when the INIT was refused at all addresses that the user gave;
// before, the next address gets it at once.
func TestPortUnreachable(t *testing.T) {
	p := newPair(t, 92, nil)
	other := addrPort("10.1.0.2:9899")
	a := newClient(t, p, []netip.AddrPort{p.z.local[0], other})
	buf := make([]byte, 0, 1<<16)
	sent := func() (to netip.AddrPort, pkt []byte) {
		t.Helper()
		b, tx, ok := a.PollTransmit(p.now, buf, 64)
		if !ok {
			return to, nil
		}
		return tx.Remote, append([]byte(nil), b...)
	}
	to, init := sent()
	if to != p.z.local[0] || wire.ChunkType(init[wire.HeaderLen]) != wire.ChunkInit {
		t.Fatalf("sent to %v: %x", to, init)
	}
	wrong := append([]byte(nil), init...)
	wrong[wire.HeaderLen+wire.ChunkHeaderLen]++
	for _, tc := range []struct {
		name   string
		remote netip.AddrPort
		quoted []byte
	}{
		{"INIT of another", to, wrong},
		{"too short", to, init[:19]},
		{"nothing", to, nil},
		{"another address", addrPort("10.9.0.2:9899"), init},
	} {
		if a.PortUnreachable(p.now, tc.remote, tc.quoted) || a.State() != CookieWait {
			t.Errorf("%s: state %v", tc.name, a.State())
		}
	}
	if to, pkt := sent(); pkt != nil {
		t.Fatalf("sent to %v: %x", to, pkt)
	}
	if !a.PortUnreachable(p.now, to, init) || a.State() != CookieWait {
		t.Errorf("one of two addresses: state %v", a.State())
	}
	if to, pkt := sent(); to != other || pkt == nil {
		t.Fatalf("the INIT went to %v, want %v", to, other)
	}
	if at := a.NextTimeout(); at == 0 || at > p.now+clock.Time(time.Minute) {
		t.Errorf("T1 is at %v", at)
	}
	if !a.PortUnreachable(p.now, p.z.local[0], init) || a.State() != CookieWait {
		t.Errorf("the first one again: state %v", a.State())
	}
	if !a.PortUnreachable(p.now, other, init) || a.State() != Closed {
		t.Errorf("both: state %v", a.State())
	}
	if a.PortUnreachable(p.now, other, init) {
		t.Error("it ended twice")
	}

	p = newPair(t, 93, nil)
	p.connect()
	up := p.a.assoc
	quoted := wire.AppendInit(wire.AppendHeader(nil, wire.Header{SrcPort: portA, DstPort: portZ}), wire.Init{Tag: up.Tag(), RWND: 9999, OutStreams: 1, InStreams: 1})
	if up.PortUnreachable(p.now, p.z.local[0], quoted) || up.State() != Established {
		t.Errorf("established: state %v", up.State())
	}
}

// newClient returns an association that is about to be opened to the addresses.
func newClient(t *testing.T, p *pair, peer []netip.AddrPort) *Assoc {
	t.Helper()
	a := new(Assoc)
	cfg := Config{}
	if err := a.InitClient(&cfg, p.now, ClientParams{LocalPort: portA, PeerPort: portZ, Tag: 7, Local: p.a.local, Peer: peer, Seed: p.seed()}); err != nil {
		t.Fatal(err)
	}
	return a
}
