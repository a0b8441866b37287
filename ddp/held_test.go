package ddp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// sharedULP notes what is delivered from a pool, and checks that it is what was sent.
type sharedULP struct {
	testULP
	t    *testing.T
	want [][]byte
	got  int
	ids  []uint64
}

func (u *sharedULP) Deliver(h *Header, n uint32, b *Buffer, length uint32) Fault {
	if b == nil {
		return 0
	}
	if u.got >= len(u.want) || !bytes.Equal(b.SGL[0].B[:length], u.want[u.got]) {
		u.t.Fatalf("message %d differs", u.got)
	}
	u.got++
	u.ids = append(u.ids, b.ID)
	return 0
}

// newShared returns a receiver whose queue 0 takes buffers of size bytes from a pool,
// and what posts them.
func newShared(t *testing.T, depth, size int) (*Receiver, *sharedULP, *Pool, func(n int)) {
	u := &sharedULP{t: t, testULP: testULP{mem: make([]byte, 10)}}
	r := &Receiver{}
	r.Init(u)
	p := NewPool(depth, 1, func() {})
	r.Share(0, p, r.Resume)
	id := uint64(0)
	return r, u, p, func(n int) {
		t.Helper()
		if !p.Reserve(n) {
			t.Fatal("the pool is full")
		}
		for range n {
			b := p.Next()
			b.ID, b.SGL = id, append(b.SGL, Mem{B: make([]byte, size)})
			id++
			p.Post()
		}
		p.Commit()
	}
}

// segment makes a segment of an untagged message.
func segment(msn, mo uint32, last bool, p []byte) []byte {
	return append(AppendHeader(nil, &Header{MSN: msn, MO: mo, Last: last}), p...)
}

// TestOvertakingTakesNoBuffers: a message that lacks a segment is overtaken by as many
// as the window allows. They take no buffers of the pool before their turn, so that
// none lacks one for the message that is next.
func TestOvertakingTakesNoBuffers(t *testing.T) {
	const n = 2000
	r, u, p, post := newShared(t, 4, 100)
	post(4)
	for i := range uint32(n) {
		u.want = append(u.want, fmt.Appendf(nil, "message %d", i))
		if i > 0 {
			if err := r.Segment(uint64(i), segment(i+1, 0, true, u.want[i])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if left, _, _ := p.Len(); left != 4 || u.got != 0 {
		t.Fatalf("%d buffers left, %d messages delivered, want 4 and none", left, u.got)
	}
	if got := r.Held(); got < n*100 || got > n*400 {
		t.Errorf("%d messages are told to take %d bytes", n-1, got)
	}
	r.Segment(0, segment(1, 0, true, u.want[0]))
	for i := 4; i <= n; i += 4 {
		if left, _, _ := p.Len(); u.got != i || left != 0 || u.fault != 0 {
			t.Fatalf("%d messages delivered, %d buffers left, fault %v, want %d and none", u.got, left, u.fault, i)
		}
		post(4)
	}
	if left, _, _ := p.Len(); left != 4 || r.Held() != 0 || r.Early() != 0 {
		t.Errorf("%d buffers left, %d bytes held, %d early", left, r.Held(), r.Early())
	}
}

// TestSharedQueueRandom sends messages of any number of segments in any order to a
// receiver whose pool runs dry now and then.
func TestSharedQueueRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	for round := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, round))
		r, u, p, post := newShared(t, 8, 300)
		var segs [][]byte
		for msn := range uint32(1 + rng.IntN(40)) {
			m := make([]byte, rng.IntN(300))
			for i := range m {
				m[i] = byte(rng.Uint32())
			}
			u.want = append(u.want, m)
			at := 0
			for {
				k := min(1+rng.IntN(150), len(m)-at)
				segs = append(segs, segment(msn+1, uint32(at), at+k == len(m), m[at:at+k]))
				if at += k; at == len(m) {
					break
				}
			}
			if rng.IntN(4) == 0 {
				segs = append(segs, tagged(0, true, "w"))
			}
		}
		var order []int
		for i := range segs {
			order = append(order, i)
		}
		span := 1 + rng.IntN(len(segs))
		for i := range order {
			j := min(i+rng.IntN(span), len(order)-1)
			order[i], order[j] = order[j], order[i]
		}
		posted := 0
		top := func() {
			left, depth, _ := p.Len()
			k := min(rng.IntN(depth-left+1), len(u.want)-posted)
			post(k)
			posted += k
		}
		for _, i := range order {
			if rng.IntN(3) == 0 {
				top()
			}
			if err := r.Segment(uint64(i), segs[i]); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		for posted < len(u.want) {
			top()
		}
		if left, _, _ := p.Len(); u.got != len(u.want) || left != 0 || u.fault != 0 || r.Held() != 0 || r.Early() != 0 {
			t.Fatalf("round %d: %d of %d messages, %d buffers left, fault %v, %d bytes held, %d early",
				round, u.got, len(u.want), left, u.fault, r.Held(), r.Early())
		}
		for i, id := range u.ids {
			if id != uint64(i) {
				t.Fatalf("round %d: message %d has buffer %d", round, i, id)
			}
		}
	}
}

// TestDryPoolForgets: a stream that ends while it waits for a buffer leaves nothing in
// the pool, and takes none.
func TestDryPoolForgets(t *testing.T) {
	r, u, p, post := newShared(t, 4, 100)
	u.want = [][]byte{[]byte("x")}
	r.Segment(0, segment(1, 0, true, u.want[0]))
	if u.got != 0 || u.fault != 0 || r.Held() == 0 || len(p.starved) != 1 {
		t.Fatalf("delivered %d, fault %v, held %d, %d wait", u.got, u.fault, r.Held(), len(p.starved))
	}
	r.Stop()
	post(1)
	if left, _, _ := p.Len(); left != 1 || u.got != 0 || r.held.memory != 0 || len(p.starved) != 0 {
		t.Errorf("%d buffers left, delivered %d, held %d, %d wait", left, u.got, r.held.memory, len(p.starved))
	}
}
