package reasm

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/wire"
)

// The charges are those of the records that the allocator makes, with room in tables.
func TestChargesCoverTheRecords(t *testing.T) {
	if n := unsafe.Sizeof(frag{}) + 2*unsafe.Sizeof(uintptr(0)); n > fragCharge {
		t.Errorf("a fragment takes %d bytes, charged %d", n, fragCharge)
	}
	if n := unsafe.Sizeof(message{}) + 2*unsafe.Sizeof(uintptr(0)); n > messageRecord {
		t.Errorf("a message takes %d bytes, charged %d", n, messageRecord)
	}
	if n := unsafe.Sizeof(bufpool.Buffer{}); n > blockRecord {
		t.Errorf("a block takes %d bytes, charged %d", n, blockRecord)
	}
}

// heapInUse returns the bytes of live heap.
func heapInUse() int {
	for range 3 { // a sync.Pool lets go of what it has in two rounds
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// floods are what a peer may send that does not care for the window: chunk i, and how
// many of them come in one receive buffer (0: in short datagrams, which have none).
var floods = []struct {
	name   string
	size   int
	perBuf int
	gap    bool // the first TSN never comes
	pieces bool
	idata  bool
	gaps   bool // TSNs with holes between them
	set    func(d *wire.Data, i uint32)
}{
	{name: "tiny", size: 1, set: inOrder},
	{name: "tiny, behind a hole", size: 1, gap: true, set: inOrder},
	{name: "tiny, in receive buffers", size: 1, perBuf: 2000, set: inOrder},
	{name: "tiny, interleaved", size: 1, idata: true, set: inOrder},
	{name: "tiny, out of order", size: 1, gaps: true, set: inOrder},
	{name: "tiny, unordered, by upcall", size: 1, pieces: true, set: unordered},
	{name: "tiny, unordered", size: 1, idata: true, set: unordered},
	{name: "short", size: shortPayload + 1, set: inOrder},
	{name: "short, one in a buffer", size: shortPayload + 1, perBuf: 1, set: inOrder},
	{name: "just aliased, one in a buffer", size: slabMin, perBuf: 1, set: inOrder},
	{name: "just aliased, two in a buffer, unordered", size: slabMin, perBuf: 2, idata: true, set: unordered},
	{name: "a packet, one in a buffer", size: 1400, perBuf: 1, gap: true, set: inOrder},
	{name: "packets, full buffers", size: 1400, perBuf: 44, set: inOrder},
	{name: "packets, half full buffers", size: 1400, perBuf: 22, gap: true, set: inOrder},
	{name: "large", size: 60000, perBuf: 1, gap: true, set: inOrder},
	{name: "fragments without beginning", size: 1, gap: true, set: func(*wire.Data, uint32) {}},
	{name: "fragments without beginning, with gaps", size: 1, gaps: true, set: func(*wire.Data, uint32) {}},
	{name: "messages that are only begun", size: 1, gaps: true, set: func(d *wire.Data, i uint32) {
		d.Begin, d.Unordered = true, true
	}},
	{name: "messages that are only begun, interleaved", size: 1, idata: true, set: func(d *wire.Data, i uint32) {
		d.Begin, d.MID = true, i
	}},
	{name: "fragments with holes, interleaved", size: 1, idata: true, set: func(d *wire.Data, i uint32) {
		d.MID, d.FSN = i/4, 1+2*(i%4)
	}},
	{name: "fragments of one message", size: 1, gap: true, idata: true, set: func(d *wire.Data, i uint32) {
		d.FSN = 1 + i
	}},
	{name: "the last fragment first", size: slabMin, perBuf: 1, idata: true, set: func(d *wire.Data, i uint32) {
		d.MID, d.FSN, d.End, d.Unordered = i, 7, true, true
	}},
}

func inOrder(d *wire.Data, i uint32) {
	d.Begin, d.End, d.SSN, d.MID = true, true, uint16(i), i
}

func unordered(d *wire.Data, i uint32) {
	d.Begin, d.End, d.Unordered, d.MID = true, true, true, i
}

// fill adds what a flood has until nothing is taken any more, and returns how many
// chunks were.
func fill(t *testing.T, r *Queue, pool *slab.Pool, f int) int {
	t.Helper()
	flood := floods[f]
	m := newTSNMap(1)
	small := make([]byte, flood.size)
	var buf *slab.Buf
	refused, added := 0, 0
	for i := uint32(0); refused < 100 && i < seq.MaxWindow/2; i++ {
		d := wire.Data{TSN: i + 1, Payload: small}
		if flood.gap {
			d.TSN++
		}
		if flood.gaps {
			d.TSN = 2*i + 2
		}
		if flood.perBuf > 0 {
			if int(i)%flood.perBuf == 0 {
				if buf != nil {
					buf.Release()
				}
				buf = pool.Get()
			}
			at := int(i) % flood.perBuf * flood.size
			d.Payload = buf.B[at : at+flood.size : at+flood.size]
		}
		flood.set(&d, i)
		if !r.Room(m, seq.TSN(d.TSN), len(d.Payload)) {
			refused++
			continue
		}
		if res := r.Add(&d, buf); res != taken {
			t.Fatalf("chunk %d: %v", i, res)
		}
		m.Observe(seq.TSN(d.TSN))
		added++
	}
	if buf != nil {
		buf.Release()
	}
	runtime.KeepAlive(m)
	return added
}

// heapFactor is how many times Config.RecvBuffer the heap may be that an association
// holds of what was received, see sctp.Config.RecvBuffer.
const heapFactor = 2

// Whatever a peer sends, what is held of it stays within heapFactor of the receive buffer.
func TestReassemblyHeap(t *testing.T) {
	for f, flood := range floods {
		for _, limit := range []int{64 << 10, 2 << 20} {
			t.Run(fmt.Sprintf("%s/%dKiB", flood.name, limit>>10), func(t *testing.T) {
				var pool slab.Pool
				before := heapInUse()
				r := newRecv(Config{Limit: limit, Pieces: flood.pieces, Interleaved: flood.idata})
				added := fill(t, r, &pool, f)
				held := heapInUse() - before
				if most := heapFactor*limit + slab.Size; held > most {
					t.Errorf("%d bytes of heap for %d chunks, more than %d", held, added, most)
				}
				if used := r.window.used(); used < limit {
					t.Errorf("%d chunks fill only %d of %d", added, used, limit)
				}
				// What counts is what is there.
				if count := r.window.held + r.window.idle; held > count+count/4+slab.Size {
					t.Errorf("%d bytes of heap, %d counted", held, count)
				}
				r.Close()
				if live := pool.Live(); live != 0 || r.window.held != 0 || r.window.idle != 0 {
					t.Errorf("%d buffers, %d and %d bytes left", live, r.window.held, r.window.idle)
				}
				if left := heapInUse() - before; left > limit/2+slab.Size {
					t.Errorf("%d bytes of heap are left when nothing is held", left)
				}
				runtime.KeepAlive(r)
			})
		}
	}
}

// A reader that takes all but a few bytes of each receive buffer does not make an
// association hold more than that either.
func TestPinnedRemnantsCount(t *testing.T) {
	const limit = 1 << 20
	var pool slab.Pool
	before := heapInUse()
	r := newRecv(Config{Limit: limit, Interleaved: true})
	m := newTSNMap(1)
	tsn := uint32(0)
	dst := make([]byte, 2000)
	for range 100 {
		buf := pool.Get()
		for k := range 44 {
			tsn++
			// One of each buffer is of a stream that is not read.
			sid := uint16(min(k, 1))
			d := wire.Data{TSN: tsn, SID: sid, Begin: true, End: true, Unordered: true, MID: tsn, Payload: buf.B[k*1400 : k*1400+1400]}
			if !r.Room(m, seq.TSN(tsn), 1400) {
				tsn--
				continue
			}
			if res := r.Add(&d, buf); res != taken {
				t.Fatal(res)
			}
			m.Observe(seq.TSN(tsn))
		}
		buf.Release()
		for r.ReadableStream(1) {
			r.Read(1, dst, new(RecvInfo))
		}
	}
	if held := heapInUse() - before; held > heapFactor*limit+slab.Size {
		t.Errorf("%d bytes of heap", held)
	}
	if r.window.used() > r.window.bound() {
		t.Errorf("%d used, more than %d", r.window.used(), r.window.bound())
	}
	r.Close()
	if pool.Live() != 0 || r.window.idle != 0 {
		t.Errorf("%d buffers, %d bytes left", pool.Live(), r.window.idle)
	}
}
