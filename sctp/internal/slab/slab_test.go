package slab

import "testing"

func TestBufReturnsToPoolOnLastRelease(t *testing.T) {
	var p Pool
	b := p.Get()
	if len(b.B) != Size {
		t.Errorf("fresh buffer holds %d bytes, want %d", len(b.B), Size)
	}
	b.Retain()
	if !b.Shared() {
		t.Error("a twice-held buffer is not Shared")
	}
	b.Release()
	if got := p.Live(); got != 1 {
		t.Errorf("live after one of two releases = %d, want 1", got)
	}
	b.Release()
	if got := p.Live(); got != 0 {
		t.Errorf("live after the last release = %d, want 0", got)
	}
}

func TestReleaseOfFreeBufferPanics(t *testing.T) {
	var p Pool
	b := p.Get()
	b.Release()
	defer func() {
		if recover() == nil {
			t.Error("a second Release of a free buffer went unnoticed")
		}
	}()
	b.Release()
}
