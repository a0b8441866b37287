package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// A peer that breaks the protocol loses its link, and nothing else happens.
func TestProtocolViolations(t *testing.T) {
	enc := func(v envelope.Header, body ...byte) []byte {
		var b [envelope.MaxLen]byte
		return append(append([]byte(nil), v.Encode(&b)...), body...)
	}
	eager := envelope.Header{Kind: envelope.Eager, Source: 1, Context: worldID, Tag: 1, Length: 1}
	with := func(f func(*envelope.Header)) []byte {
		v := eager
		f(&v)
		return enc(v, 0)
	}
	for _, tt := range []struct {
		name string
		data []byte
	}{
		{"kind 0", make([]byte, 32)},
		{"kind 200", append([]byte{200}, make([]byte, 31)...)},
		{"reserved bytes", func() []byte {
			v := eager
			v.Kind = envelope.Credit
			b := enc(v, 0)
			b[2] = 1
			return b
		}()},
		{"negative tag", with(func(v *envelope.Header) { v.Tag = -1 })},
		{"huge length", with(func(v *envelope.Header) { v.Length = envelope.MaxMessage + 1 })},
		{"more than the credit", with(func(v *envelope.Header) { v.Length = 1 << 40 })},
		{"source outside", with(func(v *envelope.Header) { v.Source = 9 })},
		{"source of another rank", with(func(v *envelope.Header) { v.Source = 0 })},
		{"sequence too far ahead", with(func(v *envelope.Header) { v.Flags, v.Seq = envelope.FlagSeq, p2p.MaxAhead })},
		{"sequence repeated", with(func(v *envelope.Header) { v.Flags, v.Seq = envelope.FlagSeq, ^uint32(0) })},
		{"body unasked", enc(envelope.Header{Kind: envelope.Data, ID: 1, Length: 1}, 0)},
		{"handshake again", enc(envelope.Header{Kind: envelope.Handshake, Length: 1}, 0)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, err := buildOptions(TransportInproc, nil)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(0, 2, o, nil)
			if _, err := w.eng.Peers[1].Parsers[1].Parse(tt.data); !errors.Is(err, ErrProtocol) {
				t.Errorf("error %v, want ErrProtocol", err)
			}
		})
	}
}

func TestUnknownCommunicatorsAreBounded(t *testing.T) {
	o, err := buildOptions(TransportInproc, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(0, 2, o, nil)
	f := &w.eng.Peers[1].Parsers[1]
	var hdr [envelope.MaxLen]byte
	for i := range p2p.MaxUnknown + 1 {
		v := envelope.Header{Kind: envelope.RTS, Source: 1, Context: uint64(1000+i) << 2, Tag: 1, Length: 1}
		_, err = f.Parse(v.Encode(&hdr))
		if (err != nil) != (i == p2p.MaxUnknown) {
			t.Fatalf("context %d: %v", i, err)
		}
	}
	if !errors.Is(err, ErrProtocol) {
		t.Errorf("error %v", err)
	}
}

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

// FuzzMessageParser feeds arbitrary bytes, cut in arbitrary places.
func FuzzMessageParser(f *testing.F) {
	var b [envelope.MaxLen]byte
	v := envelope.Header{Kind: envelope.Eager, Source: 1, Context: worldID, Tag: 1, Length: 3}
	f.Add(append(append([]byte(nil), v.Encode(&b)...), 1, 2, 3), 5)
	v.Kind = envelope.RTS
	f.Add(append([]byte(nil), v.Encode(&b)...), 100)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		o, err := buildOptions(TransportInproc, []Option{WithUnexpected(1 << 20)})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(0, 2, o, nil)
		link := &chaosLink{to: w.eng.Peers[0], rng: rand.New(rand.NewPCG(1, 1))}
		w.eng.Peers[1].Link = link
		for range 3 {
			if _, err := Irecv(w.Comm(), make([]byte, 10), AnySource, AnyTag); err != nil {
				t.Fatal(err)
			}
		}
		fl := &w.eng.Peers[1].Parsers[1]
		cut = 1 + int(uint(cut)%64)
		for len(data) > 0 {
			k, err := fl.Parse(data[:min(cut, len(data))])
			if err != nil {
				return
			}
			if k == 0 {
				t.Fatal("no progress")
			}
			data = data[k:]
		}
		fl.Abort(errTestOver)
	})
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
	job := newLocalJob(2)
	errc := make(chan error, 2)
	for r := range 2 {
		o, err := buildOptions(TransportTCP, []Option{WithAddrs(loopback), WithStreams(3 + r)})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(r, 2, o, &localBoot{job: job})
		f, err := newTransport(w)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			err := w.join(context.Background(), f)
			_ = f.close()
			errc <- err
		}()
	}
	for range 2 {
		if err := <-errc; !errors.Is(err, ErrOption) {
			t.Errorf("join: %v, want ErrOption", err)
		}
	}
}
