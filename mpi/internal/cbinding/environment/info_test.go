package environment_test

import (
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
	"github.com/weftstack/weft/mpi/internal/cbinding/environment"
)

func TestInfoOfC(t *testing.T) {
	ctest.Returning(t)
	b := ctest.NewBox()
	ctest.Must(t, environment.InfoCreate(ctest.Addr(&b.Handle)))
	i := b.Handle
	for _, kv := range [][2]string{{"zeta", "1"}, {"alpha", "two"}, {"mid", ""}, {"zeta", "three"}} {
		ctest.Must(t, environment.InfoSet(i, ctest.CString(kv[0]), ctest.CString(kv[1])))
	}
	keys := func(i abi.Handle) (list []string) {
		ctest.Must(t, environment.InfoGetNkeys(i, ctest.Addr(&b.N)))
		for k := range int(b.N) {
			ctest.Must(t, environment.InfoGetNthkey(i, k, ctest.Addr(&b.Text)))
			list = append(list, b.String())
		}
		return list
	}
	if got := strings.Join(keys(i), " "); got != "zeta alpha mid" {
		t.Errorf("keys %q", got)
	}
	ctest.Must(t, environment.InfoDup(i, ctest.Addr(&b.Handle)))
	d := b.Handle
	ctest.Must(t, environment.InfoDelete(i, ctest.CString("alpha")))
	if got := strings.Join(keys(i), " ") + "; " + strings.Join(keys(d), " "); got != "zeta mid; zeta alpha mid" {
		t.Errorf("keys after the deletion, and of the duplicate: %q", got)
	}

	ctest.Must(t, environment.InfoGetValuelen(i, ctest.CString("zeta"), ctest.Addr(&b.N), ctest.Addr(&b.Flag)))
	if b.N != 5 || b.Flag != 1 {
		t.Errorf("length %d, flag %d", b.N, b.Flag)
	}
	ctest.Must(t, environment.InfoGet(i, ctest.CString("zeta"), 3, ctest.Addr(&b.Text), ctest.Addr(&b.Flag)))
	if b.String() != "thr" || b.Flag != 1 {
		t.Errorf("cut to 3: %q", b.String())
	}
	b.N = 4
	ctest.Must(t, environment.InfoGetString(i, ctest.CString("zeta"), ctest.Addr(&b.N), ctest.Addr(&b.Text), ctest.Addr(&b.Flag)))
	if b.String() != "thr" || b.N != 6 || b.Flag != 1 {
		t.Errorf("in 4 bytes: %q, needs %d", b.String(), b.N)
	}
	b.N = 0
	ctest.Must(t, environment.InfoGetString(i, ctest.CString("zeta"), ctest.Addr(&b.N), 0, ctest.Addr(&b.Flag)))
	if b.N != 6 {
		t.Errorf("needs %d", b.N)
	}
	b.N = 7
	ctest.Must(t, environment.InfoGetString(i, ctest.CString("none"), ctest.Addr(&b.N), ctest.Addr(&b.Text), ctest.Addr(&b.Flag)))
	if b.Flag != 0 || b.N != 7 {
		t.Errorf("a key that is not there: flag %d, length %d", b.Flag, b.N)
	}

	ctest.WantError(t, environment.InfoDelete(i, ctest.CString("alpha")), abi.ErrInfoNokey, "key alpha: is not set")
	ctest.WantError(t, environment.InfoSet(i, ctest.CString(""), ctest.CString("x")), abi.ErrInfoKey, "empty")
	ctest.WantError(t, environment.InfoSet(i, ctest.CString(strings.Repeat("k", abi.MaxInfoKey)), ctest.CString("x")), abi.ErrInfoKey, "too long")
	ctest.WantError(t, environment.InfoSet(i, ctest.CString("k"), ctest.CString(strings.Repeat("v", abi.MaxInfoVal))), abi.ErrInfoValue, "too long")
	ctest.Must(t, environment.InfoSet(i, ctest.CString("k"), ctest.CString(strings.Repeat("v", abi.MaxInfoVal-1))))
	ctest.WantError(t, environment.InfoSet(abi.InfoNull, ctest.CString("k"), ctest.CString("v")), abi.ErrInfo, "null handle")
	ctest.WantError(t, environment.InfoGetNthkey(i, 3, ctest.Addr(&b.Text)), abi.ErrArg, "n 3")
	ctest.WantError(t, environment.InfoGet(i, ctest.CString("zeta"), -1, ctest.Addr(&b.Text), ctest.Addr(&b.Flag)), abi.ErrArg, "valuelen -1")
	ctest.WantError(t, environment.InfoSet(i, 0, ctest.CString("v")), abi.ErrInfoKey, "NULL")

	if got := strings.Join(keys(abi.InfoEnv), " "); !strings.Contains(got, "command") {
		t.Errorf("keys of MPI_INFO_ENV: %q", got)
	}
	ctest.WantError(t, b.Free(environment.InfoFree, abi.InfoEnv), abi.ErrInfo, "MPI_INFO_ENV: cannot be freed")
	ctest.Must(t, b.Free(environment.InfoFree, d))
	ctest.Must(t, b.Free(environment.InfoFree, i))
	if b.Handle != abi.InfoNull {
		t.Errorf("freed handle %#x", b.Handle)
	}
	ctest.WantError(t, environment.InfoSet(i, ctest.CString("k"), ctest.CString("v")), abi.ErrInfo, "freed")
}
