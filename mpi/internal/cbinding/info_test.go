package cbinding

import (
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
)

func TestInfoOfC(t *testing.T) {
	returning(t)
	b := newBox()
	must(t, InfoCreate(addr(&b.handle)))
	i := b.handle
	for _, kv := range [][2]string{{"zeta", "1"}, {"alpha", "two"}, {"mid", ""}, {"zeta", "three"}} {
		must(t, InfoSet(i, cstring(kv[0]), cstring(kv[1])))
	}
	keys := func(i Handle) (list []string) {
		must(t, InfoGetNkeys(i, addr(&b.n)))
		for k := range int(b.n) {
			must(t, InfoGetNthkey(i, k, addr(&b.text)))
			list = append(list, b.string())
		}
		return list
	}
	if got := strings.Join(keys(i), " "); got != "zeta alpha mid" {
		t.Errorf("keys %q", got)
	}
	must(t, InfoDup(i, addr(&b.handle)))
	d := b.handle
	must(t, InfoDelete(i, cstring("alpha")))
	if got := strings.Join(keys(i), " ") + "; " + strings.Join(keys(d), " "); got != "zeta mid; zeta alpha mid" {
		t.Errorf("keys after the deletion, and of the duplicate: %q", got)
	}

	must(t, InfoGetValuelen(i, cstring("zeta"), addr(&b.n), addr(&b.flag)))
	if b.n != 5 || b.flag != 1 {
		t.Errorf("length %d, flag %d", b.n, b.flag)
	}
	must(t, InfoGet(i, cstring("zeta"), 3, addr(&b.text), addr(&b.flag)))
	if b.string() != "thr" || b.flag != 1 {
		t.Errorf("cut to 3: %q", b.string())
	}
	b.n = 4
	must(t, InfoGetString(i, cstring("zeta"), addr(&b.n), addr(&b.text), addr(&b.flag)))
	if b.string() != "thr" || b.n != 6 || b.flag != 1 {
		t.Errorf("in 4 bytes: %q, needs %d", b.string(), b.n)
	}
	b.n = 0
	must(t, InfoGetString(i, cstring("zeta"), addr(&b.n), 0, addr(&b.flag)))
	if b.n != 6 {
		t.Errorf("needs %d", b.n)
	}
	b.n = 7
	must(t, InfoGetString(i, cstring("none"), addr(&b.n), addr(&b.text), addr(&b.flag)))
	if b.flag != 0 || b.n != 7 {
		t.Errorf("a key that is not there: flag %d, length %d", b.flag, b.n)
	}

	wantError(t, InfoDelete(i, cstring("alpha")), abi.ErrInfoNokey, "key alpha: is not set")
	wantError(t, InfoSet(i, cstring(""), cstring("x")), abi.ErrInfoKey, "empty")
	wantError(t, InfoSet(i, cstring(strings.Repeat("k", abi.MaxInfoKey)), cstring("x")), abi.ErrInfoKey, "too long")
	wantError(t, InfoSet(i, cstring("k"), cstring(strings.Repeat("v", abi.MaxInfoVal))), abi.ErrInfoValue, "too long")
	must(t, InfoSet(i, cstring("k"), cstring(strings.Repeat("v", abi.MaxInfoVal-1))))
	wantError(t, InfoSet(abi.InfoNull, cstring("k"), cstring("v")), abi.ErrInfo, "null handle")
	wantError(t, InfoGetNthkey(i, 3, addr(&b.text)), abi.ErrArg, "n 3")
	wantError(t, InfoGet(i, cstring("zeta"), -1, addr(&b.text), addr(&b.flag)), abi.ErrArg, "valuelen -1")
	wantError(t, InfoSet(i, 0, cstring("v")), abi.ErrInfoKey, "NULL")

	if got := strings.Join(keys(abi.InfoEnv), " "); !strings.Contains(got, "command") {
		t.Errorf("keys of MPI_INFO_ENV: %q", got)
	}
	wantError(t, b.free(InfoFree, abi.InfoEnv), abi.ErrInfo, "MPI_INFO_ENV: cannot be freed")
	must(t, b.free(InfoFree, d))
	must(t, b.free(InfoFree, i))
	if b.handle != abi.InfoNull {
		t.Errorf("freed handle %#x", b.handle)
	}
	wantError(t, InfoSet(i, cstring("k"), cstring("v")), abi.ErrInfo, "freed")
}
