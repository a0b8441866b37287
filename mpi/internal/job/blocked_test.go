package job

import (
	"slices"
	"strings"
	"testing"
)

// TestBlockedCalls reads stacks as the runtime writes them: of calls of package mpi only the outermost exported one is
// named, with the place in the program, and equal ones are counted.
func TestBlockedCalls(t *testing.T) {
	stacks := `goroutine 1 [select]:
github.com/weftstack/weft/mpi/internal/p2p.(*Engine).AwaitRecv(0xc000, {0x1, 0x2})
	/src/mpi/internal/p2p/wait.go:80 +0x1
github.com/weftstack/weft/mpi.Recv[...]({0x1, 0x2})
	/src/mpi/p2p.go:100 +0x2
main.main()
	/home/user/ring.go:12 +0x3

goroutine 7 [select]:
github.com/weftstack/weft/mpi/internal/job.(*Job).Finalize(0xc000)
	/src/mpi/internal/job/finalize.go:40 +0x1
github.com/weftstack/weft/mpi.(*World).Finalize(0xc000)
	/src/mpi/world.go:120 +0x2
main.work()
	/home/user/ring.go:30 +0x3
created by main.main in goroutine 1
	/home/user/ring.go:10 +0x4

goroutine 8 [select]:
github.com/weftstack/weft/mpi.(*World).Finalize(0xc000)
	/src/mpi/world.go:120 +0x2
main.work()
	/home/user/ring.go:30 +0x3

goroutine 9 [select]:
github.com/weftstack/weft/mpi.(*Comm).barrier(0xc000)
	/src/mpi/comm_messages.go:20 +0x2
main.other()
	/home/user/ring.go:40 +0x3

goroutine 10 [select, locked to thread]:
entry.Send(0x1)
	/lib/exports.go:5 +0x2
runtime.goexit()
	/go/asm.s:1 +0x3`
	got := blockedCalls([]byte(stacks), func(entry string) string {
		if name, ok := strings.CutPrefix(entry, "entry."); ok {
			return "MPI_" + name
		}
		return ""
	})
	want := []string{"MPI_Send", "Recv at ring.go:12", "World.Finalize at ring.go:30 (2 goroutines)"}
	if !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

// A report names at most maxBlockedItems calls, and says how many more there are.
func TestLimitItems(t *testing.T) {
	got := limitItems(slices.Repeat([]string{"x"}, maxBlockedItems+3))
	if len(got) != maxBlockedItems+1 || got[maxBlockedItems] != "and 3 more" {
		t.Errorf("%d items, the last %q", len(got), got[len(got)-1])
	}
}
