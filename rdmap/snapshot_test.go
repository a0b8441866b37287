package rdmap

import (
	"bytes"
	"testing"

	"github.com/weftstack/weft/ddp"
)

// A response of a region with ReadSnapshot is a copy: the memory may change as soon as it
// was sent (the pipe panics if what is referenced does). The copies are bounded in bytes,
// whatever the size of reads and segments, and all of it arrives.
func TestSnapshotsAreBounded(t *testing.T) {
	for _, tt := range []struct{ seed, mulpdu, size int }{
		{0, 1426, 20 << 20}, {1, 1426, 5 << 20}, {0, 60000, 20 << 20}, {1, 60000, 5 << 20}, {0, 4000, 3 << 20},
	} {
		p := newPair(t, pairConfig{seed: uint64(tt.seed), mulpdu: tt.mulpdu})
		src := p.b.region(tt.size, ddp.RemoteRead|ddp.ReadSnapshot)
		want := bytes.Clone(src.Bytes())
		back := make([]byte, tt.size)
		parts := 4
		for i := range parts {
			n := tt.size / parts
			p.a.post(Work{ID: uint64(i), Kind: OpRead, Flags: FlagSignaled, STag: src.STag(), TO: uint64(i * n)}, back[i*n:(i+1)*n])
		}
		peak, steps := int64(0), 0
		for p.pipe.Step() {
			held := p.b.s.copies.Held()
			if peak = max(peak, held); held > ddp.MaxSnapshots {
				t.Fatalf("copies hold %d bytes, want at most %d", held, ddp.MaxSnapshots)
			}
			steps++
		}
		if peak < ddp.MaxSnapshots/4 {
			t.Errorf("copies held %d bytes at most: the bound was not reached", peak)
		}
		for i := range parts {
			p.a.wantSent(uint64(i), StatusSuccess)
		}
		if !bytes.Equal(back, want) {
			t.Error("read differs")
		}
		if held := p.b.s.copies.Held(); held != 0 {
			t.Errorf("copies hold %d bytes after all was acknowledged", held)
		}
	}
}

// The owner of the memory changes it when a part of a response is under way: what is
// under way stays as it was, what was not sent yet is new, and the region is not in use
// for what was sent.
func TestSnapshotsAreOfWhenTheyWereSent(t *testing.T) {
	for _, size := range []int{5, 100, 1000, 2000, 5000, 100000} {
		p := newPair(t, pairConfig{window: 16})
		src := p.b.region(size, ddp.RemoteRead|ddp.ReadSnapshot)
		want := bytes.Clone(src.Bytes())
		back := make([]byte, size)
		p.a.post(Work{ID: 1, Kind: OpRead, Flags: FlagSignaled, STag: src.STag()}, back)
		p.pipe.A.Deliver()
		clear(src.Bytes())
		if size <= 5000 { // all of it is under way
			drained := false
			src.AfterSources(func() { drained = true })
			if !drained {
				t.Errorf("%d bytes: the region is in use", size)
			}
		}
		p.pipe.Run()
		p.a.wantSent(1, StatusSuccess)
		same := 0
		for same < size && back[same] == want[same] {
			same++
		}
		if size <= 5000 && same != size || size > 5000 && (same < 4*1400 || same > 16*1426) {
			t.Errorf("%d bytes: the first %d are of before", size, same)
		}
		if rest := back[same:]; !bytes.Equal(rest, make([]byte, len(rest))) {
			t.Errorf("%d bytes: what was sent later is not of after", size)
		}
	}
}

// A window and a fast registration have the right, too.
func TestSnapshotsOfWindows(t *testing.T) {
	p := newPair(t, pairConfig{})
	parent := p.b.region(5000, ddp.RemoteRead|ddp.BindWindow|ddp.ReadSnapshot)
	w, err := p.b.table.Reserve(p.b.domain)
	if err != nil {
		t.Fatal(err)
	}
	if !w.Bind(parent.Bytes(), 0, ddp.RemoteRead, p.b.s.Scope(), parent) {
		t.Fatal("not bound")
	}
	want := bytes.Clone(parent.Bytes())
	back := make([]byte, 5000)
	p.a.post(Work{ID: 1, Kind: OpRead, Flags: FlagSignaled, STag: w.STag()}, back)
	p.pipe.A.Deliver()
	clear(parent.Bytes())
	p.pipe.Run()
	p.a.wantSent(1, StatusSuccess)
	if !bytes.Equal(back, want) {
		t.Error("what was under way has changed")
	}
}
