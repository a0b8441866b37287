package ddp

import (
	"bytes"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"
)

func TestPlaceChecks(t *testing.T) {
	tab := NewTable()
	dom, other := &Domain{}, &Domain{}
	sc, sc2, foreign := &Scope{Domain: dom}, &Scope{Domain: dom}, &Scope{Domain: other}
	mem := make([]byte, 64)
	r, err := tab.Add(mem[16:48:48], 1000, RemoteWrite, dom, nil)
	if err != nil {
		t.Fatal(err)
	}
	bound, _ := tab.Add(mem[:0:0], 0, RemoteWrite, dom, sc)
	ro, _ := tab.Add(mem[16:48:48], 0, RemoteRead|LocalWrite, dom, nil)
	tests := []struct {
		name string
		sc   *Scope
		stag uint32
		to   uint64
		n    int
		want Denial
	}{
		{"whole", sc, r.STag(), 1000, 32, Granted},
		{"last byte", sc2, r.STag(), 1031, 1, Granted},
		{"one past", sc, r.STag(), 1031, 2, DeniedBounds},
		{"at end", sc, r.STag(), 1032, 1, DeniedBounds},
		{"before", sc, r.STag(), 999, 1, DeniedBounds},
		{"before across", sc, r.STag(), 999, 2, DeniedBounds},
		{"wrap", sc, r.STag(), 1<<64 - 1, 2, DeniedWrap},
		{"wrap to base", sc, r.STag(), 1<<64 - 1, 1, DeniedWrap},
		{"no such", sc, r.STag() + 1, 1000, 1, DeniedSTag},
		{"zero", sc, 0, 1000, 1, DeniedSTag},
		{"other domain", foreign, r.STag(), 1000, 1, DeniedStream},
		{"other stream", sc2, bound.STag(), 0, 1, DeniedStream},
		{"own stream, empty region", sc, bound.STag(), 0, 1, DeniedBounds},
		{"no right", sc, ro.STag(), 0, 1, DeniedAccess},
		{"empty payload is not checked", foreign, 0, 5, 0, Granted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clear(mem)
			if got := tab.Place(tt.sc, tt.stag, tt.to, bytes.Repeat([]byte{1}, tt.n)); got != tt.want {
				t.Errorf("denial = %d, want %d", got, tt.want)
			}
			want := make([]byte, 64)
			if tt.want == Granted {
				for i := range tt.n {
					want[16+tt.to-1000+uint64(i)] = 1
				}
			}
			if !bytes.Equal(mem, want) {
				t.Errorf("memory = %v", mem)
			}
		})
	}
}

func TestTableGrowsAndForgets(t *testing.T) {
	tab, dom := NewTable(), &Domain{}
	var live []*Region
	seen := make(map[uint32]bool)
	for i := range 20000 {
		r, err := tab.Add(make([]byte, 1), 0, 0, dom, nil)
		if err != nil {
			t.Fatal(err)
		}
		if seen[r.STag()] {
			t.Logf("STag %#x again after %d", r.STag(), i) // possible, but not soon
		}
		seen[r.STag()] = true
		live = append(live, r)
		if len(live) > 300 {
			tab.Remove(live[0])
			if got := tab.Lookup(live[0].STag()); got != nil && !got.Revoked() {
				t.Fatal("a removed region is usable")
			}
			if live[0].Bytes() != nil {
				t.Fatal("a removed region holds its memory")
			}
			live = live[1:]
		}
	}
	if tab.Len() != len(live) {
		t.Errorf("%d regions, want %d", tab.Len(), len(live))
	}
	for _, r := range live {
		if tab.Lookup(r.STag()) != r {
			t.Fatalf("region %#x lost", r.STag())
		}
	}
	if n := len(*tab.slots.Load()); n > 65536 {
		t.Errorf("%d slots for %d regions", n, len(live))
	}
}

func TestSTagsAreNotReusedSoon(t *testing.T) {
	tab, dom := NewTable(), &Domain{}
	r, _ := tab.Add(nil, 0, 0, dom, nil)
	tab.Remove(r)
	// Force the generator to offer the same number again.
	tab.random = []byte{byte(r.stag), byte(r.stag >> 8), byte(r.stag >> 16), byte(r.stag >> 24), 1, 2, 3, 4}
	if r2, _ := tab.Add(nil, 0, 0, dom, nil); r2.STag() != 0x04030201 {
		t.Errorf("STag %#x after %#x was removed", r2.STag(), r.STag())
	}
}

func TestAddLimits(t *testing.T) {
	tab := NewTable()
	if _, err := tab.Add(make([]byte, 2), 1<<64-1, 0, &Domain{}, nil); !errors.Is(err, ErrRegion) {
		t.Errorf("region that wraps: %v", err)
	}
	tab.live = MaxRegions
	if _, err := tab.Add(nil, 0, 0, &Domain{}, nil); !errors.Is(err, ErrTableFull) {
		t.Errorf("full table: %v", err)
	}
}

func TestRevokeWaitsForPlacement(t *testing.T) {
	// When Revoke has returned nothing more is written (RFC 5040, Section
	// 8.1.1, item 6). The race detector sees a write that comes later; for it
	// each of the two has a half of its own, as nothing orders what two streams
	// place.
	tab, dom := NewTable(), &Domain{}
	sc := &Scope{Domain: dom}
	for range 200 {
		mem := make([]byte, 4096)
		r, _ := tab.Add(mem, 0, RemoteWrite, dom, nil)
		p := bytes.Repeat([]byte{1}, len(mem)/2)
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				for tab.Place(sc, r.STag(), uint64(i*len(p)), p) == Granted {
				}
			})
		}
		tab.Remove(r)
		clear(mem)
		wg.Wait()
		if !bytes.Equal(mem, make([]byte, 4096)) {
			t.Fatal("written after Revoke")
		}
	}
}

func TestRetire(t *testing.T) {
	tab, dom := NewTable(), &Domain{}
	r, _ := tab.Add(nil, 0, 0, dom, nil)
	if !r.Pin() || r.Retire() {
		t.Error("a pinned region was retired")
	}
	r.Unpin()
	if !r.Retire() || r.Pin() || r.Retire() {
		t.Error("a free region was not retired for good")
	}
}

func TestInvalidateRemote(t *testing.T) {
	tab, dom := NewTable(), &Domain{}
	mine, other := &Scope{Domain: dom}, &Scope{Domain: dom}
	shared, _ := tab.Add(nil, 0, 0, dom, nil)
	own, _ := tab.Add(nil, 0, 0, dom, mine)
	for _, tt := range []struct {
		name string
		sc   *Scope
		stag uint32
		want Denial
	}{
		{"shared", mine, shared.STag(), DeniedInvalidate},
		{"of another stream", other, own.STag(), DeniedStream},
		{"unknown", mine, own.STag() ^ 1, DeniedSTag},
		{"own", mine, own.STag(), Granted},
		{"again", mine, own.STag(), DeniedSTag},
	} {
		if got := tab.InvalidateRemote(tt.sc, tt.stag); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
	if shared.Revoked() || !own.Revoked() {
		t.Error("wrong region revoked")
	}
}

func TestAtomicIsAtomic(t *testing.T) {
	tab, dom := NewTable(), &Domain{}
	sc := &Scope{Domain: dom}
	r, _ := tab.Add(make([]byte, 16), 0, RemoteAtomic, dom, nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				tab.Atomic(sc, r.STag(), 8, func(v uint64) uint64 { return v + 1 })
			}
		})
	}
	wg.Wait()
	if v, d := tab.Atomic(sc, r.STag(), 8, func(v uint64) uint64 { return v }); v != 4000 || d != Granted {
		t.Errorf("value = %d (%d), want 4000", v, d)
	}
	// The address counts, not the offset.
	odd, _ := tab.Add(make([]byte, 16), 3, RemoteAtomic, dom, nil)
	for to, want := range map[uint64]Denial{3: Granted, 8: DeniedAlignment, 11: Granted} {
		if _, d := tab.Atomic(sc, odd.STag(), to, func(v uint64) uint64 { return v + 1 }); d != want {
			t.Errorf("atomic at %d, behind a base of 3: %d, want %d", to, d, want)
		}
	}
	for to, want := range map[uint64]Denial{1: DeniedAlignment, 12: DeniedBounds, 1<<64 - 4: DeniedWrap} {
		if _, d := tab.Atomic(sc, r.STag(), to, func(v uint64) uint64 { return 0 }); d != want {
			t.Errorf("atomic at %d: %d, want %d", to, d, want)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	tab, dom := NewTable(), &Domain{}
	stags := make([]uint32, 1024)
	for i := range stags {
		r, _ := tab.Add(nil, 0, 0, dom, nil)
		stags[i] = r.STag()
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if tab.Lookup(stags[i&1023]) == nil {
			b.Fatal("lost")
		}
		i++
	}
}

func TestSTagsAreHardToPredict(t *testing.T) {
	// RFC 5040, Section 8.1.1, item 8. That the generator is the system's cannot
	// be tested; that numbers are not counted up, and are spread over the whole
	// range, can. Limits are six standard deviations and more.
	const n = 20000
	tab, d := NewTable(), &Domain{}
	var ones [32]int
	steps := make(map[uint32]int)
	seen := make(map[uint32]bool)
	var last uint32
	for range n {
		r, err := tab.Add(nil, 0, 0, d, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := r.STag()
		if s == 0 || seen[s] {
			t.Fatalf("STag %#x again", s)
		}
		seen[s] = true
		for b := range ones {
			ones[b] += int(s >> b & 1)
		}
		steps[s-last]++
		last = s
	}
	for b, k := range ones {
		if k < n/2-500 || k > n/2+500 {
			t.Errorf("bit %d is set in %d of %d", b, k, n)
		}
	}
	for step, k := range steps {
		if k > 4 {
			t.Errorf("the step %#x comes %d times", step, k)
		}
	}
}

func TestBindAndRevoke(t *testing.T) {
	tab, d := NewTable(), &Domain{}
	sc, other := &Scope{Domain: d}, &Scope{Domain: d}
	mem := make([]byte, 100)
	parent, _ := tab.Add(mem, 0, LocalWrite|BindWindow, d, nil)
	w, err := tab.Reserve(d)
	if err != nil {
		t.Fatal(err)
	}
	if got := tab.Place(sc, w.STag(), 0, []byte{1}); got != DeniedSTag {
		t.Errorf("place before the bind: %v", got)
	}
	if parent.Bind(mem, 0, RemoteWrite, sc, nil) {
		t.Error("an ordinary region was bound")
	}
	if w.Bind(mem, 1<<64-50, RemoteWrite, sc, parent) {
		t.Error("bound with offsets that wrap")
	}
	if !w.Bind(mem[10:20], 7, RemoteWrite, sc, parent) {
		t.Fatal("not bound")
	}
	if w.Bind(mem, 0, RemoteWrite, sc, parent) {
		t.Error("bound twice")
	}
	for _, tt := range []struct {
		sc   *Scope
		to   uint64
		want Denial
	}{{sc, 7, Granted}, {sc, 16, Granted}, {sc, 17, DeniedBounds}, {sc, 6, DeniedBounds}, {other, 7, DeniedStream}} {
		if got := tab.Place(tt.sc, w.STag(), tt.to, []byte{5}); got != tt.want {
			t.Errorf("place at %d: %v, want %v", tt.to, got, tt.want)
		}
	}
	if mem[10] != 5 || mem[19] != 5 || mem[9] != 0 || mem[20] != 0 {
		t.Errorf("memory %v", mem[8:22])
	}
	if parent.Retire() {
		t.Error("parent with a window was retired")
	}
	epoch := w.Epoch()
	if got := tab.InvalidateLocal(other, w.STag()); got != DeniedStream || w.Revoked() {
		t.Errorf("invalidated through another stream: %v", got)
	}
	if got := tab.InvalidateLocal(sc, w.STag()); got != Granted || !w.Revoked() || w.Epoch() == epoch {
		t.Errorf("invalidate: %v", got)
	}
	// A late invalidate of the old binding leaves the new one alone.
	w.Bind(mem, 0, RemoteWrite, sc, parent)
	w.revokeSince(epoch)
	if w.Revoked() {
		t.Error("new binding revoked for the old one")
	}
	if got := tab.InvalidateRemote(sc, w.STag()); got != Granted || !w.Revoked() {
		t.Errorf("remote invalidate: %v", got)
	}
	tab.Remove(w)
	if w.Bind(mem, 0, RemoteWrite, sc, nil) {
		t.Error("a removed region was bound")
	}
	if !parent.Retire() {
		t.Error("pins are left")
	}
	// What a stream denies is denied whatever regions grant.
	rw, _ := tab.Add(mem, 0, RemoteRead|RemoteWrite, d, nil)
	sc.Deny(RemoteRead)
	if _, got := tab.Source(sc, rw.STag(), 0, 1); got != DeniedAccess {
		t.Errorf("denied read: %v", got)
	}
	if got := tab.Place(sc, rw.STag(), 0, []byte{1}); got != Granted {
		t.Errorf("write: %v", got)
	}
}

func TestPool(t *testing.T) {
	low := 0
	p := NewPool(3, 2, func() { low++ })
	post := func(ids ...uint64) bool {
		if !p.Reserve(len(ids)) {
			return false
		}
		for _, id := range ids {
			b := p.Next()
			b.ID, b.SGL = id, append(b.SGL, Mem{B: make([]byte, id)})
			p.Post()
		}
		p.Commit()
		return true
	}
	if !post(10, 11, 12) || post(13) {
		t.Error("room for three")
	}
	p.SetLimit(2)
	r := &Receiver{}
	var b Buffer
	for i, want := range []uint64{10, 11, 12} {
		if !p.take(&b, r) || b.ID != want || b.Size() != uint32(want) {
			t.Errorf("buffer %d has ID %d, want %d", i, b.ID, want)
		}
	}
	if low != 1 {
		t.Errorf("the limit was told %d times", low)
	}
	if p.take(&b, r) {
		t.Error("an empty pool has a buffer")
	}
	p.forget(r) // else it is told
	post(1, 2)
	if p.Resize(1) || !p.Resize(5) || !post(3, 4, 5) {
		t.Error("resize")
	}
	if n, depth, _ := p.Len(); n != 5 || depth != 5 {
		t.Errorf("%d of %d", n, depth)
	}
	p.Close()
	if n, depth, _ := p.Len(); n != 0 || depth != 0 || post(1) {
		t.Error("closed pool takes buffers")
	}
}

func TestRevokeWaitsForWhoIsInside(t *testing.T) {
	// RFC 5040, Section 8.1.1, item 6.
	tab := NewTable()
	r, _ := tab.Add(make([]byte, 10), 0, RemoteWrite, &Domain{}, nil)
	if !r.enter() {
		t.Fatal("not entered")
	}
	done := make(chan struct{})
	go func() {
		r.Revoke()
		close(done)
	}()
	for !r.Revoked() {
		runtime.Gosched()
	}
	if r.enter() {
		t.Error("entered a revoked region")
	}
	select {
	case <-done:
		t.Error("Revoke returned while a placement was under way")
	case <-time.After(20 * time.Millisecond):
	}
	r.leave()
	<-done
}
