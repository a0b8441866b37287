package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestAttributes(t *testing.T) {
	var dropped []string
	note := func(_ Attributed, v string) { dropped = append(dropped, v) }
	shared := NewKey(CopyAttr[string], note)
	private := NewKey(nil, note)
	count := NewKey(func(_ Attributed, n int) (int, bool, error) { return n + 1, n < 3, nil }, nil)
	want := func(what string, list ...string) error {
		if !slices.Equal(dropped, list) {
			return fmt.Errorf("%s: dropped %v, want %v", what, dropped, list)
		}
		dropped = nil
		return nil
	}
	err := RunLocal(context.Background(), 1, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if _, ok := GetAttr(c, count); ok || DeleteAttr(c, count) {
			return errors.New("an attribute that was not set")
		}
		SetAttr(c, shared, "a")
		SetAttr(c, private, "b")
		SetAttr(c, count, 2)
		SetAttr(c, shared, "c")
		if err := want("replaced", "a"); err != nil {
			return err
		}
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		s, ok := GetAttr(d, shared)
		n, _ := GetAttr(d, count)
		if _, has := GetAttr(d, private); s != "c" || !ok || n != 3 || has {
			return fmt.Errorf("duplicate has %q, %d, %v", s, n, has)
		}
		e, err := d.Dup(ctx)
		if err != nil {
			return err
		}
		if _, ok := GetAttr(e, count); ok {
			return errors.New("an attribute was copied that should not have been")
		}
		SetAttr(e, private, "x")
		e.Free()
		if err := want("freed", "x", "c"); err != nil {
			return err
		}
		fails := NewKey(func(Attributed, int) (int, bool, error) { return 0, false, errTestOver }, nil)
		SetAttr(d, fails, 1)
		if _, err := d.Dup(ctx); !errors.Is(err, errTestOver) {
			return fmt.Errorf("copying fails with %w", err)
		}
		if err := want("failed", "c"); err != nil {
			return err
		}
		win, err := WinAllocate[int](ctx, c, 1)
		if err != nil {
			return err
		}
		SetAttr(win, private, "w")
		win.SetName("memory")
		if v, ok := GetAttr(win, private); v != "w" || !ok || win.Name() != "memory" {
			return fmt.Errorf("window %q has %q", win.Name(), v)
		}
		if err := win.Free(ctx); err != nil {
			return err
		}
		if err := want("window freed", "w"); err != nil {
			return err
		}
		SetAttr(w.Self(), private, "first")
		SetAttr(w.Self(), shared, "last")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// MPI-4.1, Section 11.2.4: in reverse order, before anything else.
	if err := want("finalized", "last", "first"); err != nil {
		t.Error(err)
	}

	typ, err := TypeOf[int]()
	if err != nil {
		t.Fatal(err)
	}
	SetAttr(typ, shared, "t")
	SetAttr(typ, private, "p")
	typ.SetName("integer")
	dup, err := typ.Dup()
	if err != nil {
		t.Fatal(err)
	}
	v, _ := GetAttr(dup, shared)
	if _, has := GetAttr(dup, private); v != "t" || has || dup.Name() != "" || typ.Name() != "integer" || dup.Size() != typ.Size() {
		t.Errorf("duplicate %q has %q, %v", dup.Name(), v, has)
	}
}
