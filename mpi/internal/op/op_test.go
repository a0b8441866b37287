package op

import (
	"reflect"
	"testing"
)

// TestPredefined checks which operators updates of elements of each kind have, and that
// each has the code of its place.
func TestPredefined(t *testing.T) {
	for _, tt := range []struct {
		elem any
		want int
	}{
		{int32(0), 12}, {uint8(0), 12}, {uintptr(0), 12}, {1.0, 6}, {1i, 4}, {false, 5}, {[2]int{}, 2}, {struct{}{}, 2},
	} {
		n := 0
		for code, o := range Predefined(reflect.TypeOf(tt.elem).Kind()) {
			if o == nil {
				continue
			}
			n++
			if o.Code() != Code(code) {
				t.Errorf("%s of %T has code %d in place %d", o.Name(), tt.elem, o.Code(), code)
			}
		}
		if n != tt.want {
			t.Errorf("%T has %d operators, want %d", tt.elem, n, tt.want)
		}
	}
}
