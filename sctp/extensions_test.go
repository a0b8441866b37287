package sctp_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// What both ends support both ends tell, and what one of them lacks neither.
func TestExtensions(t *testing.T) {
	all := sctp.Config{Auth: &sctp.AuthConfig{}, ChangeAddrs: true, ZeroChecksum: true}
	for _, x := range []struct {
		name   string
		change func(*sctp.Config)
		want   sctp.Extensions
	}{
		{"all", func(*sctp.Config) {}, sctp.Extensions{PartialReliability: true, Interleaving: true, Reconfig: true, Authentication: true, AddressChange: true, ECN: true, ZeroChecksum: true}},
		{"no partial reliability", func(c *sctp.Config) { c.NoPartialReliability = true },
			sctp.Extensions{Interleaving: true, Reconfig: true, Authentication: true, AddressChange: true, ECN: true, ZeroChecksum: true}},
		{"none", func(c *sctp.Config) {
			*c = sctp.Config{NoPartialReliability: true, NoInterleaving: true, NoReconfig: true, NoECN: true}
		}, sctp.Extensions{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ca, cb := all, all
			x.change(&cb)
			p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, &ca, &cb)
			for _, a := range []*sctp.Association{p.a, p.b} {
				if got := a.Extensions(); got != x.want {
					t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
				}
			}
		})
	}
}

// RFC 8260, Section 2: "it is REQUIRED to support the coexistence of associations
// using DATA chunks and associations using I-DATA chunks". One endpoint has both
// at the same time, with the same peer.
func TestBothKindsOfAssociations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond, Loss: 0.05}, nil, nil)
		msg := pattern(100_000)
		buf := make([]byte, len(msg))
		assocs := []*sctp.Association{p.a}
		peers := []*sctp.Association{p.b}
		for _, without := range []bool{true, false, true} {
			e, err := p.ta.Listen(0, &sctp.Config{NoInterleaving: without})
			if err != nil {
				t.Fatal(err)
			}
			a, err := e.Connect(ctx, p.b.LocalAddr())
			if err != nil {
				t.Fatal(err)
			}
			b, err := p.b.Endpoint().Accept(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.Extensions().Interleaving; got == without {
				t.Fatalf("interleaving is %v, want %v", got, !without)
			}
			assocs, peers = append(assocs, a), append(peers, b)
		}
		for _, a := range assocs {
			for stream := range uint16(3) {
				if err := a.Send(ctx, msg, sctp.SendOptions{Stream: stream}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, b := range peers {
			for stream := range uint16(3) {
				n := 0
				for n < len(msg) {
					k, _, err := b.RecvStream(ctx, stream, buf[n:])
					if err != nil {
						t.Fatal(err)
					}
					n += k
				}
				if !bytes.Equal(buf[:n], msg) {
					t.Errorf("association %d, stream %d: the message came out wrong", i, stream)
				}
			}
		}
	})
}
