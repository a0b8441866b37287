package verbs

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/rdmap"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// TestRefusalsDoNotPileUp: a peer that asks for connections without end and does not
// read the answers loses its association before they take much memory.
func TestRefusalsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, net := newLink(t, 1, sctptest.Link{})
		defer net.Close()
		defer a.tr.Close()
		defer b.tr.Close()
		p := newRawPeer(t, net, "10.0.0.3", b.dev.Addr(), sctp.Config{RecvBuffer: 4096})
		before := heap()
		for i := range 200000 {
			if p.send(time.Minute, uint16(i%64), ddpsctp.PPIDControl, 0, []byte{0, byte(ddpsctp.Initiate)}) != nil {
				break
			}
		}
		time.Sleep(time.Minute)
		wantHeap(t, before, 2<<20, "answers that nobody reads")
		if st := p.a.State(); st != sctp.Closed {
			t.Errorf("the association of the peer is in state %v, want closed", st)
		}
	})
}

// TestSilentPeersAreGivenUp: a peer that never ends a session keeps neither queue pairs
// in memory nor streams from being used again.
func TestSilentPeersAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams, rounds, pairs = 64, 4, 50
		a, b, net := newLink(t, 1, sctptest.Link{Delay: time.Millisecond})
		defer net.Close()
		defer a.tr.Close()
		defer b.tr.Close()
		p := newRawPeer(t, net, "10.0.0.3", a.dev.Addr(), sctp.Config{})
		go func() { // accepts sessions, and says no more
			buf := make([]byte, 2000)
			for {
				n, info, err := p.a.Recv(t.Context(), buf)
				if err != nil {
					return
				}
				if info.PPID == ddpsctp.PPIDControl && n >= 4 && binary.BigEndian.Uint16(buf[2:]) == uint16(ddpsctp.EnhancedInitiate) {
					p.send(time.Minute, info.Stream, ddpsctp.PPIDControl, 0, []byte{0, byte(ddpsctp.Accept)})
				}
			}
		}()
		addr := p.a.LocalAddr()
		before := heap()
		for round := range rounds {
			for i := range pairs {
				qp := a.qp(QPConfig{SendDepth: 1024, RecvDepth: 1024})
				if _, err := a.dev.Connect(testContext(t), addr, qp, ConnParams{}); err != nil {
					t.Fatalf("round %d, connection %d: %v", round, i, err)
				}
				qp.Close()
				wantDone(t, qp, ErrDisconnected)
			}
			time.Sleep(2*rdmap.Linger + time.Minute) // until nothing of the sessions can come any more
			wantHeap(t, before, 1<<20, "queue pairs whose peer never ended the connection")
		}
		if got := a.dev.Stats().Regions; got != 0 {
			t.Errorf("%d STags are left", got)
		}
	})
}
