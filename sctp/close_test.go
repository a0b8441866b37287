package sctp_test

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// TestCloseSendsItsAborts closes a transport while other goroutines send: the
// peer has to hear of the end.
func TestCloseSendsItsAborts(t *testing.T) {
	for i := range 20 {
		// What is in flight fits the peer's socket, so that no ABORT is lost there.
		p := newLoopbackPair(t, sctp.TransportConfig{}, nil, &sctp.Config{RecvBuffer: 32 << 10})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for msg := make([]byte, 1000); ; {
					if err := p.a.TrySend(msg, sctp.SendOptions{}); err != nil && !errors.Is(err, sctp.ErrWouldBlock) {
						return
					}
				}
			})
		}
		for buf := make([]byte, 1000); ; {
			if _, _, err := p.b.Recv(t.Context(), buf); err != nil {
				t.Fatal(err)
			}
			break
		}
		p.a.Abort("over")
		p.ta.Close()
		wg.Wait()
		select {
		case <-p.b.Done():
			var abort *sctp.AbortError
			if !errors.As(p.b.Err(), &abort) || !abort.ByPeer {
				t.Fatalf("run %d: the peer's association ended with %v", i, p.b.Err())
			}
		case <-time.After(5 * time.Minute):
			t.Fatalf("run %d: the peer did not hear of the end", i)
		}
	}
}

// slowConn is a socket that takes long for what it sends while slow is set.
type slowConn struct {
	*sctptest.PacketConn
	slow *atomic.Bool
}

func (c slowConn) WriteTrain(b []byte, size int, local netip.Addr, remote netip.AddrPort, ecn uint8) error {
	if c.slow.Load() {
		time.Sleep(100 * time.Millisecond)
	}
	return c.PacketConn.WriteTrain(b, size, local, remote, ecn)
}

// The goroutine that transmits may be held up for long, by a busy machine for
// example: Close waits for it, because it is the one that sends the ABORT.
func TestCloseWaitsForWhoTransmits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		pc, err := n.NewHost(addrA).ListenPacket(":9899")
		if err != nil {
			t.Fatal(err)
		}
		var slow atomic.Bool
		p := &pair{t: t, net: n}
		p.ta = newTransport(t, sctp.TransportConfig{Conns: []sctp.PacketConn{slowConn{pc, &slow}}})
		p.tb = memTransport(t, n.NewHost(addrB))
		p.connect(nil, nil)
		synctest.Wait()
		slow.Store(true)
		go p.a.Send(t.Context(), []byte("x"), sctp.SendOptions{})
		synctest.Wait() // it is writing
		p.a.Abort("over")
		p.ta.Close()
		select {
		case <-p.b.Done():
		case <-time.After(time.Second):
			t.Fatal("the peer did not hear of the end")
		}
		var abort *sctp.AbortError
		if !errors.As(p.b.Err(), &abort) || !abort.ByPeer {
			t.Errorf("the peer's association ended with %v", p.b.Err())
		}
	})
}
