package reasm

import (
	"bytes"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/wire"
)

// TestReassemblyIsNotQuadratic runs orders of arrival that are bad for lists. It
// would take minutes if a fragment cost more than O(log n).
func TestReassemblyIsNotQuadratic(t *testing.T) {
	const n = 100000
	orders := map[string]func(i int) int{
		"reverse":  func(i int) int { return n - 1 - i },
		"odd even": func(i int) int { return i*2%n + i*2/n },
		"stride":   func(i int) int { return i * 7919 % n },
	}
	for name, at := range orders {
		for _, idata := range []bool{false, true} {
			for _, whole := range []bool{false, true} {
				r := newRecv(Config{Interleaved: idata, Pieces: true, Limit: 1 << 30})
				d := &wire.Data{Payload: []byte("x")}
				for i := range n {
					k := at(i)
					if whole {
						d.SSN, d.MID, d.Begin, d.End = uint16(k), uint32(k), true, true
						if !idata && (k >= 30000 || i >= n) {
							continue // 16 bits
						}
					} else {
						d.FSN, d.Begin, d.End = uint32(k), k == 0, k == n-1
					}
					d.TSN = uint32(k + 1)
					if res := r.Add(d, nil); res != taken {
						t.Fatalf("%s idata=%v whole=%v: add(%d) = %v", name, idata, whole, k, res)
					}
				}
				want := n
				if whole && !idata {
					want = 30000
				}
				if got := len(popAll(r)); got != want {
					t.Errorf("%s idata=%v whole=%v: %d pieces, want %d", name, idata, whole, got, want)
				}
			}
		}
	}
}

// feed is a sender of equal messages for allocation tests and benchmarks.
type feed struct {
	r     *Queue
	pool  slab.Pool
	d     wire.Data
	frags int
	order []int
	dst   []byte
}

func newFeed(cfg Config, size, frags int, order []int) *feed {
	f := &feed{r: newRecv(cfg), frags: frags, order: order, dst: make([]byte, size*frags)}
	f.d = wire.Data{TSN: 1, Payload: bytes.Repeat([]byte{1}, size)}
	return f
}

// message sends and consumes one message.
func (f *feed) message() int {
	buf := f.pool.Get()
	d := f.d
	d.Payload = buf.B[:len(f.d.Payload)]
	for i := range f.frags {
		k := i
		if f.order != nil {
			k = f.order[i]
		}
		d.TSN, d.FSN = f.d.TSN+uint32(k), uint32(k)
		d.Begin, d.End = k == 0, k == f.frags-1
		if f.r.Add(&d, buf).Violation() {
			panic("violation")
		}
	}
	buf.Release()
	f.d.TSN += uint32(f.frags)
	f.d.SSN++
	f.d.MID++
	f.r.CheckUpTo(seq.TSN(f.d.TSN - 1))
	n := 0
	if f.r.cfg.Pieces {
		for p := (Piece{}); f.r.PopPiece(&p); {
			n += len(p.Data)
			p.Release()
		}
		return n
	}
	for {
		k, ok := f.r.Read(AnyStream, f.dst, new(RecvInfo))
		if !ok {
			return n
		}
		n += k
	}
}

var feeds = []struct {
	name  string
	size  int
	frags int
	order []int
}{
	{"size=64/frags=1", 64, 1, nil},
	{"size=1452/frags=1", 1452, 1, nil},
	{"size=1452/frags=32", 1452, 32, nil},
	{"size=1452/frags=4/order=reverse", 1452, 4, []int{3, 2, 1, 0}},
}

func TestReassemblyDoesNotAllocate(t *testing.T) {
	for _, tt := range feeds {
		for _, idata := range []bool{false, true} {
			for _, pieces := range []bool{false, true} {
				f := newFeed(Config{Interleaved: idata, Pieces: pieces}, tt.size, tt.frags, tt.order)
				for range 10 {
					if n := f.message(); n != tt.size*tt.frags {
						t.Fatalf("%s: %d bytes, want %d", tt.name, n, tt.size*tt.frags)
					}
				}
				if got := testing.AllocsPerRun(100, func() { f.message() }); got != 0 {
					t.Errorf("%s idata=%v pieces=%v: %v allocations, want 0", tt.name, idata, pieces, got)
				}
				f.r.Close()
				if f.pool.Live() != 0 {
					t.Errorf("%s: %d buffers live", tt.name, f.pool.Live())
				}
			}
		}
	}
}

func BenchmarkReassembly(b *testing.B) {
	for _, tt := range feeds {
		for _, mode := range []struct {
			name          string
			idata, pieces bool
		}{{"chunk=data/take=pieces", false, true}, {"chunk=idata/take=pieces", true, true}, {"chunk=data/take=read", false, false}} {
			b.Run(tt.name+"/"+mode.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(tt.size * tt.frags))
				f := newFeed(Config{Interleaved: mode.idata, Pieces: mode.pieces}, tt.size, tt.frags, tt.order)
				for b.Loop() {
					f.message()
				}
			})
		}
	}
}
