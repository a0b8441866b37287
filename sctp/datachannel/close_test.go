package datachannel_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/datachannel"
)

// RFC 8831, Section 6.7: what was sent before Close is delivered, both streams are reset, and the
// number is used again.
func TestCloseAndReuse(t *testing.T) {
	for _, closer := range []string{"opener", "acceptor", "both"} {
		bubble(t, closer, func(t *testing.T) {
			link := delay
			link.Loss = 0.05
			p := newPair(t, link, end{}, end{})
			for round := range 20 {
				a, b := p.open(t, datachannel.Options{Unordered: round%2 == 1})
				if a.ID() != 0 {
					t.Fatalf("round %d: number %d, want 0 again", round, a.ID())
				}
				from, to := a, b
				if closer == "acceptor" {
					from, to = b, a
				}
				for i := range 50 {
					send(t, from, fmt.Sprint(round, i))
				}
				if closer == "both" {
					send(t, to, "discarded")
					if err := to.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if err := from.Close(); err != nil {
					t.Fatal(err)
				}
				wantErr(t, "second Close", from.Close(), datachannel.ErrClosed)
				wantErr(t, "send", from.Send(t.Context(), nil), datachannel.ErrClosed)
				_, err := from.Recv(t.Context(), nil)
				wantErr(t, "receive", err, datachannel.ErrClosed)
				if closer != "both" {
					got := map[string]bool{}
					for range 50 {
						m, err := to.Recv(t.Context(), nil)
						if err != nil {
							t.Fatal(err)
						}
						got[string(m.Data)] = true
					}
					for i := range 50 {
						if !got[fmt.Sprint(round, i)] {
							t.Errorf("round %d: message %d is missing", round, i)
						}
					}
					wantEOF(t, to)
					wantErr(t, "send on a channel that the peer closed", to.Send(t.Context(), nil), datachannel.ErrClosed)
				}
				wantClosed(t, a, nil)
				wantClosed(t, b, nil)
			}
			if a, b := p.a.Stats(), p.b.Stats(); a.Channels != 0 || b.Channels != 0 || a.Violations+b.Violations != 0 {
				t.Errorf("%+v\n%+v", a, b)
			}
		})
	}
}

// A channel that was closed before the peer has accepted it still delivers what was sent.
func TestCloseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, delay, end{}, end{})
		a, err := p.a.Open(t.Context(), "short", datachannel.Options{})
		if err != nil {
			t.Fatal(err)
		}
		send(t, a, "hello")
		a.Close()
		wantClosed(t, a, nil)
		b, err := p.b.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantText(t, b, "hello")
		wantEOF(t, b)
		wantClosed(t, b, nil)
	})
}

// The end of the association is the end of all channels, with its error.
func TestEndOfTheAssociation(t *testing.T) {
	for _, graceful := range []bool{true, false} {
		bubble(t, fmt.Sprintf("graceful=%v", graceful), func(t *testing.T) {
			p := newPair(t, delay, end{}, end{})
			a, b := p.open(t, datachannel.Options{})
			send(t, a, "last")
			time.Sleep(time.Second)
			var want error
			if graceful {
				if err := p.a.Association().Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else {
				p.a.Association().Abort("enough")
				want = p.a.Association().Err()
			}
			wantText(t, b, "last")
			wantClosed(t, a, want)
			_, err := b.Recv(t.Context(), nil)
			<-p.b.Done()
			if (p.b.Err() == nil) != graceful || (b.Err() == nil) != graceful || err == nil {
				t.Errorf("session %v, channel %v, receive %v", p.b.Err(), b.Err(), err)
			}
			_, err = p.b.Accept(t.Context())
			if err == nil {
				t.Error("accepted a channel of an association that has ended")
			}
			if _, err = p.b.Open(t.Context(), "", datachannel.Options{}); err == nil {
				t.Error("opened a channel of an association that has ended")
			}
			if err := b.Send(t.Context(), nil); err == nil {
				t.Error("sent on an association that has ended")
			}
		})
	}
}

// A peer that restarts knows no channels any more: all end, and new ones can be opened.
func TestRestartOfThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, delay, end{}, end{})
		_, b := p.open(t, datachannel.Options{})
		closing, _ := p.b.Open(t.Context(), "closing", datachannel.Options{})
		p.net.Cut(addrA, addrB)
		closing.Close()
		p.transports[0].Close()
		p.net.Restore(addrA, addrB)
		sessions := make(chan *datachannel.Session, 1)
		e := end{dc: datachannel.Config{Role: datachannel.Client}}
		ep := e.endpoint(t, transport(t, p.hosts[0]), sessions)
		again, err := ep.Connect(t.Context(), p.b.Association().LocalAddr())
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Recv(t.Context(), nil)
		wantErr(t, "receive", err, sctp.ErrRestart)
		wantClosed(t, b, sctp.ErrRestart)
		wantClosed(t, closing, sctp.ErrRestart)
		p.a = <-sessions
		if datachannel.From(again) != p.a {
			t.Error("not the session of the association")
		}
		c, d := p.open(t, datachannel.Options{})
		send(t, c, "again")
		wantText(t, d, "again")
		e2, err := p.b.Open(t.Context(), "again", datachannel.Options{})
		if err != nil || e2.ID() != 1 {
			t.Errorf("%v, %v", e2, err)
		}
	})
}
