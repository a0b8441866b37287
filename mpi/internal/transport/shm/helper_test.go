package shm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/cma"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

var errTestOver = errors.New("test over")

// foreign is a byte that no message of these tests is made of.
const foreign = 0xa5

// testSeed returns the seed of a test, which WEFT_SEED sets.
func testSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("WEFT_SEED"), 0, 64); err == nil {
		seed = s
	}
	t.Logf("WEFT_SEED=%#x", seed)
	return seed
}

// pattern fills b with the bytes of a message.
func pattern(b []byte, seed int) {
	x := uint32(seed)*2654435761 + 12345
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
}

func checkPattern(b []byte, seed int) error {
	want := make([]byte, len(b))
	pattern(want, seed)
	for i := range b {
		if b[i] != want[i] {
			return fmt.Errorf("byte %d of %d of message %d = %d, want %d", i, len(b), seed, b[i], want[i])
		}
	}
	return nil
}

// peerError makes the error of operations with a peer that has failed.
func peerError(p *p2p.Peer, err error) error { return fmt.Errorf("rank %d: %w", p.Rank, err) }

// copying needs a system that copies memory between processes.
func copying(t *testing.T) {
	t.Helper()
	sharing(t)
	var x, y [1]byte
	if err := cma.Read(os.Getpid(), uint64(uintptr(unsafe.Pointer(&x[0]))), y[:]); err != nil {
		t.Skip("the system copies no memory between processes: ", err)
	}
}
