package datachannel_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/datachannel"
	"github.com/weftstack/weft/sctp/sctptest"
)

func TestConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := sctptest.NewNetwork(1)
		defer network.Close()
		link := sctptest.Link{Delay: 5 * time.Millisecond, Loss: 0.02}
		ca, cb := network.NewConns(link, link)
		server := make(chan *datachannel.Session, 1)
		go func() {
			s, err := datachannel.Connect(t.Context(), cb, datachannel.Config{Role: datachannel.Server}, nil)
			if err != nil {
				t.Error(err)
			}
			server <- s
		}()
		a, err := datachannel.Connect(t.Context(), ca, datachannel.Config{Role: datachannel.Client}, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := &pair{a: a, b: <-server}
		x, y := p.open(t, datachannel.Options{})
		testMessages(t, x, y, 64<<10)
		testMessages(t, y, x, 64<<10)
		x.Close()
		wantClosed(t, y, nil)
		z, w := p.open(t, datachannel.Options{})
		ca.Close() // the connection ends
		<-z.Done()
		<-a.Done()
		if z.Err() == nil || a.Err() == nil {
			t.Errorf("the channel ended by %v, the session by %v", z.Err(), a.Err())
		}
		p.b.Association().Abort("no connection")
		<-w.Done()
	})
}

func TestConnectWithoutARole(t *testing.T) {
	network := sctptest.NewNetwork(1)
	defer network.Close()
	ca, _ := network.NewConns(sctptest.Link{}, sctptest.Link{})
	_, err := datachannel.Connect(t.Context(), ca, datachannel.Config{}, nil)
	wantErr(t, "Connect", err, datachannel.ErrConfig)
	if _, err := ca.Write([]byte{1}); err == nil {
		t.Error("the connection was not closed")
	}
}

// Two sides with the same role learn why they cannot open channels, whether one of them does or both do.
func TestSameRole(t *testing.T) {
	for _, role := range []datachannel.Role{datachannel.Client, datachannel.Server} {
		for _, both := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				network := sctptest.NewNetwork(1)
				defer network.Close()
				link := sctptest.Link{Delay: 5 * time.Millisecond}
				ca, cb := network.NewConns(link, link)
				other := make(chan *datachannel.Session, 1)
				go func() {
					s, err := datachannel.Connect(t.Context(), cb, datachannel.Config{Role: role}, nil)
					if err != nil {
						t.Error(err)
					}
					other <- s
				}()
				a, err := datachannel.Connect(t.Context(), ca, datachannel.Config{Role: role}, nil)
				if err != nil {
					t.Fatal(err)
				}
				b := <-other
				open := func(s *datachannel.Session) *datachannel.Channel {
					c, err := s.Open(t.Context(), "same", datachannel.Options{})
					if err != nil {
						t.Fatal(err)
					}
					return c
				}
				channels := []*datachannel.Channel{open(a)}
				if both {
					channels = append(channels, open(b))
				}
				for _, c := range channels {
					err := c.WaitOpen(t.Context())
					if err == nil || !strings.Contains(err.Error(), "both") || !strings.Contains(err.Error(), "Role "+role.String()) {
						t.Errorf("both open: %v: WaitOpen = %v, want an error that names the role", both, err)
					}
					if _, err := c.Recv(t.Context(), nil); !errors.Is(err, c.Err()) {
						t.Errorf("Recv = %v, want the reason %v", err, c.Err())
					}
				}
				if st := b.Stats(); st.Violations != 1 {
					t.Errorf("%d violations, want 1", st.Violations)
				}
				a.Association().Abort("")
				<-b.Done()
			})
		}
	}
}
