package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestDatatypeMessages sends the columns of a matrix and receives them as rows.
func TestDatatypeMessages(t *testing.T) {
	const n = 60
	f, _ := TypeOf[float64]()
	column, err := TypeVector(n, 1, n, f)
	if err != nil {
		t.Fatal(err)
	}
	if column, err = TypeResized(column, 0, 8); err != nil { // the next column is 8 bytes on
		t.Fatal(err)
	}
	all, err := TypeContiguous(n, column)
	if err != nil {
		t.Fatal(err)
	}
	local(t, 2, func(ctx context.Context, c *Comm) error {
		a := make([]float64, n*n)
		if c.Rank() == 0 {
			for i := range a {
				a[i] = float64(i)
			}
			if err := SendType(ctx, c, a, 1, all, 1, 5); err != nil {
				return err
			}
			r, err := IsendType(c, a, n*n, f, 1, 6)
			if err != nil {
				return err
			}
			_, err = r.Wait(ctx)
			return err
		}
		if _, err := Recv(ctx, c, a, 0, 5); err != nil {
			return err
		}
		for i := range a {
			if want := float64(i%n*n + i/n); a[i] != want {
				return fmt.Errorf("element %d = %v, want %v", i, a[i], want)
			}
		}
		// Transposing what arrives gives the same.
		b := make([]float64, n*n)
		r, err := IrecvType(c, b, 1, all, 0, 6)
		if err != nil {
			return err
		}
		st, err := r.Wait(ctx)
		if err != nil || st.Bytes != n*n*8 {
			return fmt.Errorf("received %d bytes, error %w", st.Bytes, err)
		}
		return diff("transposed", b, a)
	})
}

func TestDatatypeShortMessage(t *testing.T) {
	f, _ := TypeOf[byte]()
	pairs, err := TypeVector(3, 2, 3, f)
	if err != nil {
		t.Fatal(err)
	}
	local(t, 2, func(ctx context.Context, c *Comm) error {
		if c.Rank() == 0 {
			if err := Send(ctx, c, []byte("abc"), 1, 0); err != nil {
				return err
			}
			return Send(ctx, c, []byte("abcdefgh"), 1, 0)
		}
		buf := []byte("........")
		st, err := RecvType(ctx, c, buf, 1, pairs, 0, 0)
		if err != nil || st.Bytes != 3 || string(buf) != "ab.c...." {
			return fmt.Errorf("received %q, %+v, error %w", buf, st, err)
		}
		if st, err = RecvType(ctx, c, buf, 1, pairs, 0, 0); !errors.Is(err, ErrTruncate) || string(buf) != "ab.cd.ef" {
			return fmt.Errorf("long message: %q, %+v, error %w, want %w", buf, st, err, ErrTruncate)
		}
		return nil
	})
}

// TestAlltoallw transposes a matrix that is spread over the ranks by rows.
func TestAlltoallw(t *testing.T) {
	const p, rows = 4, 3
	const n = p * rows
	local(t, p, func(ctx context.Context, c *Comm) error {
		u, _ := TypeOf[int32]()
		// What goes to rank i are its columns, one after the other.
		column, err := TypeVector(rows, 1, n, u)
		if err != nil {
			return err
		}
		if column, err = TypeResized(column, 0, 4); err != nil {
			return err
		}
		// What comes from rank i is a part of each row.
		part, err := TypeVector(rows, rows, n, u)
		if err != nil {
			return err
		}
		a, b := make([]int32, rows*n), make([]int32, rows*n)
		for i := range a {
			a[i] = int32(c.Rank()*rows*n + i)
		}
		var scounts, displs, rcounts [p]int
		var stypes, rtypes [p]*Datatype
		for i := range p {
			scounts[i], rcounts[i], displs[i], stypes[i], rtypes[i] = rows, 1, i*rows*4, column, part
		}
		if err := Alltoallw(ctx, c, a, scounts[:], displs[:], stypes[:], b, rcounts[:], displs[:], rtypes[:]); err != nil {
			return err
		}
		for i := range b {
			row, col := c.Rank()*rows+i/n, i%n
			if want := int32(col*n + row); b[i] != want {
				return fmt.Errorf("element (%d, %d) = %d, want %d", row, col, b[i], want)
			}
		}
		clear(b)
		r, err := Ialltoallw(c, a, scounts[:], displs[:], stypes[:], b, rcounts[:], displs[:], rtypes[:])
		if err != nil {
			return err
		}
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
		if want := int32(n + c.Rank()*rows); b[1] != want {
			return fmt.Errorf("element (%d, 1) = %d, want %d", c.Rank()*rows, b[1], want)
		}
		if err := Alltoallw(ctx, c, a, scounts[:1], displs[:], stypes[:], b, rcounts[:], displs[:], rtypes[:]); !errors.Is(err, ErrCount) {
			return fmt.Errorf("too few counts: %v, want %w", err, ErrCount)
		}
		return nil
	})
}
