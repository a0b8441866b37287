package verbs

import (
	"fmt"
	"runtime"
	"testing"
)

// A program that does nothing but poll its queues makes progress, over SCTP and over TCP,
// with one processor as with more. Without that a round trip takes 100 ms and more with one
// processor, and tens of millions of calls: the runtime has to stop a goroutine that does
// not end, several times.
func TestPollAloneMakesProgress(t *testing.T) {
	const rounds, most = 100, 1 << 20
	for _, procs := range []int{1, 2} {
		for _, kind := range []string{"SCTP", "TCP"} {
			t.Run(fmt.Sprintf("%s/procs=%d", kind, procs), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				var a, b *node
				var qa, qb *QP
				if kind == "SCTP" {
					a, b = newNode(t, Config{}), newNode(t, Config{})
					qa, qb = connect(t, a, b, QPConfig{}, QPConfig{})
				} else {
					a, b = newTCPNode(t, Config{}), newTCPNode(t, Config{})
					qa, qb = connectTCP(t, a, b, QPConfig{}, QPConfig{})
				}
				src, dst := a.mr(1<<16, 0), b.mr(1<<16, RemoteWrite)
				spin := func(cq *CQ) {
					t.Helper()
					var wc [1]WC
					for i := 0; cq.Poll(wc[:]) == 0; i++ {
						if i == most {
							t.Fatalf("no progress in %d calls: queue pairs are in states %v and %v", i, qa.State(), qb.State())
						}
					}
					if err := wc[0].Err(); err != nil {
						t.Fatal(err)
					}
				}
				for range rounds {
					if err := qb.PostRecv(RecvWR{}); err != nil {
						t.Fatal(err)
					}
					if err := qa.PostSend(
						SendWR{Op: OpWriteImm, Flags: Signaled, SGL: []SGE{src.Slice(0, 1<<16)}, Remote: dst.Remote()}); err != nil {
						t.Fatal(err)
					}
					spin(b.rcq)
					spin(a.cq)
				}
			})
		}
	}
}
