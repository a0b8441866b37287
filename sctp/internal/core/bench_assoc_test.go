package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/internal/slab"
)

// pump joins two established associations back to back, with batches as large
// as a driver's, slabs, and a clock that ticks a microsecond per batch.
type pump struct {
	a, z *Assoc
	now  clock.Time
	pool slab.Pool
	buf  []byte
	dst  []byte
	rel  []tx.Release
	got  int
	pkts int
	// lose, if not 0, is how many packets there are per lost one.
	lose int
	// waits counts how often nothing moved.
	waits int
}

func newPump(tb testing.TB, cfg *Config) *pump {
	p := newPair(tb, 1, cfg)
	p.connect()
	p.advance(time.Second)
	return &pump{a: p.a.assoc, z: p.z.assoc, now: p.now, buf: make([]byte, 0, slab.Size), dst: make([]byte, 1<<20)}
}

// move carries one batch from one association to the other.
func (u *pump) move(from, to *Assoc) bool {
	b := u.pool.Get()
	out, tx, ok := from.PollTransmit(u.now, b.B[:0], 45)
	if !ok {
		b.Release()
		return false
	}
	if len(out) > len(b.B) {
		panic("the batch outgrew its buffer")
	}
	for n := 0; n < len(out); n += tx.SegSize {
		p := Packet{Tuple: Tuple{Local: tx.Remote, Remote: tx.Local}, ECN: tx.ECN, Data: out[n:min(n+tx.SegSize, len(out))], Buf: b}
		if u.pkts++; u.lose == 0 || u.pkts%u.lose != 0 {
			to.HandlePacket(u.now, &p)
		}
	}
	to.EndBatch(u.now)
	b.Release()
	return true
}

// run moves everything there is to move both ways, reading at Z, until all is
// acknowledged; when nothing moves it lets time pass.
func (u *pump) run() {
	for !u.a.tx.dry() {
		u.now += 1000
		busy := u.move(u.a, u.z)
		for {
			n, ok := u.z.Read(u.dst, new(reasm.RecvInfo))
			if !ok {
				break
			}
			u.got += n
		}
		for u.move(u.z, u.a) {
			busy = true
		}
		u.rel = u.a.TakeReleases(u.rel[:0])
		for _, ok := u.a.PollEvent(); ok; _, ok = u.a.PollEvent() {
		}
		if !busy {
			u.waits++
			u.now = max(u.now, timer.Earliest(u.a.NextTimeout(), u.z.NextTimeout()))
		}
		u.a.HandleTimeout(u.now)
		u.z.HandleTimeout(u.now)
	}
}

func BenchmarkBulk(b *testing.B) {
	for _, size := range []int{64, 1024, 1 << 20} {
		for _, noIData := range []bool{false, true} {
			b.Run(fmt.Sprintf("size=%d/idata=%v", size, !noIData), func(b *testing.B) {
				u := newPump(b, &Config{NoInterleaving: noIData, MTU: 1452, NoPacing: true})
				msg := make([]byte, size)
				const chunk = 1 << 20
				b.SetBytes(chunk)
				b.ReportAllocs()
				for b.Loop() {
					for range chunk / size {
						if err := u.a.Send(u.now, &tx.Message{Body: msg}); err != nil {
							u.run()
							u.a.Send(u.now, &tx.Message{Body: msg, Force: true})
						}
					}
					u.run()
				}
			})
		}
	}
}

func BenchmarkPingPong(b *testing.B) {
	u := newPump(b, &Config{MTU: 1452})
	msg := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		u.a.Send(u.now, &tx.Message{Body: msg, Force: true})
		u.run()
	}
}

// In steady state neither packets nor messages allocate.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	if testenv.Race {
		t.Skip("pools forget at random under the race detector")
	}
	for _, size := range []int{1, 64, 1000, 100_000} {
		for _, noIData := range []bool{false, true} {
			u := newPump(t, &Config{NoInterleaving: noIData, MTU: 1452, NoPacing: true})
			if size == 1000 {
				u.lose = 37
			}
			msg := make([]byte, size)
			m := &tx.Message{Body: msg, Force: true}
			round := func() {
				for i := range min(max(50_000/size, 5), 50) {
					m.SID = uint16(i % 4)
					if err := u.a.Send(u.now, m); err != nil {
						t.Fatalf("size %d, message %d: %v, %+v", size, i, err, u.a.Stats())
					}
					u.now += 100
				}
				u.run()
			}
			for range 100 {
				round()
			}
			if n := testing.AllocsPerRun(50, round); n > 1 { // the pool of slabs may be emptied by the collector
				t.Errorf("size %d, NoInterleaving %v: %v allocations per round", size, noIData, n)
			}
		}
	}
}
