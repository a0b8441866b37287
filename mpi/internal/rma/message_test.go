package rma

import (
	"slices"
	"testing"

	"github.com/weftstack/weft/mpi/internal/op"
)

// TestWinMessage reads requests that no origin sends.
func TestWinMessage(t *testing.T) {
	good := amHeader{kind: amUpdate, op: uint8(op.CodeSum), answer: true, num: 1, off: 1 << 33, n: 8,
		elem: elemFloat64, size: 8}
	b := make([]byte, amHeaderLen+8)
	good.put(b)
	var h amHeader
	if data, ok := h.get(b); !ok || len(data) != 8 || h != good {
		t.Errorf("read %+v and %d bytes, want %+v", h, len(data), good)
	}
	for name, change := range map[string]func(b []byte) []byte{
		"empty":              func(b []byte) []byte { return nil },
		"short":              func(b []byte) []byte { return b[:amHeaderLen-1] },
		"no kind":            func(b []byte) []byte { b[0] = 0; return b },
		"unknown kind":       func(b []byte) []byte { b[0] = byte(amLimit); return b },
		"no size":            func(b []byte) []byte { b[23] = 0; return b },
		"type of a Put":      func(b []byte) []byte { b[0], b[23] = byte(amPut), 0; return b },
		"size of a Put":      func(b []byte) []byte { b[0], b[2] = byte(amPut), 0; return b },
		"flag":               func(b []byte) []byte { b[3] = 4; return b },
		"bulk and data":      func(b []byte) []byte { b[3] |= amBulk; return b },
		"bulk get":           func(b []byte) []byte { b[0], b[3] = byte(amGet), amBulk; return b[:amHeaderLen] },
		"too long":           func(b []byte) []byte { b[16] = 0xff; return b },
		"short data":         func(b []byte) []byte { return b[:len(b)-1] },
		"no number":          func(b []byte) []byte { b[7] = 0; return b },
		"number for nothing": func(b []byte) []byte { b[3] = 0; return b },
		"large number":       func(b []byte) []byte { b[4] = 0xff; return b },
	} {
		if _, ok := h.get(change(slices.Clone(b))); ok {
			t.Errorf("%s: taken for good", name)
		}
	}
}

// FuzzRequest decodes requests of any bytes. What is taken for good is encoded to the same bytes, and an update names
// whole elements of a size that the decoder has checked.
func FuzzRequest(f *testing.F) {
	for _, h := range []amHeader{
		{kind: amPut, off: 5, n: 3},
		{kind: amGet, answer: true, num: 7, off: 1 << 40, n: 100},
		{kind: amUpdate, op: uint8(op.CodeSum), elem: elemInt32, size: 4, n: 8},
		{kind: amUpdate, elem: elemPair + elemFloat64, size: 16, n: MaxChunk, bulk: true, num: amNumbers},
		{kind: amSwap, elem: elemOther, size: 3, n: 3, answer: true, num: 1},
		{kind: amLock, op: uint8(LockShared), answer: true, num: 2},
	} {
		b := make([]byte, amHeaderLen+6)
		h.put(b)
		f.Add(b[:amHeaderLen])
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h amHeader
		data, ok := h.get(b)
		if !ok {
			return
		}
		again := make([]byte, len(b))
		h.put(again)
		copy(again[amHeaderLen:], data)
		if !slices.Equal(b, again) {
			t.Fatalf("% x is encoded as % x", b, again)
		}
		if h.n > MaxChunk || len(data) > 2*MaxChunk {
			t.Fatalf("%d bytes and %d of data", h.n, len(data))
		}
		w := &Window{}
		if !h.update() {
			return
		}
		if e, code := w.checkUpdate(&h); code == amOK && (e.size != int(h.size) && h.elem != elemOther ||
			h.n%uint64(h.size) != 0 || h.kind == amUpdate && e.ops[h.op] == nil) {
			t.Fatalf("%+v is taken for an update of %v", h, e)
		}
	})
}
