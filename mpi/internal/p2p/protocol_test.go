package p2p

import (
	"errors"
	"testing"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// A peer that breaks the protocol loses its link, and nothing else happens.
func TestProtocolViolations(t *testing.T) {
	enc := func(v envelope.Header, body ...byte) []byte {
		var b [envelope.MaxLen]byte
		return append(append([]byte(nil), v.Encode(&b)...), body...)
	}
	eager := envelope.Header{Kind: envelope.Eager, Source: 1, Context: testCommID, Tag: 1, Length: 1}
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
		{"sequence too far ahead", with(func(v *envelope.Header) { v.Flags, v.Seq = envelope.FlagSeq, maxAhead })},
		{"sequence repeated", with(func(v *envelope.Header) { v.Flags, v.Seq = envelope.FlagSeq, ^uint32(0) })},
		{"body unasked", enc(envelope.Header{Kind: envelope.Data, ID: 1, Length: 1}, 0)},
		{"handshake again", enc(envelope.Header{Kind: envelope.Handshake, Length: 1}, 0)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, p := newTestEngine(t)
			if _, err := p.Parsers[1].Parse(tt.data); !errors.Is(err, mpierr.ErrProtocol) {
				t.Errorf("error %v, want ErrProtocol", err)
			}
		})
	}
}

func TestUnknownCommunicatorsAreBounded(t *testing.T) {
	_, p := newTestEngine(t)
	f := &p.Parsers[1]
	var hdr [envelope.MaxLen]byte
	var err error
	for i := range maxUnknown + 1 {
		v := envelope.Header{Kind: envelope.RTS, Source: 1, Context: uint64(1000+i) << 2, Tag: 1, Length: 1}
		_, err = f.Parse(v.Encode(&hdr))
		if (err != nil) != (i == maxUnknown) {
			t.Fatalf("context %d: %v", i, err)
		}
	}
	if !errors.Is(err, mpierr.ErrProtocol) {
		t.Errorf("error %v", err)
	}
}

// A peer that says a receive, or a send that was not cancelled, is withdrawn
// breaks the protocol.
func TestWithdrawnUnasked(t *testing.T) {
	c, p := newTestEngine(t)
	for _, r := range []*Request{{Engine: c.Engine, Peer: p}, {Engine: c.Engine, Peer: p, Context: c.Contexts[SlotUser], canceling: true}} {
		v := envelope.Header{Kind: envelope.Canceled, ID: c.Engine.IDs.Add(r, p)}
		var hdr [envelope.MaxLen]byte
		if _, err := p.Parsers[0].Parse(v.Encode(&hdr)); !errors.Is(err, mpierr.ErrProtocol) || !r.Finished.Load() {
			t.Errorf("error %v, request done: %v", err, r.Finished.Load())
		}
		p.Parsers[0].Busy = false
	}
}

// TestFetchedUnasked: a peer that says it has read what it was not offered breaks the
// protocol.
func TestFetchedUnasked(t *testing.T) {
	c, p := newTestEngine(t)
	feed := func(v envelope.Header) error {
		var hdr [envelope.MaxLen]byte
		_, err := p.Parsers[0].Parse(v.Encode(&hdr))
		p.Parsers[0].Busy = false
		return err
	}
	for _, r := range []*Request{{Engine: c.Engine, Peer: p, Buf: make([]byte, 1)}, {Engine: c.Engine, Peer: p, Context: c.Contexts[SlotUser]}} {
		if err := feed(envelope.Header{Kind: envelope.ReadFIN, ID: c.Engine.IDs.Add(r, p)}); !errors.Is(err, mpierr.ErrProtocol) || !r.Finished.Load() {
			t.Errorf("error %v, request done: %v", err, r.Finished.Load())
		}
	}
	if err := feed(envelope.Header{Kind: envelope.ReadFIN, ID: 1 << 40}); err != nil {
		t.Errorf("of a request that has ended: %v", err)
	}
}

// FuzzMessageParser feeds arbitrary bytes, cut in arbitrary places.
func FuzzMessageParser(f *testing.F) {
	var b [envelope.MaxLen]byte
	v := envelope.Header{Kind: envelope.Eager, Source: 1, Context: testCommID, Tag: 1, Length: 3}
	f.Add(append(append([]byte(nil), v.Encode(&b)...), 1, 2, 3), 5)
	v.Kind = envelope.RTS
	f.Add(append([]byte(nil), v.Encode(&b)...), 100)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		c, p := newTestEngine(t)
		for range 3 {
			c.StartRecv(GetRequest(c.Engine), SlotUser, make([]byte, 10), AnySource, AnyTag)
		}
		fl := &p.Parsers[1]
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
