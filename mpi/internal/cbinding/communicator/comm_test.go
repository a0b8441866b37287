package communicator

import (
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
)

func TestCommunicators(t *testing.T) {
	ctest.Returning(t)
	b := ctest.NewBox()
	ctest.Must(t, CommRank(abi.CommWorld, ctest.Addr(&b.N)))
	ctest.Must(t, CommSize(abi.CommWorld, ctest.Addr(&b.Flag)))
	if b.N != 0 || b.Flag != 1 {
		t.Fatalf("rank %d of %d", b.N, b.Flag)
	}
	ctest.Must(t, CommGetName(abi.CommWorld, ctest.Addr(&b.Text), ctest.Addr(&b.N)))
	if b.String() != "MPI_COMM_WORLD" || b.N != 14 {
		t.Errorf("name %q of %d", b.String(), b.N)
	}
	ctest.Must(t, CommDup(abi.CommWorld, ctest.Addr(&b.Handle)))
	d := b.Handle
	ctest.Must(t, CommCompare(abi.CommWorld, d, ctest.Addr(&b.N)))
	if b.N != abi.Congruent {
		t.Errorf("a duplicate compares as %d", b.N)
	}
	ctest.Must(t, CommSplit(d, abi.Undefined, 0, ctest.Addr(&b.Handle)))
	if b.Handle != abi.CommNull {
		t.Errorf("split of MPI_UNDEFINED gives %#x", b.Handle)
	}
	ctest.Must(t, CommSplitType(d, abi.CommTypeShared, 0, abi.InfoNull, ctest.Addr(&b.Handle)))
	ctest.Must(t, CommFree(ctest.Addr(&b.Handle)))
	ctest.Must(t, CommGroup(d, ctest.Addr(&b.Handle)))
	g := b.Handle
	ctest.Must(t, CommCreate(d, g, ctest.Addr(&b.Handle)))
	ctest.Must(t, CommFree(ctest.Addr(&b.Handle)))
	ctest.Must(t, CommCreate(d, abi.GroupEmpty, ctest.Addr(&b.Handle)))
	if b.Handle != abi.CommNull {
		t.Errorf("create with an empty group gives %#x", b.Handle)
	}
	ctest.Must(t, CommCreateGroup(d, g, 3, ctest.Addr(&b.Handle)))
	ctest.Must(t, CommFree(ctest.Addr(&b.Handle)))
	ctest.Must(t, b.Free(GroupFree, g))
	ctest.Must(t, CommTestInter(d, ctest.Addr(&b.Flag)))
	if b.Flag != 0 {
		t.Error("a duplicate of the world is an intercommunicator")
	}

	ctest.WantError(t, CommRank(abi.CommNull, ctest.Addr(&b.N)), abi.ErrComm, "MPI_Comm_rank: communicator MPI_COMM_NULL: is the null handle")
	ctest.WantError(t, CommRank(abi.CommWorld, 0), abi.ErrArg, "NULL")
	ctest.WantError(t, CommSize(g, ctest.Addr(&b.N)), abi.ErrComm, "handle of a group")
	ctest.WantError(t, CommSplit(d, -5, 0, ctest.Addr(&b.Handle)), abi.ErrArg, "color -5: is negative")
	ctest.WantError(t, CommSplitType(d, 7, 0, abi.InfoNull, ctest.Addr(&b.Handle)), abi.ErrArg, "split_type 7")
	ctest.WantError(t, CommRemoteSize(d, ctest.Addr(&b.N)), abi.ErrComm, "no intercommunicator")
	ctest.Must(t, CommSetName(d, ctest.CString(strings.Repeat("x", 200))))
	ctest.Must(t, CommGetName(d, ctest.Addr(&b.Text), ctest.Addr(&b.N)))
	if b.N != abi.MaxObjectName-1 {
		t.Errorf("a long name is cut to %d", b.N)
	}
	ctest.WantError(t, IntercommCreate(d, 4, d, 0, 1, ctest.Addr(&b.Handle)), abi.ErrRank, "local_leader 4")
	ctest.WantError(t, b.Free(CommFree, abi.CommWorld), abi.ErrComm, "MPI_COMM_WORLD: cannot be freed")
	ctest.Must(t, b.Free(CommFree, d))
	if b.Handle != abi.CommNull {
		t.Errorf("freed handle %#x", b.Handle)
	}
	ctest.WantError(t, CommRank(d, ctest.Addr(&b.N)), abi.ErrComm, "has been freed")
}

func TestGroupsOfC(t *testing.T) {
	ctest.Returning(t)
	b := ctest.NewBox()
	ctest.Must(t, CommGroup(abi.CommWorld, ctest.Addr(&b.Handle)))
	g := b.Handle
	b.Ints = [16]int32{0}
	ctest.Must(t, GroupIncl(g, 1, ctest.Addr(&b.Ints), ctest.Addr(&b.Handle)))
	h := b.Handle
	ctest.Must(t, GroupCompare(g, h, ctest.Addr(&b.N)))
	if b.N != abi.Ident {
		t.Errorf("equal groups compare as %d", b.N)
	}
	ctest.Must(t, GroupExcl(g, 1, ctest.Addr(&b.Ints), ctest.Addr(&b.Handle)))
	if b.Handle != abi.GroupEmpty {
		t.Errorf("a group without members is %#x", b.Handle)
	}
	ctest.Must(t, GroupFree(ctest.Addr(&b.Handle)))
	ctest.Must(t, GroupSize(abi.GroupEmpty, ctest.Addr(&b.N)))
	ctest.Must(t, GroupRank(abi.GroupEmpty, ctest.Addr(&b.Flag)))
	if b.N != 0 || b.Flag != abi.Undefined {
		t.Errorf("empty group: size %d, rank %d", b.N, b.Flag)
	}
	b.Ints = [16]int32{0, 1, 2, abi.ProcNull}
	ctest.Must(t, GroupRangeIncl(g, 1, ctest.Addr(&b.Ints), ctest.Addr(&b.Handle))) // 1 is no rank, but the stride passes it
	ctest.Must(t, GroupSize(b.Handle, ctest.Addr(&b.N)))
	if b.N != 1 {
		t.Errorf("range of %d", b.N)
	}
	ctest.Must(t, GroupTranslateRanks(g, 1, ctest.Addr(&b.Ints), h, ctest.Addr(&b.Ints[8])))
	ctest.Must(t, GroupTranslateRanks(g, 1, ctest.Addr(&b.Ints), abi.GroupEmpty, ctest.Addr(&b.Ints[9])))
	ctest.Must(t, GroupTranslateRanks(g, 1, ctest.Addr(&b.Ints[3]), h, ctest.Addr(&b.Ints[10])))
	if got := b.Ints[8:11]; !slices.Equal(got, []int32{0, abi.Undefined, abi.ProcNull}) {
		t.Errorf("translated ranks %d", got)
	}
	b.Ints = [16]int32{0, 0, 3}
	ctest.WantError(t, GroupIncl(g, 2, ctest.Addr(&b.Ints), ctest.Addr(&b.Handle)), abi.ErrRank, "ranks[1] 0: is there twice")
	ctest.WantError(t, GroupIncl(g, 3, ctest.Addr(&b.Ints[2]), ctest.Addr(&b.Handle)), abi.ErrRank, "ranks[0] 3: is no rank of a group of 1")
	ctest.WantError(t, GroupIncl(g, -1, ctest.Addr(&b.Ints[2]), ctest.Addr(&b.Handle)), abi.ErrArg, "n -1: is negative")
	ctest.WantError(t, GroupIncl(g, 1, 0, ctest.Addr(&b.Handle)), abi.ErrArg, "ranks NULL")
	b.Ints = [16]int32{0, 0, 0}
	ctest.WantError(t, GroupRangeIncl(g, 1, ctest.Addr(&b.Ints), ctest.Addr(&b.Handle)), abi.ErrArg, "stride of 0")
	b.Ints = [16]int32{0, 1 << 30, 1}
	ctest.WantError(t, GroupRangeExcl(g, 1, ctest.Addr(&b.Ints), ctest.Addr(&b.Handle)), abi.ErrRank, "ranges[0] 1: is no rank")
	ctest.WantError(t, GroupSize(abi.GroupNull, ctest.Addr(&b.N)), abi.ErrGroup, "null handle")
}
