package cabi

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestHangReports has each rank of a job hang in another call. At the time limit the report of each names the
// procedure, the peer, the tag and the communicator, in the words of MPI.
func TestHangReports(t *testing.T) {
	mpiexec := filepath.Join(prefix(t), "bin", "mpiexec")
	exe := compile(t, filepath.Join("testdata", "tools", "hangs.c"))
	want := []string{
		`MPI_Probe; waits for a message from rank 1 with tag 42 in "ocean"`,
		`MPI_Mprobe; waits for a message from any rank with any tag in "ocean"`,
		`MPI_Send; waits for a matching receive of rank 1 with tag 42 in "ocean"`,
		`MPI_Ssend; waits for a matching receive of rank 1 with tag 42 in "ocean"`,
		`MPI_Sendrecv; waits for a message from rank 1 with tag 43 in "ocean" (at most 12 bytes)`,
		`MPI_Wait; waits for a partitioned message from rank 1 with tag 42 in "ocean"`,
		`MPI_Waitany; waits for a message from rank 1 with tag 42 in "ocean" (at most 12 bytes)`,
		`MPI_Gatherv; waits for a collective's message from rank 1 in "ocean"`,
		`MPI_Comm_split; waits for a collective's message from rank 1 in "ocean"`,
		`MPI_Cart_create; waits for a collective's message from rank 1 in "ocean"`,
		`MPI_Win_start; waits for a one-sided message from rank 1 in "window tide"`,
		`MPI_Win_fence; waits for a collective's message from rank 1 in "window tide"`,
		`MPI_File_open; waits for a collective's message from rank 1 in "file of ocean"`,
		`MPI_Intercomm_create; waits for a collective's message from rank 1 in "ocean"`,
		`MPI_Comm_disconnect; waits for a collective's message from rank 1 in "ocean"`,
		`MPI_Recv; waits for a message from rank 0 with tag 999 in "MPI_COMM_WORLD" (at most 4 bytes)`,
	}
	_, errs, status := command(t, runTime, []string{"MPIEXEC_TIMEOUT=15"}, mpiexec, "-n", strconv.Itoa(len(want)), exe)
	if status != 124 {
		t.Errorf("status %d, want 124", status)
	}
	for rank, w := range want {
		if line := "weft run: rank " + strconv.Itoa(rank) + " is in " + w + "\n"; !strings.Contains(errs, line) {
			t.Errorf("not said: %s", line)
		}
	}
	for _, m := range regexp.MustCompile(`are in (\S+)`).FindAllStringSubmatch(errs, -1) {
		os.Remove(m[1])
	}
	if t.Failed() {
		t.Log(errs)
	}
}
