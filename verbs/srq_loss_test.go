package verbs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/rdmap"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// TestSRQSurvivesLoss: peers that keep to the protocol, whose messages overtake one
// another because of losses and reordering, get all of them through a shared receive
// queue, whether it is long or has to be filled again and again.
func TestSRQSurvivesLoss(t *testing.T) {
	const delay = time.Millisecond
	for _, c := range []struct {
		name         string
		link         sctptest.Link
		lose         int // the number of one packet to be lost
		depth, peers int
		messages     int // of each peer
		buffer       int
	}{
		{name: "one packet", lose: 200, depth: 32768, peers: 1, messages: 8000},
		{name: "0.1 %", link: sctptest.Link{Loss: 0.001}, lose: 100, depth: 4096, peers: 4, messages: 3000},
		{name: "1 % and reordering", link: sctptest.Link{Loss: 0.01, Reorder: 0.1, ReorderDelay: 3 * delay}, lose: 50, depth: 64, peers: 4, messages: 2000},
		{name: "3 % in a small buffer", link: sctptest.Link{Loss: 0.03, Reorder: 0.1}, lose: 50, depth: 16, peers: 8, messages: 400, buffer: 32 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %#x", seed)
			synctest.Test(t, func(t *testing.T) {
				c.link.Delay = delay
				a, b, net := newLinkConfig(t, seed, c.link, Config{SCTP: &sctp.Config{RecvBuffer: c.buffer}})
				defer net.Close()
				defer a.tr.Close()
				defer b.tr.Close()
				srq, err := b.pd.NewSRQ(SRQConfig{Depth: c.depth})
				if err != nil {
					t.Fatal(err)
				}
				if b.rcq, err = b.dev.NewCQ(c.depth); err != nil {
					t.Fatal(err)
				}
				const size = 60
				mr := b.mr(c.depth*size, LocalWrite)
				post := func(slot uint64) {
					if err := srq.PostRecv(RecvWR{ID: slot, SGL: []SGE{mr.Slice(int(slot)*size, size)}}); err != nil {
						t.Fatal(err)
					}
				}
				for i := range uint64(c.depth) {
					post(i)
				}
				from := map[*QP]uint32{}
				var senders []*QP
				for range c.peers {
					qa, qb := connect(t, a, b, QPConfig{SendDepth: 1024}, QPConfig{SRQ: srq})
					senders, from[qb] = append(senders, qa), 0
				}
				if c.lose > 0 {
					lossy := c.link
					lossy.Filter = func([]byte) bool { c.lose--; return c.lose != 0 }
					net.SetLink("10.0.0.1", "10.0.0.2", lossy)
				}
				done := make(chan struct{})
				defer close(done)
				for _, qa := range senders {
					go func() {
						var b [size]byte
						for i := 0; i < c.messages && qa.State() == StateRTS; {
							binary.BigEndian.PutUint32(b[:], uint32(i))
							if err := qa.PostSend(SendWR{Op: OpSend, Inline: b[:]}); err == nil {
								i++
							} else {
								select {
								case <-done:
									return
								case <-time.After(100 * time.Microsecond):
								}
							}
						}
					}()
				}
				ctx := testContext(t)
				var wc [16]WC
				for left := c.peers * c.messages; left > 0; {
					n, err := b.rcq.Wait(ctx, wc[:])
					if err != nil {
						t.Fatalf("%d messages are missing: %v", left, err)
					}
					for _, w := range wc[:n] {
						got := binary.BigEndian.Uint32(mr.Bytes()[w.ID*size:])
						if w.Status != StatusSuccess || got != from[w.QP] {
							t.Fatalf("QP %d: message %d, %v, want %d; %v", w.QP.Num(), got, w.Status, from[w.QP], w.QP.Err())
						}
						from[w.QP]++
						post(w.ID)
						left--
					}
				}
				if got := srq.Query().Posted; got != c.depth {
					t.Errorf("%d receives are left, want %d", got, c.depth)
				}
				if n := net.Total(); n.Lost+n.Filtered == 0 {
					t.Error("nothing was lost")
				}
			})
		})
	}
}

// rawPeer is a peer that sends what it likes: a DDP endpoint on plain SCTP.
type rawPeer struct{ a *sctp.Association }

// newRawPeer connects a peer to a device.
func newRawPeer(t *testing.T, net *sctptest.Network, addr string, to sctp.Addr, cfg sctp.Config) *rawPeer {
	t.Helper()
	c, err := net.NewHost(addr).ListenPacket(addr + ":9899")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{c}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	ind := ddpsctp.Adaptation
	cfg.OutStreams, cfg.InStreams, cfg.NoInterleaving, cfg.Adaptation = 64, 64, true, &ind
	e, err := tr.Listen(0, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.Connect(testContext(t), to)
	if err != nil {
		t.Fatal(err)
	}
	return &rawPeer{a}
}

// send sends a message on a stream, waiting for room at most d.
func (p *rawPeer) send(d time.Duration, sid uint16, ppid uint32, ssn uint16, b []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return p.a.Send(ctx, append(binary.BigEndian.AppendUint16(nil, ssn), b...),
		sctp.SendOptions{Stream: sid, PPID: ppid, Unordered: true})
}

// TestGreedyPeerIsBounded: what a peer can have held for it, by segments out of order
// or for which there is no receive, is bounded by the receive buffer of its association.
func TestGreedyPeerIsBounded(t *testing.T) {
	const buffer = 512 << 10
	for _, c := range []struct {
		name string
		gap  uint16 // between the numbers of segments
		size int    // bytes of payload
		msn  bool   // each segment is a message of its own
	}{
		{name: "gaps", gap: 2},
		{name: "wide gaps", gap: 61},
		{name: "small messages without a receive", gap: 1, msn: true},
		{name: "long messages out of order", gap: 2, size: 1000, msn: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, b, net := newLinkConfig(t, 1, sctptest.Link{}, Config{SCTP: &sctp.Config{RecvBuffer: buffer}})
				defer net.Close()
				defer b.tr.Close()
				srq, _ := b.pd.NewSRQ(SRQConfig{Depth: 16})
				l, err := b.dev.Listen()
				if err != nil {
					t.Fatal(err)
				}
				p := newRawPeer(t, net, "10.0.0.3", b.dev.Addr(), sctp.Config{})
				seg := make([]byte, c.size)
				before := heap()
				for sid := range uint16(60) {
					qb := b.qp(QPConfig{SRQ: srq})
					p.send(time.Second, sid, ddpsctp.PPIDControl, 0, binary.BigEndian.AppendUint16(nil, uint16(ddpsctp.Initiate)))
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					r, err := l.Accept(ctx)
					if errors.Is(err, context.DeadlineExceeded) {
						break // the window is closed
					}
					if err := r.Accept(qb, ConnParams{}); err != nil {
						t.Fatal(err)
					}
					msn := uint32(1)
					for ssn := c.gap; ssn < 1<<15-100; ssn += c.gap {
						h := ddp.Header{Ctrl: rdmap.Control(rdmap.Send), MSN: msn, MO: uint32(ssn)}
						if c.msn {
							h.MO, h.Last = 0, true
							msn++
						}
						if err = p.send(time.Second, sid, ddpsctp.PPIDSegment, ssn, append(ddp.AppendHeader(nil, &h), seg...)); err != nil {
							break
						}
					}
					if errors.Is(err, context.DeadlineExceeded) {
						break // the window is closed
					}
				}
				time.Sleep(time.Second)
				wantHeap(t, before, 5*buffer, fmt.Sprintf("%s: a buffer of %d KiB", c.name, buffer>>10))
				if st := p.a.State(); st != sctp.Established {
					t.Errorf("the association is in state %v: %v", st, p.a.Err())
				}
			})
		})
	}
}
