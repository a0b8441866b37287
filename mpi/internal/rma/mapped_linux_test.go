//go:build amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64

package rma

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mappings counts what this process has mapped of the memory of windows: of one file.
func mappings(t *testing.T, id uint64) (n int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if strings.Contains(line, "memfd:weft-window") && f[4] == fmt.Sprint(id) {
			n++
		}
	}
	return n
}

// fill fills b with bytes that depend on the seed, and checkFill looks for them.
func fill(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
}

func checkFill(b []byte, seed int) error {
	for i, v := range b {
		if v != byte(i*7+i>>8+seed) {
			return fmt.Errorf("byte %d is %d", i, v)
		}
	}
	return nil
}

// hostBytesOf returns memory that others can map, its file, which is closed when the
// test ends, and the identity of that.
func hostBytesOf(t *testing.T, n int, writable bool) ([]byte, *os.File, uint64) {
	t.Helper()
	mem, f, err := newHostBytes(n, 1, writable)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	id, err := fileID(f)
	if err != nil {
		t.Fatal(err)
	}
	return mem, f, id
}

// What was the memory of a window is that of other things later, and keeps what they
// put there: also while others still have the file mapped.
func TestHostBytesAreReused(t *testing.T) {
	mem, f, id := hostBytesOf(t, 100_000, true)
	there, err := mapHostBytes(os.Getpid(), int(f.Fd()), id, len(mem), true)
	if err != nil {
		t.Fatal(err)
	}
	defer unmapHostBytes(there)
	fill(mem, 1)
	if !bytes.Equal(mem, there) {
		t.Fatal("not the same memory")
	}
	// Nothing refers to mem any more.
	for i := 0; mappings(t, id) > 1; i++ {
		if i == 10_000 {
			t.Fatal("the memory is not collected")
		}
		runtime.GC()
		runtime.Gosched()
	}
	var blocks [][]byte
	for i := range 100 {
		b := make([]byte, 100_000+4096)
		for _, v := range b {
			if v != 0 {
				t.Fatal("new memory is not zero")
			}
		}
		fill(b, i)
		blocks = append(blocks, b)
	}
	clear(there)
	runtime.GC()
	for i, b := range blocks {
		if err := checkFill(b, i); err != nil {
			t.Fatalf("block %d: %v", i, err)
		}
	}
}

// A rank maps only what it was told of, and writes only what it may.
func TestHostBytesRefuses(t *testing.T) {
	mem, f, id := hostBytesOf(t, 10_000, false)
	fresh, err := unix.MemfdCreate("weft-test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING) // can be made shorter
	if err != nil {
		t.Fatal(err)
	}
	open := os.NewFile(uintptr(fresh), "weft-test")
	defer open.Close()
	if err := open.Truncate(10_000); err != nil {
		t.Fatal(err)
	}
	openID, err := fileID(open)
	if err != nil {
		t.Fatal(err)
	}
	pid, fd := os.Getpid(), int(f.Fd())
	for _, tt := range []struct {
		name     string
		pid, fd  int
		id       uint64
		n        int
		writable bool
		ok       bool
	}{
		{"good", pid, fd, id, 10_000, false, true},
		{"to write", pid, fd, id, 10_000, true, false},
		{"process", 1 << 30, fd, id, 10_000, false, false},
		{"file", pid, 1 << 30, id, 10_000, false, false},
		{"other file", pid, fd, id + 1, 10_000, false, false},
		{"too long", pid, fd, id, 100_000, false, false},
		{"not sealed", pid, int(open.Fd()), openID, 10_000, false, false},
	} {
		b, err := mapHostBytes(tt.pid, tt.fd, tt.id, tt.n, tt.writable)
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err == nil {
			mem[7] = 9 // the owner can write
			if b[7] != 9 {
				t.Errorf("%s: not the same memory", tt.name)
			}
			unmapHostBytes(b)
		}
	}
}

// An operation under way keeps memory mapped.
func TestMappingClose(t *testing.T) {
	mem, f, id := hostBytesOf(t, 10, true)
	there, err := mapHostBytes(os.Getpid(), int(f.Fd()), id, len(mem), true)
	if err != nil {
		t.Fatal(err)
	}
	m := newMapping(there)
	if !m.enter() {
		t.Fatal("closed from the start")
	}
	m.close()
	if m.enter() {
		t.Error("not closed")
	}
	there[3] = 1 // ends the test if it is gone
	m.leave()
	if mem[3] != 1 {
		t.Error("not the same memory")
	}
	if n := mappings(t, id); n != 1 {
		t.Errorf("mapped %d times, want only by its owner", n)
	}
	runtime.KeepAlive(mem)
}

// Where the system refuses memory that it does not have, the pages of a window are
// there before anybody writes to them; elsewhere they come as they are used.
func TestHostBytesOfStrictMemory(t *testing.T) {
	was := strictMemory
	defer func() { strictMemory = was }()
	const n = 1 << 20
	for _, strict := range []bool{false, true} {
		strictMemory = func() bool { return strict }
		_, f, _ := hostBytesOf(t, n, true)
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		if there := st.Blocks * 512; strict && there < n || !strict && there > 0 {
			t.Errorf("strict is %v: %d bytes of %d are there", strict, there, n)
		}
	}
}
