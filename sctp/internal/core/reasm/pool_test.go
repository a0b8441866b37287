package reasm

import (
	"strings"
	"testing"

	"github.com/weftstack/weft/sctp/internal/slab"
)

// Short payloads are in the fragment, longer ones in blocks; either is the payload.
func TestShortPayloadsAreInTheFragment(t *testing.T) {
	r := newRecv(Config{Pieces: true})
	want := strings.Repeat("abcdefghi", shortPayload)
	for i, n := range []int{1, shortPayload, shortPayload + 1, slabMin} {
		mustAdd(t, r, chunk(uint32(i)+1, 0, uint32(i), 0, "BE", want[:n]))
		var p Piece
		if !r.PopPiece(&p) || string(p.Data) != want[:n] {
			t.Fatalf("payload of %d bytes: %q", n, p.Data)
		}
		if short := &p.Data[0] == &p.frag.short[0]; short != (n <= shortPayload) || short == (p.frag.block != nil) {
			t.Errorf("payload of %d bytes: in the fragment %v, block %v", n, short, p.frag.block)
		}
		p.Release()
	}
}

func TestPayloadsAliasOrAreCopied(t *testing.T) {
	var pool slab.Pool
	r := newRecv(Config{Pieces: true})
	buf := pool.Get()
	add := func(tsn uint32, n int) {
		t.Helper()
		d := chunk(tsn, 0, tsn-1, 0, "BE", "")
		d.Payload = buf.B[:n]
		if res := r.Add(d, buf); res != taken {
			t.Fatal(res)
		}
	}
	add(1, slabMin-1)
	if buf.Shared() {
		t.Error("a small payload pins the receive buffer")
	}
	add(2, slabMin)
	add(3, slabMin)
	if !buf.Shared() || r.mem.pinned != 1 {
		t.Errorf("shared %v, %d pinned; want one reference for both", buf.Shared(), r.mem.pinned)
	}
	buf.Release()
	for i, aliased := range []bool{false, true, true} {
		var p Piece
		ok := r.PopPiece(&p)
		if !ok || (p.Buf == buf) != aliased || aliased != (&p.Data[0] == &buf.B[0]) {
			t.Fatalf("piece %d: %v, buf %p, want aliased %v", i, ok, p.Buf, aliased)
		}
		if pool.Live() != 1 {
			t.Errorf("buffer gone while piece %d is out", i)
		}
		p.Release()
	}
	if pool.Live() != 0 {
		t.Errorf("%d buffers live, want 0", pool.Live())
	}
}

func TestPinnedBuffersAreBounded(t *testing.T) {
	// One small chunk per datagram, each in a buffer of 64 KiB.
	var pool slab.Pool
	r := newRecv(Config{Limit: 256 << 10})
	const most = 1 // a quarter of the receive buffer
	for tsn := uint32(2); tsn < 200; tsn++ {
		buf := pool.Get()
		d := chunk(tsn, 0, tsn, 0, "BE", "")
		d.Payload = buf.B[:300]
		d.Payload[0] = byte(tsn)
		if res := r.Add(d, buf); res != taken {
			t.Fatal(res)
		}
		buf.Release()
	}
	if got := int(pool.Live()); got != most || r.mem.pinned != most {
		t.Errorf("%d buffers pinned (%d counted), want %d", got, r.mem.pinned, most)
	}
	mustAdd(t, r, chunk(1, 0, 0, 0, "BE", "x"), chunk(200, 0, 1, 0, "BE", "x"))
	dst := make([]byte, 1000)
	for i := range 200 {
		n, ok := r.Read(AnyStream, dst, new(RecvInfo))
		if !ok || i >= 2 && (n != 300 || dst[0] != byte(i)) {
			t.Fatalf("read %d: %d bytes %v", i, n, ok)
		}
	}
	if pool.Live() != 0 || r.window.held != 0 {
		t.Errorf("%d buffers, %d bytes left", pool.Live(), r.window.held)
	}
}

// Few fragments take little memory, and many few allocations.
func TestFragmentsAreMadeInBatches(t *testing.T) {
	var p fragPool
	for i := range 4 * fragBatch {
		p.get([]byte{1}, nil)
		if held := i + 1 + p.nfrags; held > min(2*(i+1), i+1+fragBatch) {
			t.Fatalf("%d fragments made for %d", held, i+1)
		}
	}
	if p.made != fragBatch {
		t.Errorf("batches of %d in the end, want %d", p.made, fragBatch)
	}
}
