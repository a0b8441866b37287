package core

import (
	"math/rand/v2"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

const (
	msec clock.Time = 1_000_000
	sec             = 1000 * msec
)

// noLog drops the log of tests with thousands of steps.
type noLog struct{ testing.TB }

func (noLog) Logf(string, ...any) {}

// txLink is a bottleneck between the two ends of a pair: data goes through a
// queue of some length at some rate, and a part of it gets lost; SACKs only take
// their time. It has no ledger, so it can carry a lot.
type txLink struct {
	rate         int64      // bits per second
	delay        clock.Time // one way
	queue        clock.Time // longest delay in the queue
	loss         float64
	rng          *rand.Rand
	busy         clock.Time
	a, z         *Assoc
	now          clock.Time
	toA, toZ     []txPacket
	mem          []byte // of buffers for packets
	sent, drops  int
	delivered    int
	longestStall clock.Time
	lastDelivery clock.Time
	quiet        bool // run sends nothing new
}

type txPacket struct {
	at clock.Time
	p  Packet
}

func newTxLink(t *testing.T, cfg *Config, rate int64, delay, queue clock.Time, loss float64) *txLink {
	t.Helper()
	p := newPair(noLog{t}, 1, cfg)
	p.connect()
	p.advance(1_000_000_000)
	return &txLink{rate: rate, delay: delay, queue: queue, loss: loss, rng: rand.New(rand.NewPCG(3, 5)),
		a: p.a.assoc, z: p.z.assoc, now: p.now, busy: p.now, lastDelivery: p.now}
}

func (l *txLink) flush(from *Assoc, data bool) {
	for {
		buf, tx, ok := from.PollTransmit(l.now, l.buf(), 44)
		if !ok {
			return
		}
		l.mem = l.mem[:len(l.mem)+len(buf)]
		for len(buf) > 0 {
			n := min(tx.SegSize, len(buf))
			p := txPacket{l.now + l.delay, Packet{Tuple: Tuple{Local: tx.Remote, Remote: tx.Local}, ECN: tx.ECN, Data: buf[:n:n]}}
			buf = buf[n:]
			if !data {
				l.toA = append(l.toA, p)
				continue
			}
			l.sent++
			l.busy = max(l.busy, l.now)
			if l.busy-l.now > l.queue || l.rng.Float64() < l.loss {
				l.drops++
				continue
			}
			l.busy += clock.Time(int64(n+28) * 8_000_000_000 / l.rate)
			p.at = l.busy + l.delay
			l.toZ = append(l.toZ, p)
		}
	}
}

// buf returns a buffer for a batch.
func (l *txLink) buf() []byte {
	if l.mem == nil || cap(l.mem)-len(l.mem) < 64<<10 {
		l.mem = make([]byte, 0, 1<<20)
	}
	return l.mem[len(l.mem):]
}

// run sends as much as it can for d and returns the goodput in bits per second.
func (l *txLink) run(t *testing.T, d clock.Time) int64 {
	t.Helper()
	start, msg, buf := l.now, make([]byte, 32<<10), make([]byte, 64<<10)
	l.delivered = 0
	for l.now-start < d {
		for !l.quiet && l.a.Send(l.now, &tx.Message{SID: 1, Body: msg}) == nil {
		}
		l.flush(l.a, true)
		l.flush(l.z, false)
		at := start + d
		for _, x := range []clock.Time{l.a.NextTimeout(), l.z.NextTimeout()} {
			if x != 0 {
				at = min(at, x)
			}
		}
		if len(l.toZ) > 0 {
			at = min(at, l.toZ[0].at)
		}
		if len(l.toA) > 0 {
			at = min(at, l.toA[0].at)
		}
		l.now = max(l.now, at)
		l.a.HandleTimeout(l.now)
		l.z.HandleTimeout(l.now)
		for ; len(l.toZ) > 0 && l.toZ[0].at <= l.now; l.toZ = l.toZ[1:] {
			l.z.HandlePacket(l.now, &l.toZ[0].p)
		}
		l.z.EndBatch(l.now)
		for ; len(l.toA) > 0 && l.toA[0].at <= l.now; l.toA = l.toA[1:] {
			l.a.HandlePacket(l.now, &l.toA[0].p)
		}
		l.a.EndBatch(l.now)
		for {
			n, ok := l.z.Read(buf, new(reasm.RecvInfo))
			if !ok {
				break
			}
			l.delivered += n
			l.longestStall = max(l.longestStall, l.now-l.lastDelivery)
			l.lastDelivery = l.now
		}
		l.a.TakeReleases(nil)
		for _, a := range []*Assoc{l.a, l.z} {
			for {
				if _, ok := a.PollEvent(); !ok {
					break
				}
			}
			if a.State() != Established {
				t.Fatalf("association is %v: %v", a.State(), a.Err())
			}
		}
	}
	return int64(l.delivered) * 8 * 1_000_000_000 / int64(l.now-start)
}

// A path of some rate, delay and loss is used well.
func TestGoodputOverALink(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cfg   Config
		rate  int64
		delay clock.Time
		queue clock.Time
		loss  float64
		want  int64 // at least
	}{
		{"100 Mb/s, 20 ms", Config{}, 100e6, 10 * msec, 20 * msec, 0, 80e6},
		{"100 Mb/s, 20 ms, NewReno", Config{Congestion: cc.NewReno}, 100e6, 10 * msec, 20 * msec, 0, 75e6},
		{"100 Mb/s, 20 ms, without RACK", Config{NoRACK: true}, 100e6, 10 * msec, 20 * msec, 0, 50e6},
		{"300 Mb/s, 100 ms, short queue", Config{SendBuffer: 64 << 20, RecvBuffer: 64 << 20}, 300e6, 50 * msec, 10 * msec, 0, 100e6},
		{"100 Mb/s, 2 ms, 1 % loss", Config{}, 100e6, msec, 20 * msec, 0.01, 25e6},
		{"10 Mb/s, 40 ms, 0.1 % loss", Config{}, 10e6, 20 * msec, 50 * msec, 0.001, 6e6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newTxLink(t, &tt.cfg, tt.rate, tt.delay, tt.queue, tt.loss)
			got := l.run(t, 4*sec)
			st := l.a.Stats()
			t.Logf("goodput %.1f Mb/s, %d packets, %d lost, %d retransmitted, %d timeouts, longest stall %d ms, %+v",
				float64(got)/1e6, l.sent, l.drops, st.Retransmits, st.Timeouts, l.longestStall/msec, l.a.PathStats(0))
			t.Logf("%+v", l.a.tx.sb.Stats())
			if n := l.a.tx.sb.Stats().Retransmits; n > uint64(l.drops)*11/10+50 {
				t.Errorf("%d retransmissions for %d lost packets", n, l.drops)
			}
			if got < tt.want {
				t.Errorf("goodput = %d b/s, want at least %d", got, tt.want)
			}
		})
	}
}
