package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/job"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

func TestAnnouncedMessagesAreBounded(t *testing.T) {
	k := newChaos(t, 2, rand.New(rand.NewPCG(1, 1)), WithEager(0))
	c := k.worlds[0].Comm()
	p := k.worlds[0].eng.Peers[1]
	p.Announced.Store(p2p.MaxAnnounced - 1)
	if _, err := Isend(c, make([]byte, 10), 1, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Isend(c, make([]byte, 10), 1, 0); !errors.Is(err, ErrLimit) {
		t.Errorf("send beyond the limit: %v", err)
	}
	for k.step() {
	}
	q := k.worlds[1].eng.Peers[0]
	if n := q.Ready.Load(); n != 1 {
		t.Errorf("%d messages announced, want 1", n)
	}
	if _, err := Irecv(k.worlds[1].Comm(), make([]byte, 10), 0, 0); err != nil {
		t.Fatal(err)
	}
	for k.step() {
	}
	if a, r := p.Announced.Load(), q.Ready.Load(); a != p2p.MaxAnnounced-1 || r != 0 {
		t.Errorf("after the receive %d sends wait, %d announced", a, r)
	}
	q.Ready.Store(2 * p2p.MaxAnnounced)
	v := envelope.Header{Kind: envelope.RTS, Source: 0, Context: worldID, Length: 1}
	var hdr [envelope.MaxLen]byte
	if _, err := q.Parsers[1].Parse(v.Encode(&hdr)); !errors.Is(err, ErrProtocol) {
		t.Errorf("announcement beyond the limit: %v", err)
	}
}

// On every transport, garbage from a peer ends the link to it, on both sides.
func TestViolationEndsLink(t *testing.T) {
	for _, tr := range testTransports {
		t.Run("transport="+tr, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), testTime)
			defer cancel()
			err := RunLocal(ctx, 2, func(_ context.Context, w *World) error {
				c := w.Comm()
				if c.Rank() == 1 {
					garbage := make([]byte, envelope.MinLen)
					garbage[0] = byte(envelope.Kinds)
					l := w.eng.Peers[0].Link
					if err := l.Send(1, garbage, nil, nil); err != nil {
						return err
					}
					l.Flush()
				}
				_, err := Recv(ctx, c, make([]byte, 1), 1-c.Rank(), 0)
				var re *RankError
				if !errors.As(err, &re) || re.Rank != 1-c.Rank() {
					return fmt.Errorf("receive = %w, want a RankError of the other rank", err)
				}
				return errTestOver
			}, overTransport(tr))
			if err == nil || strings.Count(err.Error(), errTestOver.Error()) < 2 {
				t.Error(err)
			}
		})
	}
}

// Ranks that were started with different options find out when they join.
func TestOptionsMustAgree(t *testing.T) {
	launcher := job.NewLocal(2, nil)
	errc := make(chan error, 2)
	for r := range 2 {
		o, err := buildOptions(TransportTCP, []Option{WithAddrs(job.Loopback), WithStreams(3 + r)})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(r, 2, o, launcher)
		f, err := w.job.OpenTransport()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			err := w.join(context.Background(), f)
			_ = f.Close()
			errc <- err
		}()
	}
	for range 2 {
		if err := <-errc; !errors.Is(err, ErrOption) {
			t.Errorf("join: %v, want ErrOption", err)
		}
	}
}
