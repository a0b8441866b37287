package verbs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// newLink makes two nodes on an emulated network, in a synctest bubble.
func newLink(t *testing.T, seed uint64, l sctptest.Link) (a, b *node, net *sctptest.Network) {
	t.Helper()
	return newLinkConfig(t, seed, l, Config{})
}

// newLinkConfig is newLink with parameters of the devices.
func newLinkConfig(t *testing.T, seed uint64, l sctptest.Link, cfg Config) (a, b *node, net *sctptest.Network) {
	t.Helper()
	net = sctptest.NewNetwork(seed)
	net.SetDefault(l)
	open := func(addr string) *node {
		h := net.NewHost(addr)
		c, err := h.ListenPacket(addr + ":9899")
		if err != nil {
			t.Fatal(err)
		}
		tr, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{c}})
		if err != nil {
			t.Fatal(err)
		}
		return nodeOn(t, tr, cfg)
	}
	return open("10.0.0.1"), open("10.0.0.2"), net
}

// TestLossyLink moves data over links that lose, duplicate, corrupt and reorder
// packets: placement is out of order nearly all the time.
func TestLossyLink(t *testing.T) {
	base := rand.Uint64()
	for i := range uint64(6) {
		seed := base + i
		t.Run(fmt.Sprintf("seed=%#x", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, net := newLink(t, seed, sctptest.Link{Delay: 2 * time.Millisecond, Loss: 0.03, Duplicate: 0.02, Corrupt: 0.01,
					Reorder: 0.2, ReorderDelay: 5 * time.Millisecond})
				defer net.Close()
				defer a.tr.Close()
				defer b.tr.Close()
				qa, qb := connect(t, a, b, QPConfig{RecvDepth: 64}, QPConfig{RecvDepth: 64})
				const size = 1 << 18
				src, dst, back := a.mr(size, 0), b.mr(size, RemoteRead|RemoteWrite), a.mr(size, LocalWrite)
				inbox := b.mr(16, LocalWrite)
				for round := range 4 {
					fillPattern(src.Bytes(), byte(round))
					if err := qb.PostRecv(RecvWR{ID: 1, SGL: []SGE{inbox.Slice(0, 16)}}); err != nil {
						t.Fatal(err)
					}
					if err := qa.PostSend(
						SendWR{ID: 2, Op: OpWrite, SGL: []SGE{src.Slice(0, size)}, Remote: dst.Remote()},
						SendWR{ID: 3, Op: OpSend, Inline: []byte{byte(round)}},
						SendWR{ID: 4, Op: OpRead, Flags: Signaled, SGL: []SGE{back.Slice(0, size)}, Remote: dst.Remote()},
					); err != nil {
						t.Fatal(err)
					}
					want(t, b.rcq, 1, StatusSuccess)
					if inbox.Bytes()[0] != byte(round) || !bytes.Equal(dst.Bytes(), src.Bytes()) {
						t.Fatalf("round %d: the send came before the write was placed", round)
					}
					want(t, a.cq, 4, StatusSuccess)
					if !bytes.Equal(back.Bytes(), src.Bytes()) {
						t.Fatalf("round %d: read differs", round)
					}
				}
				if err := qa.Disconnect(testContext(t)); err != nil {
					t.Fatal(err)
				}
				wantDone(t, qb, ErrDisconnected)
				if net.Total().Lost == 0 {
					t.Error("nothing was lost")
				}
			})
		})
	}
}
