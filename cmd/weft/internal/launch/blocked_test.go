package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/mpi"
)

// deadlockRank makes some calls, and one that never ends: rank 0 receives from rank 1,
// rank 1 waits in a Barrier, and rank 2, if there is one, is in none.
func deadlockRank(ctx context.Context) error {
	w, err := mpi.Init(ctx)
	if err != nil {
		return err
	}
	c := w.Comm()
	sum := make([]int, 1)
	for range 10 {
		if err := mpi.Allreduce(ctx, c, []int{1}, sum, mpi.Sum); err != nil {
			return err
		}
	}
	switch c.Rank() {
	case 0:
		go sayBlocked("weft/mpi.Recv[")
		_, err = mpi.Recv(ctx, c, sum, 1, 7)
	case 1:
		go sayBlocked("weft/mpi.Barrier(")
		err = mpi.Barrier(ctx, c)
	default:
		fmt.Println("blocked")
		<-ctx.Done()
	}
	return err
}

// sayBlocked prints a line when a goroutine of this process is in a function.
func sayBlocked(function string) {
	stacks := make([]byte, 1<<20)
	for !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte(function)) {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("blocked")
}

// stacksFile returns the name of the file with the stacks that the launcher tells.
func stacksFile(t *testing.T, errs string) string {
	t.Helper()
	m := regexp.MustCompile(`the goroutine stacks of the ranks are in (\S+)`).FindStringSubmatch(errs)
	if m == nil {
		t.Fatal("no file with stacks is named")
	}
	t.Cleanup(func() { os.Remove(m[1]) })
	return m[1]
}

// A job that does not end says at its timeout which rank waits in which call for whom, a
// line a rank, and what it has traced and profiled until then is there.
func TestTimeoutSaysWhoWaitsForWhom(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace.json")
	_, errs, status := clitest.Weft(t, "", "run", "-n", "3", "-timeout", "10s", "-profile", "-json", "-trace", trace, os.Args[0], "deadlock")
	if status != exitTimeout {
		t.Errorf("status %d, want %d", status, exitTimeout)
	}
	for _, want := range []string{
		`rank 0 is in Recv at blocked_test\.go:\d+; waits for a message from rank 1 with tag 7 in "\S+" \(at most 8 bytes\)\n`,
		`rank 1 is in Barrier at blocked_test\.go:\d+; waits for a collective's message from rank [02] in "\S+"`,
		`rank 2 is in no call of MPI\n`,
	} {
		if !regexp.MustCompile(`weft run: ` + want).MatchString(errs) {
			t.Errorf("no line %s", want)
		}
	}
	stacks, err := os.ReadFile(stacksFile(t, errs))
	if err != nil || !strings.Contains(string(stacks), "== rank-0\n") || !strings.Contains(string(stacks), "deadlockRank") {
		t.Errorf("%v, %d bytes of stacks without those of rank 0", err, len(stacks))
	}
	var p mpi.JobProfile
	at := strings.Index(errs, "{\"ranks\"")
	if at < 0 || !strings.Contains(errs, "3 ranks exited without Finalize") {
		t.Fatal("no profile, or not told that it is partial")
	}
	if err := json.NewDecoder(strings.NewReader(errs[at:])).Decode(&p); err != nil || len(p.Calls) == 0 || p.Calls[0].Count != 30 {
		t.Errorf("profile %+v, %v; want 30 calls of Allreduce", p.Calls, err)
	}
	var events []jobEvent
	text, err := os.ReadFile(trace)
	if err == nil {
		err = json.Unmarshal(text, &events)
	}
	n := 0
	for _, e := range events {
		if e.Name == "Allreduce" {
			n++
		}
	}
	if err != nil || n != 30 {
		t.Errorf("%d calls traced, %v; want 30", n, err)
	}
}
