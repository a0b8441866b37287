package cabi

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mistake is a mistake of a program, the status of the job, and what is said of it.
type mistake struct {
	which  string
	status int
	want   []string
}

// The usual mistakes in C. What is said names the procedure, the parameter and its value in the words of MPI, once.
func TestMistakes(t *testing.T) {
	makeMistakes(t, "mistakes.c", []mistake{
		{"before-init", 16, []string{"MPI_ERR_OTHER: MPI_Barrier: called before MPI_Init"}},
		{"rank", 6, []string{"fatal error on MPI_COMM_WORLD: MPI_ERR_RANK: MPI_Send: dest 7: is no rank of a communicator of 2\n", "with code 6: MPI_ERR_RANK in MPI_Send\n"}},
		{"tag", 4, []string{"MPI_ERR_TAG: MPI_Send: tag -3: is not between 0 and MPI_TAG_UB"}},
		{"count", 2, []string{"MPI_ERR_COUNT: MPI_Send: count -1: is negative"}},
		{"null-buffer", 1, []string{"MPI_ERR_BUFFER: MPI_Send: bad buffer: NULL, with 4 items of MPI_INT"}},
		{"null-type", 3, []string{"MPI_ERR_TYPE: MPI_Send: datatype MPI_DATATYPE_NULL: is the null handle"}},
		{"uncommitted", 3, []string{"MPI_Send: datatype 0x10", ": is not committed"}},
		{"type", 3, []string{"MPI_Recv: element types do not match: rank 0 sent MPI_INT with tag 5, the receive is of MPI_DOUBLE"}},
		{"truncated", 15, []string{"MPI_ERR_TRUNCATE: MPI_Recv: message truncated: 32 bytes for a buffer of 16\n"}},
		{"bcast-length", 15, []string{"MPI_ERR_TRUNCATE: MPI_Bcast: message truncated: 32 bytes for a buffer of 16\n"}},
		{"freed-comm", 5, []string{"MPI_ERR_COMM: MPI_Barrier: communicator 0x1000000: has been freed, or was never made"}},
		{"null-comm", 5, []string{"MPI_Barrier: communicator MPI_COMM_NULL: is the null handle"}},
		{"null-request", 7, []string{"MPI_Start: request MPI_REQUEST_NULL: is the null handle"}},
		{"active-request", 7, []string{"MPI_Start: request 0x40000000: is active already"}},
		{"free-world", 5, []string{"MPI_Comm_free: comm MPI_COMM_WORLD: cannot be freed"}},
		{"free-int", 3, []string{"MPI_Type_free: datatype MPI_INT: is predefined"}},
		{"root", 8, []string{"MPI_Bcast: root 9: is no rank of a communicator of 2"}},
		{"operator", 10, []string{"MPI_ERR_OP: MPI_Allreduce: operator not allowed here: MPI_BAND of MPI_DOUBLE\n"}},
		{"same-buffer", 1, []string{"MPI_Allreduce: sendbuf 0x", "pass MPI_IN_PLACE"}},
		{"window-range", 48, []string{"MPI_ERR_RMA_RANGE: MPI_Put: access outside the window: displacement 100 × 4 of rank 0, which has 16 bytes"}},
		{"window-epoch", 50, []string{"MPI_ERR_RMA_SYNC: MPI_Put: an operation is not allowed outside of an epoch"}},
		{"window-unlock", 50, []string{"MPI_ERR_RMA_SYNC: MPI_Win_unlock: MPI_Win_unlock is not allowed outside of an epoch"}},
		{"window-lock", 50, []string{"MPI_Win_lock of the same rank is not allowed after MPI_Win_lock"}},
		{"window-unit", 26, []string{"MPI_ERR_DISP: MPI_Win_create: disp_unit 0: is no positive int"}},
		{"gather-buffer", 1, []string{"MPI_ERR_BUFFER: MPI_Gather: bad buffer: NULL, with 8 items of MPI_INT"}},
		{"gatherv-displs", 13, []string{"MPI_ERR_ARG: MPI_Gatherv: displs NULL: is needed"}},
		{"alltoallv-count", 2, []string{"MPI_ERR_COUNT: MPI_Alltoallv: ", "counts[1] -4: is negative"}},
		{"in-place", 1, []string{"MPI_ERR_BUFFER: MPI_Reduce: buffer MPI_IN_PLACE: is not allowed here"}},
		{"bcast-type", 3, []string{"MPI_Bcast: element types do not match: rank 0 sent MPI_INT", "the receive is of MPI_DOUBLE"}},
		{"freed-type", 3, []string{"MPI_ERR_TYPE: MPI_Send: datatype 0x10000000: has been freed, or was never made"}},
		{"freed-request", 7, []string{"MPI_ERR_REQUEST: MPI_Wait: request 0x40000000: has been freed, or was never made"}},
		{"vector", 13, []string{"MPI_Type_vector: blocklength -2: is negative"}},
		{"subarray", 13, []string{"MPI_Type_create_subarray: array_of_subsizes 5: is greater than 4"}},
		{"group-rank", 6, []string{"MPI_ERR_RANK: MPI_Group_incl: ranks[1] 9: is no rank of a group of 2"}},
		{"group-twice", 6, []string{"MPI_ERR_RANK: MPI_Group_incl: ranks[1] 1: is there twice"}},
		{"split-color", 13, []string{"MPI_Comm_split: color -7: is negative"}},
		{"cart-size", 12, []string{"MPI_ERR_DIMS: MPI_Cart_create: bad topology: grid of [2 2] on 2 ranks"}},
		{"dims", 12, []string{"MPI_ERR_DIMS: MPI_Dims_create: bad topology: 8 ranks in a grid of [3 0]"}},
		{"no-topology", 11, []string{"MPI_ERR_TOPOLOGY: MPI_Cart_coords: comm MPI_COMM_WORLD: has no topology of kind MPI_CART"}},
		{"remote-size", 5, []string{"MPI_ERR_COMM: MPI_Comm_remote_size: comm MPI_COMM_WORLD: is no intercommunicator"}},
		{"info-key", 31, []string{"MPI_ERR_INFO_KEY: MPI_Info_set: key kkkk", "is too long"}},
		{"attach-twice", 1, []string{"MPI_ERR_BUFFER: MPI_Buffer_attach: a buffer is attached already"}},
		{"bsend-room", 1, []string{"MPI_Bsend: a message of 256 bytes and MPI_BSEND_OVERHEAD, 512, do not fit: 256 of the 256 bytes attached are free"}},
		{"handler", 61, []string{"MPI_Comm_set_errhandler: errhandler MPI_ERRHANDLER_NULL: is the null handle"}},
		{"file-error", 42, []string{"MPI_ERR_NO_SUCH_FILE: MPI_File_open: ", "/no/such/file"}},
		{"file-mode", 21, []string{"MPI_ERR_AMODE: MPI_File_open: ", "want one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR"}},
		{"spawn", 53, []string{"MPI_ERR_SPAWN: MPI_Comm_spawn: ", "program /no/such/program: not found"}},
		{"partition", 13, []string{"MPI_Pready: bad partition: partition 4 of 4 made ready"}},
		{"bsend", 1, []string{"MPI_ERR_BUFFER: MPI_Bsend: no buffer is attached for buffered sends"}},
		{"null-argument", 13, []string{"MPI_ERR_ARG: MPI_Test: request NULL: is needed"}},
		{"init-twice", 16, []string{"MPI_ERR_OTHER: MPI_Init: called twice"}},
		{"after-finalize", 16, []string{"MPI_ERR_OTHER: MPI_Barrier: called after MPI_Finalize"}},
		{"exit-early", 1, []string{"rank 1 (pid ", "exited without finalizing"}},
		{"exit-3", 3, []string{"rank 1 (pid ", "exited with status 3"}},
		{"abort", 5, []string{"weft [rank 1]: MPI_Abort(MPI_COMM_WORLD, 5)\n", "rank 1 aborted the job with code 5: MPI_Abort was called\n"}},
		{"crash", 139, []string{"rank 1 (pid ", "was killed by signal 11"}},
	})
}

// The usual mistakes in Fortran.
func TestMistakesInFortran(t *testing.T) {
	makeMistakes(t, "mistakes.f90", []mistake{
		{"before-init", 16, []string{"MPI_ERR_OTHER: MPI_Barrier: called before MPI_Init"}},
		{"rank", 6, []string{"MPI_ERR_RANK: MPI_Send: dest 7: is no rank of a communicator of 2\n"}},
		{"tag", 4, []string{"MPI_ERR_TAG: MPI_Send: tag -3: is not between 0 and MPI_TAG_UB"}},
		{"count", 2, []string{"MPI_ERR_COUNT: MPI_Send: count -1: is negative"}},
		{"unset-comm", 5, []string{"MPI_ERR_COMM: MPI_Barrier: communicator 0x", ": is no handle"}},
		{"null-type", 3, []string{"MPI_Send: datatype MPI_DATATYPE_NULL: is the null handle"}},
		{"uncommitted", 3, []string{"MPI_Send: datatype 0x10000000: is not committed"}},
		{"type", 3, []string{"MPI_Recv: element types do not match: rank 0 sent "}},
		{"truncated", 15, []string{"MPI_ERR_TRUNCATE: MPI_Recv: message truncated: 32 bytes for a buffer of 16\n"}},
		{"operator", 10, []string{"MPI_ERR_OP: MPI_Allreduce: operator not allowed here: MPI_MAX of MPI_COMPLEX\n"}},
		{"logical", 10, []string{"MPI_Allreduce: operator not allowed here: MPI_LAND of MPI_INTEGER\n"}},
		{"same-buffer", 1, []string{"MPI_Allreduce: sendbuf 0x", "pass MPI_IN_PLACE"}},
		{"cart-size", 12, []string{"MPI_ERR_DIMS: MPI_Cart_create: bad topology: grid of [2 2] on 2 ranks"}},
		{"window-range", 48, []string{"MPI_Put: access outside the window: displacement 100 × 4 of rank 0, which has 16 bytes"}},
		{"active-request", 7, []string{"MPI_Start: request 0x40000000: is active already"}},
		{"abort", 5, []string{"weft [rank 1]: MPI_Abort(MPI_COMM_WORLD, 5)\n"}},
	})
}

func makeMistakes(t *testing.T, program string, list []mistake) {
	mpiexec := filepath.Join(prefix(t), "bin", "mpiexec")
	exe := compile(t, filepath.Join("testdata", "tools", program))
	for _, tt := range list {
		t.Run(tt.which, func(t *testing.T) {
			out, errs, status := command(t, runTime, nil, mpiexec, "-n", "2", "-timeout", "20", exe, tt.which)
			if status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			for _, want := range tt.want {
				if !strings.Contains(errs, want) {
					t.Errorf("%q is not said", want)
				}
			}
			for _, word := range []string{": mpi: ", "int32", "float64", "datatype datatype", "goroutine", ".go:"} {
				if strings.Contains(errs, word) {
					t.Errorf("a word of Go: %q", word)
				}
			}
			if t.Failed() {
				t.Log(out + errs)
			}
		})
	}
}

// TestHangingCalls compares what is said of jobs that do not end: the procedures and the messages, in
// the words of MPI.
func TestHangingCalls(t *testing.T) {
	mpiexec := filepath.Join(prefix(t), "bin", "mpiexec")
	exe := compile(t, filepath.Join("testdata", "tools", "mistakes.c"))
	for which, want := range map[string][]string{
		"receives": {`rank 0 is in MPI_Recv; waits for a message from rank 1 with tag 42 in "ocean" \(at most 12 bytes\)`,
			`rank 1 is in MPI_Barrier; waits for a collective's message from rank 0 in "ocean"`},
		"waitall": {`rank 0 is in MPI_Waitall; waits for a message from any rank with tag 1 in "MPI_COMM_WORLD" \(at most 12 bytes\), ` +
			`a message from rank 1 with any tag in "MPI_COMM_WORLD" \(at most 16 bytes\)`},
		"ssend":    {`rank 0 is in MPI_Ssend; waits for a matching receive of rank 1`, `rank 1 is in MPI_Ssend; waits for a matching receive of rank 0`},
		"finalize": {`rank 0 is in MPI_Recv; waits for a message from rank 1`, `rank 1 is in MPI_Finalize`},
	} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			_, errs, status := command(t, runTime, nil, mpiexec, "-n", "2", "-timeout", "8", exe, which)
			if status != 124 {
				t.Errorf("status %d, want 124\n%s", status, errs)
			}
			for _, w := range want {
				if !regexp.MustCompile(w).MatchString(errs) {
					t.Errorf("%s is not said\n%s", w, errs)
				}
			}
			for _, m := range regexp.MustCompile(`are in (\S+)`).FindAllStringSubmatch(errs, -1) {
				os.Remove(m[1])
			}
		})
	}
}
