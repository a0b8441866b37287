package sctp_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
)

// TestConnectBothWaysAtOnce opens an association from both ends at the same
// time, over and over. There is one in the end, whichever way the packets cross
// (RFC 9260, Section 5.2), and it carries messages both ways.
func TestConnectBothWaysAtOnce(t *testing.T) {
	for round := range 150 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		var tr [2]*sctp.Transport
		var ep [2]*sctp.Endpoint
		heard := make(chan string, 4)
		for i := range tr {
			var err error
			tr[i], err = sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
			if err != nil {
				t.Fatal(err)
			}
			ep[i], err = tr[i].Listen(0, &sctp.Config{OnPiece: func(_ *sctp.Association, p *sctp.Piece) { heard <- string(p.Data) }})
			if err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		for i := range tr {
			wg.Go(func() {
				// SendTo uses what the other side opened, if that was faster.
				if err := ep[i].SendTo(ctx, ep[1-i].Addr(), []byte{'0' + byte(i)}, sctp.SendOptions{}); err != nil {
					t.Errorf("round %d, side %d: %v", round, i, err)
				}
			})
		}
		wg.Wait()
		for range 2 {
			select {
			case <-heard:
			case <-ctx.Done():
				t.Errorf("round %d: a message is missing", round)
			}
		}
		for i, e := range ep {
			if n := len(e.Associations()); n != 1 {
				t.Errorf("round %d: side %d has %d associations", round, i, n)
			}
			if _, err := e.Connect(ctx, ep[1-i].Addr()); !errors.Is(err, sctp.ErrExists) {
				t.Errorf("round %d: second association: %v", round, err)
			}
		}
		cancel()
		for _, x := range tr {
			x.Close()
		}
		if t.Failed() {
			return
		}
	}
}
