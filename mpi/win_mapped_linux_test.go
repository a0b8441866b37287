//go:build amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64

package mpi

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Where the system refuses memory that it does not have, the pages of a window are
// there before anybody writes to them; elsewhere they come as they are used.
func TestHostBytesOfStrictMemory(t *testing.T) {
	sharing(t)
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
