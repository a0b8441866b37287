package datachannel_test

import (
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
