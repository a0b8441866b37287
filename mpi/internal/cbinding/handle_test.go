package cbinding

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// TestTableFindsStaleHandles frees and reuses one slot: every old handle must be refused until the
// generation comes round.
func TestTableFindsStaleHandles(t *testing.T) {
	table := NewTable[int](groupKind)
	var old []abi.Handle
	for i := range 1<<generationBits - 1 {
		h, err := table.Put(new(int))
		if err != nil {
			t.Fatal(err)
		}
		if h < abi.MaxPredefined || h >= 1<<31 || kindOf(h) != "group" {
			t.Fatalf("handle %#x", h)
		}
		for _, o := range old {
			if table.Get(o) != nil {
				t.Fatalf("handle %#x of object %d finds one", o, i)
			}
		}
		if table.Get(h) == nil || !table.Delete(h) || table.Delete(h) || table.Get(h) != nil {
			t.Fatalf("object %d: put, get and delete do not agree", i)
		}
		old = append(old, h)
	}
	if table.live.Load() != 0 || table.len != 1 {
		t.Errorf("%d objects live in %d slots, want 0 and 1", table.live.Load(), table.len)
	}
}

// TestTableIsFull fills a table to its limit.
func TestTableIsFull(t *testing.T) {
	table := NewTable[int](infoKind)
	limit := 1 << (infoKind.Bits - generationBits)
	for range limit {
		if _, err := table.Put(new(int)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := table.Put(new(int)); err == nil || !strings.Contains(err.Error(), "65536 objects") {
		t.Errorf("one too many: %v", err)
	}
	n := 0
	table.Each(func(abi.Handle, *int) bool { n++; return true })
	if n != limit {
		t.Errorf("each found %d objects, want %d", n, limit)
	}
}

// TestKindsDoNotOverlap looks every kind up by the handles that its tables give out.
func TestKindsDoNotOverlap(t *testing.T) {
	for _, k := range []HandleKind{commKind, groupKind, WinKind, FileKind, sessionKind, infoKind, errhandlerKind,
		MessageKind, keyvalKind, opKind, typeKind, requestKind} {
		first, last := abi.Handle(k.Prefix<<24), abi.Handle(k.Prefix<<24|(1<<k.Bits-1))
		for _, h := range []abi.Handle{first, last, max(k.Null, k.first)} {
			if h == abi.KeyvalInvalid || k == keyvalKind && h < abi.MaxPredefined {
				continue
			}
			if got := kindOf(h); got != k.Name {
				t.Errorf("handle %#x is that of a %q, want %s", h, got, k.Name)
			}
		}
		if last >= 1<<31 {
			t.Errorf("%s: handles up to %#x", k.Name, last)
		}
	}
}

// TestMissing compares what is said of bad handles.
func TestMissing(t *testing.T) {
	State.Live.Add(1)
	defer State.Live.Add(-1)
	h, _ := Groups.Put(&Group{})
	Groups.Delete(h)
	for _, tt := range []struct {
		handle abi.Handle
		want   string
	}{
		{264, "group MPI_GROUP_NULL: is the null handle"},
		{257, "group MPI_COMM_WORLD: is the handle of a communicator"},
		{h, "has been freed, or was never made"},
		{math.MaxUint, "ff: is no handle"},
		{0, "group 0x0: is no handle"},
	} {
		if _, err := GroupOf(tt.handle); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%#x: %v, want %s", tt.handle, err, tt.want)
		}
	}
}

// TestTableConcurrently puts, gets and deletes on many goroutines.
func TestTableConcurrently(t *testing.T) {
	table := NewTable[int](requestKind)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				v := g*10000 + i
				h, err := table.Put(&v)
				if err != nil {
					t.Error(err)
					return
				}
				if p := table.Get(h); p == nil || *p != v {
					t.Errorf("handle %#x finds %v, want %d", h, p, v)
					return
				}
				table.Delete(h)
			}
		})
	}
	wg.Wait()
	if n := table.live.Load(); n != 0 {
		t.Errorf("%d objects left", n)
	}
}

func TestGetDoesNotAllocate(t *testing.T) {
	v := new(int)
	table := NewTable[int](requestKind)
	if n := testing.AllocsPerRun(100, func() {
		h, _ := table.Put(v)
		table.Get(h)
		table.Delete(h)
	}); n != 0 {
		t.Errorf("put, get and delete allocate %v times", n)
	}
}

// TestTableRoom fills a table: calls that ask for room are refused with the limit, while those that have asked before
// still get a handle.
func TestTableRoom(t *testing.T) {
	kind := groupKind
	kind.Name = "full"
	table := NewTable[int](kind)
	const most = 1<<16 - spareSlots
	v := 7
	var last abi.Handle
	for range most {
		if err := table.Room(); err != nil {
			t.Fatal(err)
		}
		h, err := table.Put(&v)
		if err != nil {
			t.Fatal(err)
		}
		last = h
	}
	if n := CountHandles("full"); n != most {
		t.Errorf("%d objects are counted, want %d", n, most)
	}
	if err := table.Room(); CodeOf(err) != abi.ErrNoMem || !strings.Contains(err.Error(), strconv.Itoa(most)) {
		t.Errorf("room in a full table: %v", err)
	}
	if h, err := table.Put(&v); err != nil || table.Get(h) != &v {
		t.Errorf("a call that has found room before got %v", err)
	} else {
		table.Delete(h)
	}
	table.Delete(last)
	if err := table.Room(); err != nil {
		t.Errorf("after an object is freed: %v", err)
	}
}
