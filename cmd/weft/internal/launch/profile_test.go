package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/mpi"
)

// mpiRank is a rank that makes some MPI calls.
func mpiRank(ctx context.Context) error {
	w, err := mpi.Init(ctx)
	if err != nil {
		return err
	}
	c := w.Comm()
	if c.Rank() == 0 {
		err = mpi.Send(ctx, c, make([]byte, 1000), 1, 0)
	} else if c.Rank() == 1 {
		_, err = mpi.Recv(ctx, c, make([]byte, 1000), 0, 0)
	}
	for range 3 {
		if err == nil {
			err = mpi.Barrier(ctx, c)
		}
	}
	return errors.Join(err, w.Finalize(ctx))
}

// jobEvent is an event of a file that `weft run -trace` writes.
type jobEvent struct {
	Name, Ph string
	Pid      int
	Args     struct{ Name string }
}

// runProfiled runs a role as a job of n ranks, with -profile and -trace, and returns
// what these write and what the launcher says.
func runProfiled(t *testing.T, n, role string) (p mpi.JobProfile, events []jobEvent, errs string) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace.json")
	_, errs, status := clitest.Weft(t, "", "run", "-n", n, "-profile", "-json", "-trace", trace, os.Args[0], role)
	i := strings.Index(errs, "{")
	if status != 0 || i < 0 {
		t.Fatalf("status %d, or no profile", status)
	}
	if err := json.Unmarshal([]byte(errs[i:]), &p); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &events); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return p, events, errs
}

func TestRunProfiles(t *testing.T) {
	p, events, errs := runProfiled(t, "3", "mpi")
	at := slices.IndexFunc(p.Calls, func(c mpi.CallSummary) bool { return c.Name == "Barrier" })
	if p.Ranks != 3 || at < 0 || p.Calls[at].Count != 9 || p.Time <= 0 || p.Calls[at].Max <= 0 {
		t.Errorf("profile %+v", p)
	}
	if m := p.Matrix[0][1]; m.Bytes < 1000 || m.Messages < 4 || p.Matrix[1][0].Bytes >= 1000 {
		t.Errorf("matrix %v", p.Matrix)
	}
	count := make(map[string]int)
	for _, e := range events {
		count[fmt.Sprintf("%s %s %d", e.Ph, e.Name, e.Pid)]++
	}
	for _, want := range []struct {
		what string
		n    int
	}{{"X Send 0", 1}, {"X Recv 1", 1}, {"X Barrier 2", 3}, {"M process_name 2", 1}, {"M trace_end 0", 0}} {
		if count[want.what] != want.n {
			t.Errorf("%d events %q, want %d", count[want.what], want.what, want.n)
		}
	}
	if !strings.Contains(errs, "11 calls traced") {
		t.Error("the number of calls is not told")
	}

	_, errs, _ = clitest.Weft(t, "", "run", "-n", "2", "-profile", os.Args[0], "mpi")
	if !strings.Contains(errs, "Barrier") || !strings.Contains(errs, "bytes from/to") {
		t.Error("no tables")
	}
	_, errs, status := clitest.Weft(t, "", "run", "-n", "2", "-profile", os.Args[0], "alone")
	if status != 0 || !strings.Contains(errs, "no profile of 2 ranks") {
		t.Errorf("status %d of a program without MPI", status)
	}
}

func TestMergeTracesSeparatesOverlap(t *testing.T) {
	dir := t.TempDir()
	event := func(name string, ts, dur int) string {
		return fmt.Sprintf(`{"name":%q,"ph":"X","pid":0,"tid":0,"ts":%d,"dur":%d}`, name, ts, dur)
	}
	file := filepath.Join(dir, "0")
	text := "[\n" + strings.Join([]string{event("inner", 2, 2), event("outer", 0, 10), event("across", 5, 10), event("later", 20, 1)}, ",\n") +
		",\n" + `{"name":"cut`
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	n, err := mergeTraces(&b, []track{{file: file}, {file: filepath.Join(dir, "none")}})
	if err != nil || n != 4 {
		t.Fatalf("%d events, %v", n, err)
	}
	var events []struct {
		Name string
		Tid  int
	}
	if err := json.Unmarshal([]byte(b.String()), &events); err != nil {
		t.Fatalf("%v in %s", err, b.String())
	}
	want := map[string]int{"outer": 0, "inner": 0, "across": 1, "later": 0}
	for _, e := range events {
		if e.Tid != want[e.Name] {
			t.Errorf("%s on line %d, want %d", e.Name, e.Tid, want[e.Name])
		}
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("x", maxTraceLine+1)), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := mergeTraces(&b, []track{{file: file}}); err == nil {
		t.Error("a line without end was taken")
	}
	b.Reset()
	if _, err := mergeTraces(&b, nil); err != nil || json.Unmarshal([]byte(b.String()), &events) != nil {
		t.Errorf("no events: %q, %v", b.String(), err)
	}
}

func TestProfilesThatAreDamaged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p")
	for _, text := range []string{"{", `{"rank":7,"size":2}`} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := readProfiles([]string{file}); err == nil {
			t.Errorf("profile %q was taken", text)
		}
	}
	if _, err := readBounded(file, 5); err == nil {
		t.Error("a file that is too long was read")
	}
	if err := os.Truncate(file, maxReport+1); err != nil { // a hole
		t.Fatal(err)
	}
	if _, _, _, err := readProfiles([]string{file}); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a profile that is too long: %v", err)
	}
}

// Spawned ranks have profiles and tracks of their own.
func TestRunProfilesSpawned(t *testing.T) {
	p, events, _ := runProfiled(t, "2", "parent")
	if p.Ranks != 2 || len(p.Spawned) != 1 || p.Spawned[0].Ranks != 3 {
		t.Fatalf("profile %+v", p)
	}
	for name, calls := range map[string][]mpi.CallSummary{"Comm.Spawn": p.Calls, "Allreduce": p.Spawned[0].Calls} {
		if !slices.ContainsFunc(calls, func(c mpi.CallSummary) bool { return c.Name == name }) {
			t.Errorf("no %s in %+v", name, calls)
		}
	}
	// Each of the five puts a word to each other one, those of the other job too.
	for rank, sent := range slices.Concat(p.Others, p.Spawned[0].Others) {
		if sent.Messages < 2 || sent.Bytes < 16 {
			t.Errorf("process %d has sent %+v to the other job", rank, sent)
		}
	}
	var b strings.Builder
	if _, err := p.WriteTo(&b); err != nil || strings.Count(b.String(), "other jobs") != 4 || !strings.Contains(b.String(), "spawned group 1: 3 ranks") {
		t.Errorf("tables %s, %v", b.String(), err)
	}
	names := make(map[int]string)
	calls := make(map[int]int)
	for _, e := range events {
		if e.Name == "process_name" {
			names[e.Pid] = e.Args.Name
		} else if e.Ph == "X" {
			calls[e.Pid]++
		}
	}
	for pid, want := range []string{"rank 0", "rank 1", "spawned rank 1:0", "spawned rank 1:1", "spawned rank 1:2"} {
		if names[pid] != want || calls[pid] == 0 {
			t.Errorf("track %d is %q with %d calls, want %q", pid, names[pid], calls[pid], want)
		}
	}
}
