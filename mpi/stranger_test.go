package mpi

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// neverComes is a message that the network of TestStrangersGetLittleBeforeTheyProve loses.
const neverComes = "this message never comes"

// Strangers that connect to a rank, greet it or not, and send as much as they can, get
// little of its memory before they have proved that they know the key of the job, and not
// for long.
func TestStrangersGetLittleBeforeTheyProve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(1)
		defer net.Close()
		net.SetDefault(sctptest.Link{Delay: time.Millisecond})
		net.SetLink("10.0.1.1", "10.0.0.1", sctptest.Link{Delay: time.Millisecond, Filter: func(b []byte) bool {
			return !bytes.Contains(b, []byte(neverComes))
		}})
		pc, err := net.NewHost("10.0.1.1").ListenPacket(":9899")
		if err != nil {
			t.Fatal(err)
		}
		tr, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		err = RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
			c := w.Comm()
			if c.Rank() == 0 {
				if err := visitStrangers(ctx, t, tr, w); err != nil {
					return err
				}
			}
			// The ranks have all that there is.
			msg := make([]byte, 2*DefaultEager)
			_, err := Sendrecv(ctx, c, msg, 1-c.Rank(), 0, make([]byte, len(msg)), 1-c.Rank(), 0)
			for _, a := range associations(w) {
				if st := a.Stats(); st.PeerWindow <= 4*sctp.DefaultProbationBuffer {
					return fmt.Errorf("rank %d: the window of the other is %d", c.Rank(), st.PeerWindow)
				}
			}
			return err
		}, WithTransport(TransportSCTP), WithSpin(0), WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
			pc, err := net.NewHost(fmt.Sprintf("10.0.0.%d", rank+1)).ListenPacket(fmt.Sprintf("10.0.0.%d:9899", rank+1))
			return []sctp.PacketConn{pc}, err
		}))
		if err != nil {
			t.Error(err)
		}
	})
}

// associations returns those of the endpoint of w.
func associations(w *World) []*sctp.Association {
	return w.job.Transport.(interface{ Associations() []*sctp.Association }).Associations()
}

// visitStrangers has strangers visit the rank of w, and looks at what they get.
func visitStrangers(ctx context.Context, t *testing.T, tr *sctp.Transport, w *World) error {
	addr, err := sctp.ParseAddr(w.job.Transport.Addr())
	if err != nil {
		return err
	}
	_, forged := handshake.Connect(handshake.Params{Key: []byte("wrong key"), Self: 1, Size: 2}, 0)
	ranks := len(associations(w))
	var list []*sctp.Association
	for i := range 20 {
		// An association for each peer port.
		ep, err := tr.Listen(0, &sctp.Config{OutStreams: 21, InStreams: 21, MTU: 1500})
		if err != nil {
			return err
		}
		a, err := ep.Connect(ctx, addr)
		if err != nil {
			return err
		}
		list = append(list, a)
		if i%2 == 0 {
			if err := a.Send(ctx, handshake.Frame(forged), sctp.SendOptions{}); err != nil {
				return err
			}
		}
		// What comes behind this message stays in the receive buffer.
		if err := a.TrySend([]byte(neverComes), sctp.SendOptions{Stream: 1}); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
		for range 100 {
			if err := a.TrySend(make([]byte, 1000), sctp.SendOptions{Stream: 1}); err != nil {
				return err
			}
		}
	}
	time.Sleep(handshake.Timeout / 2)
	held := -ranks * 1000 // of their own, at most
	for _, a := range associations(w) {
		held += a.Stats().Readable
	}
	if most := len(list) * 2 * sctp.DefaultProbationBuffer; held > most || held < most/8 {
		t.Errorf("the rank holds %d bytes of strangers, more than %d or hardly any", held, most)
	}
	time.Sleep(handshake.Timeout)
	for i, a := range list {
		if a.Err() == nil {
			t.Errorf("stranger %d goes on after %v", i, 3*handshake.Timeout/2)
		}
	}
	if n := len(associations(w)); n != ranks {
		t.Errorf("%d associations, %d before the strangers came", n, ranks)
	}
	return nil
}
