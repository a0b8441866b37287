package sctp_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// allExtensions asks for everything that can be negotiated.
func allExtensions() sctp.Config {
	code := uint32(7)
	return sctp.Config{Auth: &sctp.AuthConfig{}, ChangeAddrs: true, ZeroChecksum: true, Multipath: true, Adaptation: &code}
}

// Each extension is an option. An end that has it does without where the other one
// lacks it, whichever of them opens the association, and what needs it says so.
func TestEachExtensionWithAPeerThatLacksIt(t *testing.T) {
	with := sctp.Extensions{PartialReliability: true, Interleaving: true, Reconfig: true, Authentication: true,
		AddressChange: true, ECN: true, ZeroChecksum: true}
	notSupported := func(t *testing.T, what string, err error) {
		if !errors.Is(err, sctp.ErrNotSupported) {
			t.Errorf("%s: %v, want ErrNotSupported", what, err)
		}
	}
	for _, x := range []struct {
		name string
		lack func(*sctp.Config)
		want func(*sctp.Extensions)
		try  func(*testing.T, *sctp.Association)
	}{
		{"partial reliability", func(c *sctp.Config) { c.NoPartialReliability = true },
			func(e *sctp.Extensions) { e.PartialReliability = false }, nil},
		{"interleaving", func(c *sctp.Config) { c.NoInterleaving = true },
			func(e *sctp.Extensions) { e.Interleaving = false }, nil},
		{"reconfiguration", func(c *sctp.Config) { c.NoReconfig = true },
			func(e *sctp.Extensions) { e.Reconfig = false },
			func(t *testing.T, a *sctp.Association) {
				notSupported(t, "ResetStreams", a.ResetStreams(t.Context(), 0))
				notSupported(t, "ResetIncomingStreams", a.ResetIncomingStreams(t.Context(), 0))
				notSupported(t, "ResetAll", a.ResetAll(t.Context()))
				notSupported(t, "AddStreams", a.AddStreams(t.Context(), 1, 1))
			}},
		{"authentication", func(c *sctp.Config) { c.Auth, c.ChangeAddrs = nil, false },
			func(e *sctp.Extensions) { e.Authentication, e.AddressChange = false, false },
			func(t *testing.T, a *sctp.Association) {
				if a.Authenticated() {
					t.Error("authenticated")
				}
			}},
		{"address changes", func(c *sctp.Config) { c.ChangeAddrs = false },
			func(e *sctp.Extensions) { e.AddressChange = false },
			func(t *testing.T, a *sctp.Association) {
				addr := netip.MustParseAddrPort("10.0.0.9:9899")
				notSupported(t, "AddAddr", a.AddAddr(t.Context(), addr))
				notSupported(t, "SetPeerPrimary", a.SetPeerPrimary(t.Context(), a.LocalAddr().Addrs[0]))
			}},
		{"congestion notification", func(c *sctp.Config) { c.NoECN = true },
			func(e *sctp.Extensions) { e.ECN = false }, nil},
		{"zero checksums", func(c *sctp.Config) { c.ZeroChecksum = false },
			func(e *sctp.Extensions) { e.ZeroChecksum = false }, nil},
		{"adaptation indication", func(c *sctp.Config) { c.Adaptation = nil }, func(*sctp.Extensions) {}, nil},
		{"loss detection by time", func(c *sctp.Config) { c.NoRACK = true }, func(*sctp.Extensions) {}, nil},
		{"path MTU discovery", func(c *sctp.Config) { c.NoPathMTUDiscovery = true }, func(*sctp.Extensions) {}, nil},
		{"multipath", func(c *sctp.Config) { c.Multipath = false }, func(*sctp.Extensions) {}, nil},
		{"all", func(c *sctp.Config) {
			*c = sctp.Config{NoPartialReliability: true, NoInterleaving: true, NoReconfig: true, NoECN: true, NoRACK: true}
		}, func(e *sctp.Extensions) { *e = sctp.Extensions{} }, nil},
	} {
		for _, opens := range []bool{true, false} {
			t.Run(x.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ca, cb, want := allExtensions(), allExtensions(), with
					x.want(&want)
					if opens {
						x.lack(&ca)
					} else {
						x.lack(&cb)
					}
					p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond, Loss: 0.05}, &ca, &cb)
					for _, a := range []*sctp.Association{p.a, p.b} {
						if got := a.Extensions(); got != want {
							t.Errorf("%+v, want %+v", got, want)
						}
						if x.try != nil {
							x.try(t, a)
						}
					}
					exchange(t, p.a, p.b)
					exchange(t, p.b, p.a)
					if err := p.a.Shutdown(t.Context()); err != nil {
						t.Error("Shutdown:", err)
					}
				})
			})
		}
	}
}

// exchange sends messages that make use of everything there is, and wants those
// that do not expire to arrive.
func exchange(t *testing.T, from, to *sctp.Association) {
	msg := pattern(50_000)
	if err := from.Send(context.Background(), []byte("may expire"), sctp.SendOptions{Stream: 3, PR: sctp.Timed, Lifetime: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for stream := range uint16(3) {
		if err := from.Send(context.Background(), msg, sctp.SendOptions{Stream: stream, Unordered: stream == 2}); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, len(msg))
	for stream := range uint16(3) {
		n := 0
		for n < len(msg) {
			k, _, err := to.RecvStream(context.Background(), stream, buf[n:])
			if err != nil {
				t.Fatal(err)
			}
			n += k
		}
		if !bytes.Equal(buf, msg) {
			t.Errorf("stream %d: the message came out wrong", stream)
		}
	}
	if n, _, err := to.RecvStream(context.Background(), 3, buf); err != nil || string(buf[:n]) != "may expire" {
		t.Errorf("stream 3: %q, %v", buf[:n], err)
	}
}
