package mpi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/mpi/internal/job"
	"github.com/weftstack/weft/sctp"
)

// forgedProof is the second message of a connector that does not know the key.
var forgedProof = append([]byte{3}, make([]byte, 32)...)

// idle makes n connections to addr that say nothing.
func idle(t *testing.T, addr string, n int) {
	t.Helper()
	for range n {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
}

// Strangers that find the port before the job is complete neither join nor keep it
// from starting, those that say nothing included: the job does not wait until their
// time is over.
func TestStrangersTCP(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), handshake.Timeout/2)
	defer cancel()
	launcher := job.NewLocal(2, nil)
	o, err := buildOptions(TransportTCP, []Option{WithAddrs(job.Loopback)})
	if err != nil {
		t.Fatal(err)
	}
	var worlds [2]*World
	var trs [2]job.Transport
	for r := range worlds {
		worlds[r] = newWorld(r, 2, o, launcher)
		if trs[r], err = worlds[r].job.OpenTransport(); err != nil {
			t.Fatal(err)
		}
	}
	_, forged := handshake.Connect(handshake.Params{Key: []byte("wrong key"), Self: 1, Size: 2}, 0)
	for _, msg := range [][]byte{nil, []byte("GET / HTTP/1.0\r\n\r\n"), handshake.Frame(forged), handshake.Frame(append(forged, 0))} {
		conn, err := net.Dial("tcp", trs[0].Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(msg); err != nil {
			t.Fatal(err)
		}
	}
	idle(t, trs[0].Addr(), 2*handshake.MaxUnproven)
	errc := make(chan error, 2)
	for r, w := range worlds {
		go func() {
			err := w.join(ctx, trs[r])
			if err == nil {
				_, err = Sendrecv(ctx, w.Comm(), []int{r}, 1-r, 0, make([]int, 1), 1-r, 0)
			}
			errc <- errors.Join(err, w.Finalize(ctx))
		}()
	}
	for range worlds {
		if err := <-errc; err != nil {
			t.Error(err)
		}
	}
}

func TestStrangersSCTP(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{job.Loopback}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	ep, err := tr.Listen(0, &sctp.Config{OutStreams: 21, InStreams: 21})
	if err != nil {
		t.Fatal(err)
	}
	_, forged := handshake.Connect(handshake.Params{Key: []byte("wrong key"), Self: 1, Size: 2}, 0)
	eager := envelope.Header{Kind: envelope.Eager, Source: 1, Context: worldID, Tag: 77}
	var hdr [envelope.MaxLen]byte
	err = RunLocal(ctx, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if c.Rank() == 0 {
			addr, err := sctp.ParseAddr(w.job.Transport.Addr())
			if err != nil {
				return err
			}
			for i, msg := range [][]byte{[]byte("hello"), handshake.Frame(forged), eager.Encode(&hdr), handshake.Frame(append(forged, 0))} {
				a, err := ep.Connect(ctx, addr)
				if err != nil {
					return err
				}
				if err := a.Send(ctx, msg, sctp.SendOptions{}); err != nil {
					return err
				}
				if i == 1 { // a hello is answered, but the answer proves nothing to us
					var b [200]byte
					if _, _, err := a.Recv(ctx, b[:]); err != nil {
						return fmt.Errorf("answer to a hello: %w", err)
					}
					if err := a.Send(ctx, handshake.Frame(forgedProof), sctp.SendOptions{}); err != nil {
						return err
					}
				}
				select {
				case <-a.Done():
				case <-ctx.Done():
					return fmt.Errorf("stranger %d is tolerated", i)
				}
			}
			if _, found, err := Iprobe(c, AnySource, 77); found || err != nil {
				return fmt.Errorf("a stranger's message is there: %v, %v", found, err)
			}
		}
		_, err := Sendrecv(ctx, c, []int{1}, 1-c.Rank(), 0, make([]int, 1), 1-c.Rank(), 0)
		return err
	}, WithTransport(TransportSCTP))
	if err != nil {
		t.Error(err)
	}
}
