package cbinding

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// TestTableFindsStaleHandles frees and reuses one slot: every old handle must be refused until the
// generation comes round.
func TestTableFindsStaleHandles(t *testing.T) {
	table := newTable[int](groupKind)
	var old []Handle
	for i := range 1<<generationBits - 1 {
		h, err := table.put(new(int))
		if err != nil {
			t.Fatal(err)
		}
		if h < maxPredefined || h >= 1<<31 || kindOf(h) != "group" {
			t.Fatalf("handle %#x", h)
		}
		for _, o := range old {
			if table.get(o) != nil {
				t.Fatalf("handle %#x of object %d finds one", o, i)
			}
		}
		if table.get(h) == nil || !table.delete(h) || table.delete(h) || table.get(h) != nil {
			t.Fatalf("object %d: put, get and delete do not agree", i)
		}
		old = append(old, h)
	}
	if table.live != 0 || table.len != 1 {
		t.Errorf("%d objects live in %d slots, want 0 and 1", table.live, table.len)
	}
}

// TestTableIsFull fills a table to its limit.
func TestTableIsFull(t *testing.T) {
	table := newTable[int](infoKind)
	limit := 1 << (infoKind.bits - generationBits)
	for range limit {
		if _, err := table.put(new(int)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := table.put(new(int)); err == nil || !strings.Contains(err.Error(), "65536 objects") {
		t.Errorf("one too many: %v", err)
	}
	n := 0
	table.each(func(Handle, *int) bool { n++; return true })
	if n != limit {
		t.Errorf("each found %d objects, want %d", n, limit)
	}
}

// TestKindsDoNotOverlap looks every kind up by the handles that its tables give out.
func TestKindsDoNotOverlap(t *testing.T) {
	for _, k := range []kind{commKind, groupKind, winKind, fileKind, sessionKind, infoKind, errhandlerKind,
		messageKind, keyvalKind, opKind, typeKind, requestKind} {
		first, last := Handle(k.prefix<<24), Handle(k.prefix<<24|(1<<k.bits-1))
		for _, h := range []Handle{first, last, max(k.null, k.first)} {
			if h == abi.KeyvalInvalid || k == keyvalKind && h < maxPredefined {
				continue
			}
			if got := kindOf(h); got != k.name {
				t.Errorf("handle %#x is that of a %q, want %s", h, got, k.name)
			}
		}
		if last >= 1<<31 {
			t.Errorf("%s: handles up to %#x", k.name, last)
		}
	}
}

// TestMissing compares what is said of bad handles.
func TestMissing(t *testing.T) {
	state.live.Add(1)
	defer state.live.Add(-1)
	h, _ := groups.put(&group{})
	groups.delete(h)
	for _, tt := range []struct {
		handle Handle
		want   string
	}{
		{264, "group 0x108: is the null handle"},
		{257, "group 0x101: is the handle of a communicator"},
		{h, "has been freed, or was never made"},
		{math.MaxUint, "ff: is no handle"},
		{0, "group 0x0: is no handle"},
	} {
		if _, err := groupOf(tt.handle); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%#x: %v, want %s", tt.handle, err, tt.want)
		}
	}
}

// TestTableConcurrently puts, gets and deletes on many goroutines.
func TestTableConcurrently(t *testing.T) {
	table := newTable[int](requestKind)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				v := g*10000 + i
				h, err := table.put(&v)
				if err != nil {
					t.Error(err)
					return
				}
				if p := table.get(h); p == nil || *p != v {
					t.Errorf("handle %#x finds %v, want %d", h, p, v)
					return
				}
				table.delete(h)
			}
		})
	}
	wg.Wait()
	if table.live != 0 {
		t.Errorf("%d objects left", table.live)
	}
}

func TestGetDoesNotAllocate(t *testing.T) {
	v := new(int)
	table := newTable[int](requestKind)
	if n := testing.AllocsPerRun(100, func() {
		h, _ := table.put(v)
		table.get(h)
		table.delete(h)
	}); n != 0 {
		t.Errorf("put, get and delete allocate %v times", n)
	}
}
