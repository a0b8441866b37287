package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/cma"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// tableOf returns a table of runs of the given lengths in mem, one behind the other with a byte between
// them, its address, and the data in them.
func tableOf(mem []byte, lengths ...int) (table []byte, addr uint64, data []byte) {
	at := 0
	for _, n := range lengths {
		e := binary.NativeEndian.AppendUint64(nil, uint64(uintptr(unsafe.Pointer(&mem[at]))))
		table = append(table, binary.NativeEndian.AppendUint64(e, uint64(n))...)
		data = append(data, mem[at:at+n]...)
		at += n + 1
	}
	return table, uint64(uintptr(unsafe.Pointer(unsafe.SliceData(table)))), data
}

// TestMemoryRuns copies random runs to random pieces: more than one system call takes on either side.
func TestMemoryRuns(t *testing.T) {
	copying(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	mem := make([]byte, 1<<18)
	for i := range mem {
		mem[i] = byte(rnd.Uint32())
	}
	for range 50 {
		var lengths []int
		for range 1 + rnd.IntN(300) {
			lengths = append(lengths, 1+rnd.IntN(500))
		}
		table, addr, data := tableOf(mem, lengths...)
		want := data[:1+rnd.IntN(len(data))] // the receive may have room for a part
		from := memoryRuns{pid: os.Getpid(), addr: addr, left: len(want)}
		if err := from.load(len(lengths)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		for at := 0; at < len(got); {
			var to [][]byte
			n := 0
			for len(to) < 1+rnd.IntN(cma.MaxPieces) && at+n < len(got) {
				k := min(1+rnd.IntN(2000), len(got)-at-n)
				to = append(to, got[at+n:at+n+k])
				n += k
			}
			k, err := from.read(to, n)
			if err != nil || k < 1 || k > n {
				t.Fatalf("%d of %d bytes: %v", k, n, err)
			}
			at += k
		}
		from.table.Put()
		if !bytes.Equal(got, want) {
			t.Fatal("other bytes have been copied")
		}
		runtime.KeepAlive(table)
	}
	runtime.KeepAlive(mem)
}

// TestBadTables loads tables that do not fit their message, or that are not there.
func TestBadTables(t *testing.T) {
	copying(t)
	mem := make([]byte, 100)
	for _, tt := range []struct {
		name    string
		left    int
		lengths []int
	}{
		{"too short", 31, []int{10, 20}},
		{"empty run", 10, []int{10, 0}},
	} {
		table, addr, _ := tableOf(mem, tt.lengths...)
		from := memoryRuns{pid: os.Getpid(), addr: addr, left: tt.left}
		if err := from.load(len(tt.lengths)); !errors.Is(err, mpierr.ErrProtocol) {
			t.Errorf("%s: %v, want %v", tt.name, err, mpierr.ErrProtocol)
		}
		runtime.KeepAlive(table)
	}
	table, addr, _ := tableOf(mem, 10, 10)
	binary.NativeEndian.PutUint64(table[24:], 1<<63)
	from := memoryRuns{pid: os.Getpid(), addr: addr, left: 15}
	if err := from.load(2); !errors.Is(err, mpierr.ErrProtocol) {
		t.Errorf("huge run: %v, want %v", err, mpierr.ErrProtocol)
	}
	from = memoryRuns{pid: os.Getpid(), addr: 4096, left: 15}
	if err := from.load(2); err == nil {
		t.Error("a table at no address was loaded")
	}
	runtime.KeepAlive(table)
}
