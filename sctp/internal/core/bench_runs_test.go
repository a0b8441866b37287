package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/internal/slab"
)

// BenchmarkRuns sends messages whose bytes are in runs with gaps as long between them: from where
// they are, and packed into a body first. It reports the time of the sender for a message, to
// the complete packets.
func BenchmarkRuns(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20} {
		for _, run := range []int{16, 64, 256, 1 << 10, 4 << 10} {
			for _, how := range []string{"packed", "runs"} {
				b.Run(fmt.Sprintf("size=%d/run=%d/how=%s", size, run, how), func(b *testing.B) {
					benchRuns(b, size, run, how == "runs")
				})
			}
		}
	}
}

func benchRuns(b *testing.B, size, run int, runs bool) {
	u := newPump(b, &Config{MTU: 1452, NoPacing: true})
	src, mem := make([]byte, 2*size), make([]byte, size)
	var list [][]byte
	for at := 0; at < len(src); at += 2 * run {
		list = append(list, src[at:at+run])
	}
	buf := make([]byte, 0, slab.Size)
	vecs := make([]slab.IOVec, 0, 64)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var took time.Duration
	n := 0
	for b.Loop() {
		begin := time.Now()
		m := tx.Message{Force: true}
		if runs {
			m.SetRuns(list)
		} else {
			at := 0
			for _, r := range list {
				at += copy(mem[at:], r)
			}
			m.Body = mem
		}
		if err := u.a.Send(u.now, &m); err != nil {
			b.Fatal(err)
		}
		for {
			u.now += 1000
			out, t, ok := u.a.PollTransmitGather(u.now, buf, 45, &vecs, 4096)
			took += time.Since(begin)
			if !ok {
				break
			}
			for at := 0; at < len(out); at += t.SegSize {
				to := Tuple{Local: t.Remote, Remote: t.Local}
				u.z.HandlePacket(u.now, &Packet{Tuple: to, Data: out[at:min(at+t.SegSize, len(out))]})
			}
			u.z.EndBatch(u.now)
			for ok := true; ok; {
				_, ok = u.z.Read(u.dst, new(reasm.RecvInfo))
			}
			for u.move(u.z, u.a) {
			}
			begin = time.Now()
		}
		u.run() // the delayed acknowledgement
		n++
	}
	b.ReportMetric(float64(took)/float64(n), "sender-ns/op")
}
