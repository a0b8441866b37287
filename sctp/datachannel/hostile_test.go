package datachannel_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/datachannel"
	"github.com/weftstack/weft/sctp/datachannel/dcep"
	"github.com/weftstack/weft/sctp/sctptest"
)

const (
	ppidDCEP   = 50
	ppidString = 51
	ppidBinary = 53
)

// rawPeer is the DTLS client of a session: an association without one, which sends what it likes.
type rawPeer struct {
	*sctp.Association
	net     *sctptest.Network
	session *datachannel.Session

	mu     sync.Mutex
	resets []uint16 // streams that the session reset
}

func newRawPeer(t testing.TB, raw sctp.Config, b end) *rawPeer {
	t.Helper()
	p := &rawPeer{net: sctptest.NewNetwork(1)}
	t.Cleanup(func() { p.net.Close() })
	p.net.SetDefault(delay)
	b.dc.Role = datachannel.Server
	accepted := make(chan *datachannel.Session, 1)
	server := b.endpoint(t, transport(t, p.net.NewHost(addrB)), accepted)
	raw.OutStreams, raw.InStreams = max(raw.OutStreams, 1), max(raw.InStreams, 1)
	if raw.OutStreams == 1 {
		raw.OutStreams, raw.InStreams = 65535, 65535
	}
	raw.OnNotify = func(_ *sctp.Association, n sctp.Notification) {
		if n.Kind == sctp.NotifyStreamsReset {
			p.mu.Lock()
			p.resets = append(p.resets, n.Streams...)
			p.mu.Unlock()
		}
	}
	client, err := transport(t, p.net.NewHost(addrA)).Listen(port, &raw)
	if err != nil {
		t.Fatal(err)
	}
	if p.Association, err = client.Connect(t.Context(), server.Addr()); err != nil {
		t.Fatal(err)
	}
	p.session = <-accepted
	return p
}

func (p *rawPeer) send(t testing.TB, stream uint16, ppid uint32, data []byte) {
	t.Helper()
	if err := p.Send(t.Context(), data, sctp.SendOptions{Stream: stream, PPID: ppid}); err != nil {
		t.Fatal(err)
	}
}

func (p *rawPeer) open(t testing.TB, stream uint16, label string) {
	t.Helper()
	b, err := dcep.AppendOpen(nil, &dcep.Open{Label: []byte(label)})
	if err != nil {
		t.Fatal(err)
	}
	p.send(t, stream, ppidDCEP, b)
}

// wantReset waits until the session has reset its stream n times.
func (p *rawPeer) wantReset(t testing.TB, stream uint16, n int) {
	t.Helper()
	time.Sleep(5 * time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	got := 0
	for _, r := range p.resets {
		if r == stream {
			got++
		}
	}
	if got != n {
		t.Errorf("stream %d was reset %d times, want %d", stream, got, n)
	}
}

// wantAck checks whether the session has acknowledged a channel.
func (p *rawPeer) wantAck(t testing.TB, stream uint16, want bool) {
	t.Helper()
	time.Sleep(5 * time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	buf := make([]byte, 10)
	n, info, err := p.RecvStream(ctx, stream, buf)
	if got := err == nil && info.PPID == ppidDCEP && string(buf[:n]) == "\x02" && !info.Unordered; got != want {
		t.Errorf("stream %d acknowledged: %v, want %v (% x, %v)", stream, got, want, buf[:n], err)
	}
}

// What closes a channel that is open, and what the stream on which there is none: RFC 8831, Section
// 6.6, and RFC 8832, Section 6. The session goes on, the stream can be used again.
func TestViolationsCloseTheChannel(t *testing.T) {
	open, _ := dcep.AppendOpen(nil, &dcep.Open{})
	for _, x := range []struct {
		name string
		on   string // without a channel, of the peer, of this side, or any
		ppid uint32
		data string
	}{
		{"no channel", "none", ppidString, "x"},
		{"no channel, empty", "none", 56, "\x00"},
		{"unknown PPID", "any", 0, "x"},
		{"deprecated PPID 52", "any", 52, "x"},
		{"deprecated PPID 54", "any", 54, "x"},
		{"unknown message", "any", ppidDCEP, "\x00"},
		{"unknown channel type", "any", ppidDCEP, "\x03\x05" + strings.Repeat("\x00", 10)},
		{"short", "any", ppidDCEP, "\x03\x00\x00"},
		{"longer than it says", "any", ppidDCEP, string(open) + "x"},
		{"acknowledgement of nothing", "none", ppidDCEP, "\x02"},
		{"acknowledgement of a channel of the peer", "peer", ppidDCEP, "\x02"},
		{"second acknowledgement", "ours", ppidDCEP, "\x02"},
		{"long acknowledgement", "any", ppidDCEP, "\x02\x00"},
		{"open again", "peer", ppidDCEP, string(open)},
		{"open ours", "ours", ppidDCEP, string(open)},
		{"wrong number", "odd", ppidDCEP, string(open)},
		{"long message of DCEP", "any", ppidDCEP, "\x03" + strings.Repeat("x", dcep.MaxLen)},
	} {
		for _, on := range []string{"none", "odd", "peer", "ours"} {
			if x.on != on && x.on != "any" {
				continue
			}
			bubble(t, x.name+"/"+on, func(t *testing.T) {
				p := newRawPeer(t, sctp.Config{}, end{})
				var stream uint16
				var c *datachannel.Channel
				var err error
				switch on {
				case "odd":
					stream = 7
				case "peer":
					stream = 6
					p.open(t, stream, "label")
					c, err = p.session.Accept(t.Context())
				case "ours":
					stream = 1
					c, err = p.session.Open(t.Context(), "ours", datachannel.Options{})
					p.send(t, stream, ppidDCEP, []byte{2})
				}
				if err != nil {
					t.Fatal(err)
				}
				p.send(t, stream, x.ppid, []byte(x.data))
				p.send(t, stream, ppidBinary, []byte("discarded"))
				p.wantReset(t, stream, 1)
				if s := p.session.Stats(); s.Violations != 1 || s.Discarded != 1 || s.AssemblyBytes != 0 {
					t.Errorf("%+v", s)
				}
				if c != nil {
					_, err := c.Recv(t.Context(), nil)
					wantErr(t, "receive", err, c.Err())
					if c.State() != datachannel.Closing {
						t.Errorf("%v, want closing", c)
					}
				}
				if err := p.ResetStreams(t.Context(), stream); err != nil {
					t.Fatal(err)
				}
				if c != nil {
					<-c.Done()
					if err := c.Err(); err == nil {
						t.Error("the channel was closed without an error")
					}
				}
				if stream&1 == 0 {
					p.open(t, stream, "again")
					d, err := p.session.Accept(t.Context())
					if err != nil || d.Label() != "again" {
						t.Fatalf("%v, %v", d, err)
					}
				}
			})
		}
	}
}

// Messages of DCEP must be ordered.
func TestUnorderedOpenIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRawPeer(t, sctp.Config{}, end{})
		b, _ := dcep.AppendOpen(nil, &dcep.Open{})
		if err := p.Send(t.Context(), b, sctp.SendOptions{Stream: 2, PPID: ppidDCEP, Unordered: true}); err != nil {
			t.Fatal(err)
		}
		p.wantReset(t, 2, 1)
	})
}

// RFC 8832, Section 6: before anything has come back messages go in order, then as the channel
// says; and what is sent is ordered DCEP with PPID 50.
func TestUnorderedChannelIsOrderedUntilThePeerAnswers(t *testing.T) {
	for _, answer := range []uint32{ppidDCEP, ppidBinary} {
		bubble(t, fmt.Sprint(answer), func(t *testing.T) {
			p := newRawPeer(t, sctp.Config{}, end{})
			c, err := p.session.Open(t.Context(), "x", datachannel.Options{Unordered: true})
			if err != nil {
				t.Fatal(err)
			}
			send(t, c, "first")
			p.send(t, c.ID(), answer, []byte{2})
			if err := c.WaitOpen(t.Context()); err != nil {
				t.Fatal(err)
			}
			send(t, c, "second")
			buf := make([]byte, 100)
			for i, want := range []struct {
				ppid      uint32
				unordered bool
			}{{ppidDCEP, false}, {ppidString, false}, {ppidString, true}} {
				_, info, err := p.Recv(t.Context(), buf)
				if err != nil || info.PPID != want.ppid || info.Unordered != want.unordered || info.Stream != c.ID() {
					t.Errorf("message %d: %+v, %v", i, info, err)
				}
			}
		})
	}
}

// A peer opens all the channels that its numbers allow: MaxChannels are accepted, the others
// refused, with their streams reset as far as there is room to remember that.
func TestPeerThatOpensAllChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var accepted []*datachannel.Channel
		p := newRawPeer(t, sctp.Config{}, end{dc: datachannel.Config{OnChannel: func(c *datachannel.Channel) {
			mu.Lock()
			accepted = append(accepted, c)
			mu.Unlock()
		}}})
		before := heap()
		for id := 0; id < 65534; id += 2 {
			p.open(t, uint16(id), "")
			p.send(t, uint16(id+1), ppidString, []byte("x"))
		}
		time.Sleep(time.Minute)
		s := p.session.Stats()
		mu.Lock()
		defer mu.Unlock()
		if len(accepted) != datachannel.DefaultMaxChannels || s.Channels != len(accepted) ||
			s.Refused != 65534/2-datachannel.DefaultMaxChannels {
			t.Errorf("%d channels were accepted: %+v", len(accepted), s)
		}
		p.mu.Lock()
		resets := len(p.resets)
		p.mu.Unlock()
		if resets != 1024 {
			t.Errorf("%d streams were reset, want as many as are remembered, 1024", resets)
		}
		if grown := heap() - before; grown > 64<<20 { // most of it is of the two associations
			t.Errorf("the heap grew by %d KiB", grown>>10)
		}
		// The peer's resets make room.
		for id := 0; id < 65534; id += 200 {
			var list []uint16
			for i := range 200 {
				if id+i < 65534 {
					list = append(list, uint16(id+i))
				}
			}
			if err := p.ResetStreams(t.Context(), list...); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if s := p.session.Stats(); s.Channels != 0 {
			t.Errorf("%+v", s)
		}
		for _, c := range accepted {
			wantClosed(t, c, nil)
		}
		p.open(t, 8, "again")
		mu.Unlock()
		time.Sleep(time.Second)
		mu.Lock()
		if n := len(accepted); n != datachannel.DefaultMaxChannels+1 {
			t.Errorf("%d channels, want another one", n)
		}
	})
}

func heap() int {
	runtime.GC()
	runtime.GC() // pools lose what they hold with the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestBacklogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRawPeer(t, sctp.Config{}, end{})
		for i := range uint16(datachannel.DefaultBacklog + 5) {
			p.open(t, 2*i, "waits")
		}
		p.wantReset(t, 2*datachannel.DefaultBacklog, 1)
		if s := p.session.Stats(); s.Refused != 5 || s.Accepted != datachannel.DefaultBacklog {
			t.Errorf("%+v", s)
		}
		if _, err := p.session.Accept(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.open(t, 1000, "has room")
		p.wantAck(t, 1000, true)
	})
}

// Labels of 64 KiB are refused beyond 1 MiB in all, and can be had again when channels are closed.
func TestLabelsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRawPeer(t, sctp.Config{}, end{})
		label := strings.Repeat("x", dcep.MaxString)
		for i := range uint16(20) {
			p.open(t, 2*i, label)
		}
		time.Sleep(10 * time.Second)
		p.mu.Lock()
		refused := p.resets
		p.mu.Unlock()
		if len(refused) != 4 {
			t.Errorf("streams %v were reset, want 4", refused)
		}
		if s := p.session.Stats(); s.Accepted != 16 || s.Refused != 4 || s.AssemblyBytes != 0 {
			t.Errorf("%+v", s)
		}
		c, err := p.session.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := p.ResetStreams(t.Context(), c.ID()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		p.open(t, c.ID(), label)
		time.Sleep(5 * time.Second)
		if s := p.session.Stats(); s.Accepted != 17 {
			t.Errorf("%+v", s)
		}
	})
}

// A peer leaves messages incomplete on many channels: their memory stays within AssemblyBuffer, and
// the channels that exceed it are closed.
func TestIncompleteMessagesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1 << 20
		p := newRawPeer(t, sctp.Config{}, end{dc: datachannel.Config{AssemblyBuffer: limit, MaxMessageSize: 128 << 10}})
		const channels = 100
		for i := range uint16(channels) {
			p.open(t, 2*i, "")
			w, err := p.OpenMessage(t.Context(), sctp.SendOptions{Stream: 2 * i, PPID: ppidBinary})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(make([]byte, 60<<10)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if s := p.session.Stats(); s.AssemblyBytes > limit {
				t.Fatalf("channel %d: %+v", i, s)
			}
		}
		closed := 0
		for range channels {
			c, err := p.session.Accept(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if c.Err() != nil {
				wantErr(t, "channel", c.Err(), datachannel.ErrAssembly)
				closed++
			}
		}
		if s := p.session.Stats(); closed != channels-limit/(64<<10) || s.Violations != uint64(closed) {
			t.Errorf("%d channels were closed: %+v", closed, s)
		}
	})
}

// A peer that sends random messages on random streams, and resets them.
func TestRandomPeer(t *testing.T) {
	open, _ := dcep.AppendOpen(nil, &dcep.Open{Label: []byte("l")})
	for seed := range uint64(20) {
		bubble(t, fmt.Sprint(seed), func(t *testing.T) {
			p := newRawPeer(t, sctp.Config{}, end{dc: datachannel.Config{MaxMessageSize: 5000, MaxChannels: 4}})
			r := newRand(seed)
			for range 500 {
				stream := uint16(r.IntN(8))
				switch r.IntN(8) {
				case 0:
					if err := p.ResetStreams(t.Context(), stream); err != nil {
						t.Fatal(err)
					}
				case 1, 2:
					p.send(t, stream, ppidDCEP, slices.Concat(open, make([]byte, r.IntN(2))))
				case 3:
					_, _ = p.session.Open(t.Context(), "ours", datachannel.Options{})
				case 4:
					ctx, cancel := context.WithTimeout(t.Context(), 1)
					if c, err := p.session.Accept(ctx); err == nil && r.IntN(2) == 0 {
						c.Close()
					}
					cancel()
				default:
					p.send(t, stream, uint32(50+r.IntN(9)), make([]byte, 1+r.IntN(6000)))
				}
				if r.IntN(10) == 0 {
					time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
				}
			}
			time.Sleep(10 * time.Second)
			if err := p.ResetStreams(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			if s := p.session.Stats(); s.Channels != 0 || s.AssemblyBytes != 0 {
				t.Errorf("%+v", s)
			}
			p.open(t, 6, "again")
			for {
				c, err := p.session.Accept(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if c.Label() == "again" {
					break
				}
			}
			if err := p.session.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}
