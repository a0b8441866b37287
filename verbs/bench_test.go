package verbs

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
)

// benchPair connects two devices over loopback.
func benchPair(b *testing.B, spin time.Duration) (a, z *benchNode) {
	b.Helper()
	a, z = newBenchNode(b, spin), newBenchNode(b, spin)
	l, err := z.dev.Listen()
	if err != nil {
		b.Fatal(err)
	}
	errc := make(chan error, 1)
	go func() {
		r, err := l.Accept(context.Background())
		if err == nil {
			err = r.Accept(z.qp, ConnParams{})
		}
		errc <- err
	}()
	if _, err := a.dev.Connect(context.Background(), z.dev.Addr(), a.qp, ConnParams{}); err != nil {
		b.Fatal(err)
	}
	if err := <-errc; err != nil {
		b.Fatal(err)
	}
	return a, z
}

type benchNode struct {
	dev *Device
	pd  *PD
	cq  *CQ
	qp  *QP
}

func newBenchNode(b *testing.B, spin time.Duration) *benchNode {
	b.Helper()
	tr, err := sctp.NewTransport(sctp.TransportConfig{
		LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, BusyPoll: spin})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { tr.Close() })
	n := &benchNode{}
	if n.dev, err = Open(Config{Transport: tr}); err != nil {
		b.Fatal(err)
	}
	n.pd = n.dev.AllocPD()
	if n.cq, err = n.dev.NewCQ(1024); err != nil {
		b.Fatal(err)
	}
	if n.qp, err = n.pd.NewQP(QPConfig{SendCQ: n.cq, RecvCQ: n.cq}); err != nil {
		b.Fatal(err)
	}
	return n
}

func (n *benchNode) mr(b *testing.B, size int, access Access) *MR {
	mr, err := n.pd.Register(make([]byte, size), access)
	if err != nil {
		b.Fatal(err)
	}
	return mr
}

func BenchmarkTransfer(b *testing.B) {
	for _, op := range []Opcode{OpWrite, OpRead} {
		for _, size := range []int{64, 4 << 10, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("op=%v/size=%d", op, size), func(b *testing.B) {
				a, z := benchPair(b, 0)
				transfer(b, a, z, op, size)
			})
		}
	}
}

// transfer has up to 16 operations under way.
func transfer(b *testing.B, a, z *benchNode, op Opcode, size int) {
	src, dst := a.mr(b, size, LocalWrite), z.mr(b, size, RemoteWrite|RemoteRead)
	const depth = 16
	var wc [depth]WC
	free := depth
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for free == 0 {
			n, err := a.cq.Wait(context.Background(), wc[:])
			if err != nil {
				b.Fatal(err)
			}
			for i := range n {
				if wc[i].Status != StatusSuccess {
					b.Fatal(wc[i].Err())
				}
			}
			free += n
		}
		sgl := [1]SGE{src.Slice(0, size)}
		if err := a.qp.PostSend(SendWR{Op: op, Flags: Signaled, SGL: sgl[:], Remote: dst.Remote()}); err != nil {
			b.Fatal(err)
		}
		free--
	}
}

func BenchmarkPingPong(b *testing.B) {
	for _, spin := range []time.Duration{-1, 50 * time.Microsecond} {
		b.Run(fmt.Sprintf("busypoll=%v", spin), func(b *testing.B) {
			a, z := benchPair(b, spin)
			ma, mz := a.mr(b, 64, LocalWrite), z.mr(b, 64, LocalWrite)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			done := make(chan struct{})
			post := func(n *benchNode, m *MR) {
				sgl := [1]SGE{m.Slice(0, 64)}
				if err := n.qp.PostRecv(RecvWR{SGL: sgl[:]}); err != nil {
					panic(err)
				}
			}
			var payload [8]byte
			post(a, ma)
			post(z, mz)
			go func() {
				defer close(done)
				var wc [1]WC
				for {
					if _, err := z.cq.Wait(ctx, wc[:]); err != nil {
						return
					}
					post(z, mz)
					if z.qp.PostSend(SendWR{Op: OpSend, Inline: payload[:]}) != nil {
						return
					}
				}
			}()
			var wc [1]WC
			b.ReportAllocs()
			for b.Loop() {
				if err := a.qp.PostSend(SendWR{Op: OpSend, Inline: payload[:]}); err != nil {
					b.Fatal(err)
				}
				if _, err := a.cq.Wait(ctx, wc[:]); err != nil || wc[0].Status != StatusSuccess {
					b.Fatal(err, wc[0].Err())
				}
				post(a, ma)
			}
			cancel()
			<-done
		})
	}
}
