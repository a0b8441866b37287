package sctp_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// Associations over a connection can be in upcall mode, on either side and where both open it.
func TestOverConnWithUpcalls(t *testing.T) {
	for name, both := range map[string]bool{"client and server": false, "two clients": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := sctptest.NewNetwork(1)
				defer network.Close()
				a, b := network.NewConns(sctptest.Link{Delay: time.Millisecond}, sctptest.Link{Delay: time.Millisecond})
				got := make(chan string, 1)
				cfg := func() *sctp.ConnConfig {
					return &sctp.ConnConfig{Config: &sctp.Config{OnAssociation: func(*sctp.Association) {},
						OnPiece: func(_ *sctp.Association, p *sctp.Piece) { got <- string(p.Data) }}}
				}
				open := sctp.Server
				if both {
					open = sctp.Client
				}
				opened := make(chan *sctp.Association, 1)
				go func() {
					z, err := open(t.Context(), b, cfg())
					if err != nil {
						t.Error(err)
					}
					opened <- z
				}()
				x, err := sctp.Client(t.Context(), a, cfg())
				if err != nil {
					t.Fatal(err)
				}
				z := <-opened
				if err := z.Send(t.Context(), []byte("hello"), sctp.SendOptions{}); err != nil {
					t.Fatal(err)
				}
				if s := <-got; s != "hello" {
					t.Errorf("received %q", s)
				}
				x.Abort("enough")
				<-z.Done()
				<-x.Done()
			})
		})
	}
}

// Server waits for the peer until its context is done.
func TestServerOverConnWithoutPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := sctptest.NewNetwork(1)
		defer network.Close()
		a, _ := network.NewConns(sctptest.Link{}, sctptest.Link{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := sctp.Server(ctx, a, nil); err == nil {
			t.Error("opened without a peer")
		}
	})
}
