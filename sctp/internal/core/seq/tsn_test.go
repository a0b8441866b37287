package seq

import "testing"

// RFC 9260, Section 1.6: TSN 0 follows TSN 2**32 - 1, SSN 0 follows 65535.
func TestSerialNumbersWrap(t *testing.T) {
	if top := TSN(0xffffffff); !top.Less(0) || TSN(0).Less(top) || !top.LessEq(top) {
		t.Error("TSN 2**32-1 does not come right before TSN 0")
	}
	if got := TSN(1).Sub(0xfffffffe); got != 3 {
		t.Errorf("TSN 1 - (2**32-2) = %d, want 3", got)
	}
	if top := SSN(0xffff); !top.Less(0) || SSN(0).Less(top) {
		t.Error("SSN 65535 does not come right before SSN 0")
	}
	if top := MID(0xffffffff); !top.Less(0) || MID(0).Less(top) {
		t.Error("MID 2**32-1 does not come right before MID 0")
	}
}
