package job

import (
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi/internal/p2p"
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

// What an operation waits for is said with the peer, the tag and the communicator, as far as they mean something to
// the program.
func TestDescribe(t *testing.T) {
	const msg, probe, body, recv = p2p.ExpectedMessage, p2p.ExpectedProbe, p2p.ExpectedBody, p2p.ExpectedReceive
	for _, tt := range []struct {
		v               p2p.Expected
		comm, operation string
		want            string
	}{
		{p2p.Expected{Kind: msg, Peer: 1, Tag: 7, Room: 8}, `"c"`, "", `a message from rank 1 with tag 7 in "c" (at most 8 bytes)`},
		{p2p.Expected{Kind: probe, Peer: p2p.AnySource, Tag: p2p.AnyTag}, `"c"`, "", `a message from any rank with any tag in "c"`},
		{p2p.Expected{Kind: body, Peer: 1, Tag: 7}, `"c"`, "", `the rest of a message from rank 1 with tag 7 in "c"`},
		{p2p.Expected{Kind: body, Peer: 1, Tag: 7, Slot: p2p.SlotColl}, `"c"`, "", `the rest of a collective's message from rank 1 in "c"`},
		{p2p.Expected{Kind: recv, Peer: 1, Tag: 7}, "", "", `a matching receive of rank 1 with tag 7`},
		{p2p.Expected{Kind: recv, Peer: 1, Tag: 7, Slot: p2p.SlotColl}, `"c"`, "", `rank 1 to take a collective's message in "c"`},
		{p2p.Expected{Kind: msg, Peer: 1, Slot: p2p.SlotComm, Room: 8}, `"c"`, "", `a collective's message from rank 1 in "c"`},
		{p2p.Expected{Kind: msg, Peer: 1, Slot: p2p.SlotWin, Room: 8}, `"w"`, "", `a one-sided message from rank 1 in "w"`},
		{p2p.Expected{Kind: msg, Peer: 0, Slot: p2p.SlotComm}, `"c"`, "a message of rank 3", `a message of rank 3 in "c"`},
	} {
		if got := describe(tt.v, tt.comm, tt.operation); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.v, got, tt.want)
		}
	}
}
