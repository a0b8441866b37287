package core

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// private returns what x, a pointer to a part of an association, hides from it: the value at the end
// of a path of fields and indices, which can be set. Tests look with it at state for which the
// association has no use, and bring about states that are rare.
func private(x any, path string) reflect.Value {
	v := reflect.ValueOf(x).Elem()
	for name := range strings.SplitSeq(path, ".") {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if i, err := strconv.Atoi(name); err == nil {
			v = v.Index(i)
		} else {
			v = v.FieldByName(name)
		}
	}
	return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
}

// outstanding returns the record that the scoreboard has of an outstanding TSN.
func outstanding(s *tx.Scoreboard, t seq.TSN) reflect.Value {
	recs := private(s, "recs")
	return recs.Index(int(t) & (recs.Len() - 1))
}

// fill makes a pointer that private returned point to something.
func fill(v reflect.Value) { v.Set(reflect.New(v.Type().Elem())) }

// setField sets a field, or one of a field, of what p points to, which may be of another
// package.
func setField(p any, path string, v any) { private(p, path).Set(reflect.ValueOf(v)) }
