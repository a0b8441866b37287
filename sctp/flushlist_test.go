package sctp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core"
)

type released chan struct{}

func (r released) Released(error) { r <- struct{}{} }

// What associations answer to one batch goes in common batches.
func TestAssociationsShareBatches(t *testing.T) {
	cfg := TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}}
	var tr [2]*Transport
	for i := range tr {
		var err error
		if tr[i], err = NewTransport(cfg); err != nil {
			t.Fatal(err)
		}
		defer tr[i].Close()
	}
	if !tr[0].sockets().canPoll {
		t.Skip("what one read returns is not known on this system")
	}
	server, err := tr[1].Listen(0, &Config{OnPiece: func(*Association, *Piece) {}})
	if err != nil {
		t.Fatal(err)
	}
	var as [16]*Association
	for i := range as {
		e, err := tr[0].Listen(0, &Config{MTU: 1500})
		if err != nil {
			t.Fatal(err)
		}
		if as[i], err = e.Connect(t.Context(), server.Addr()); err != nil {
			t.Fatal(err)
		}
	}
	const rounds = 1000
	done := make(released, 2*len(as))
	send := func() {
		for _, a := range as {
			if err := a.Send(t.Context(), make([]byte, 1000), SendOptions{Owner: done}); err != nil {
				t.Fatal(err)
			}
		}
	}
	wait := func(n int) {
		for range n {
			select {
			case <-done:
			case <-time.After(5 * time.Minute):
				t.Fatal("no acknowledgement")
			}
		}
	}
	send()
	wait(len(as)) // the first message is acknowledged at once, then every second
	s := tr[1].sockets().list[0]
	before := tr[1].Stats()
	for range rounds {
		// On a busy machine packets come late, are sent again and acknowledged
		// otherwise.
		if after := tr[1].Stats(); after.Writes-before.Writes < (after.DatagramsSent-before.DatagramsSent)/2 {
			return
		}
		before = tr[1].Stats()
		s.mu.Lock() // the server reads nothing yet
		send()
		send()
		s.mu.Unlock()
		wait(2 * len(as))
	}
	t.Errorf("no packets shared a write in %d rounds", rounds)
}

func TestPacketsThatJoin(t *testing.T) {
	at := func(s string) core.Tuple {
		return core.Tuple{Local: netip.MustParseAddrPort("10.0.0.1:9899"), Remote: netip.MustParseAddrPort(s)}
	}
	here, there := at("10.0.0.2:9899"), at("10.0.0.3:9899")
	for _, tt := range []struct {
		name string
		a    core.Transmit
		n    int
		b    core.Transmit
		want bool
	}{
		{"equal", core.Transmit{Tuple: here, SegSize: 28, Segs: 2}, 56, core.Transmit{Tuple: here, SegSize: 28, Segs: 3}, true},
		{"shorter", core.Transmit{Tuple: here, SegSize: 28, Segs: 2}, 56, core.Transmit{Tuple: here, SegSize: 20, Segs: 1}, true},
		{"several shorter", core.Transmit{Tuple: here, SegSize: 28, Segs: 2}, 56, core.Transmit{Tuple: here, SegSize: 20, Segs: 2}, false},
		{"longer", core.Transmit{Tuple: here, SegSize: 28, Segs: 2}, 56, core.Transmit{Tuple: here, SegSize: 32, Segs: 1}, false},
		{"after a shorter", core.Transmit{Tuple: here, SegSize: 28, Segs: 2}, 48, core.Transmit{Tuple: here, SegSize: 28, Segs: 1}, false},
		{"elsewhere", core.Transmit{Tuple: here, SegSize: 28, Segs: 2}, 56, core.Transmit{Tuple: there, SegSize: 28, Segs: 1}, false},
		{"other ECN", core.Transmit{Tuple: here, SegSize: 28, Segs: 1}, 28, core.Transmit{Tuple: here, ECN: 2, SegSize: 28, Segs: 1}, false},
		{"fragmented", core.Transmit{Tuple: here, SegSize: 28, Segs: 1}, 28, core.Transmit{Tuple: here, SegSize: 28, Segs: 1, Fragment: true}, false},
	} {
		if got := canAppend(&tt.a, tt.n, &tt.b); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
