package mpi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// decimal writes numbers as lines of text, and refuses some.
var decimal = Datarep[int32]{
	Size: 8,
	Read: func(dst []int32, src []byte) error {
		for i := range dst {
			n, err := strconv.Atoi(strings.TrimSpace(string(src[8*i : 8*i+8])))
			if err != nil {
				return err
			}
			dst[i] = int32(n)
		}
		return nil
	},
	Write: func(dst []byte, src []int32) error {
		for i, x := range src {
			if x < 0 {
				return errNegative
			}
			copy(dst[8*i:], fmt.Sprintf("%7d\n", x))
		}
		return nil
	},
}

var errNegative = errors.New("negative")

func decimals(xs ...int32) string {
	var b strings.Builder
	for _, x := range xs {
		fmt.Fprintf(&b, "%7d\n", x)
	}
	return b.String()
}

// TestFileDatarep writes and reads a file of text through all kinds of
// operations, each rank every second number.
func TestFileDatarep(t *testing.T) {
	eachFile(t, 2, nil, func(ctx context.Context, c *Comm, f *File[int32], name string) error {
		if err := RegisterDatarep(c.World(), "decimal", decimal); err != nil {
			return err
		}
		e, _ := TypeOf[int32]()
		both, err := TypeResized(e, 0, 8)
		if err != nil {
			return err
		}
		if err := f.SetView(ctx, int64(8*c.Rank()), both, "decimal"); err != nil {
			return err
		}
		if _, _, rep := f.View(); rep != "decimal" {
			return fmt.Errorf("representation %q", rep)
		}
		if n, err := f.TypeExtent(both); n != 16 || err != nil {
			return fmt.Errorf("extent %d, %w", n, err)
		}
		if at, err := f.ByteOffset(3); at != int64(8*c.Rank()+48) || err != nil {
			return fmt.Errorf("element 3 is at byte %d, %w", at, err)
		}
		r := int32(c.Rank())
		if k, err := f.WriteAtAll(ctx, 0, []int32{r, 2 + r, 4 + r}); wantN(k, err, 3) != nil {
			return wantN(k, err, 3)
		}
		if k, err := f.WriteAt(ctx, 3, []int32{6 + r}); wantN(k, err, 1) != nil {
			return wantN(k, err, 1)
		}
		if _, err := f.Seek(4, io.SeekStart); err != nil {
			return err
		}
		q, err := f.Iwrite([]int32{8 + r, 10 + r})
		if err != nil {
			return err
		}
		if st, err := q.Wait(ctx); st.Bytes != 8 || err != nil || f.Position() != 6 {
			return fmt.Errorf("%+v at %d, %w", st, f.Position(), err)
		}
		if err := f.Sync(ctx); err != nil {
			return err
		}
		got, err := os.ReadFile(name)
		want := decimals(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
		if err != nil || string(got) != want {
			return fmt.Errorf("file %q, %w", got, err)
		}
		for _, read := range []func(context.Context, int64, []int32) (int, error){f.ReadAt, f.ReadAtAll} {
			back := make([]int32, 9)
			k, err := read(ctx, 2, back) // beyond the end
			if wantN(k, err, 4) != nil || !slices.Equal(back[:5], []int32{4 + r, 6 + r, 8 + r, 10 + r, 0}) {
				return fmt.Errorf("read %v, %w", back, wantN(k, err, 4))
			}
		}
		if at, err := f.Seek(-1, io.SeekEnd); at != 5 || err != nil {
			return fmt.Errorf("last element is %d, %w", at, err)
		}
		back := make([]int32, 5)
		if n, err := f.ReadAtType(ctx, 0, back, 2, both); n != 8 || err != nil || back[0] != r || back[2] != 2+r {
			return fmt.Errorf("%d bytes, %v, %w", n, back, err)
		}
		return f.SetView(ctx, 0, nil, Native)
	})
}

// TestFileDatarepShared lets the shared pointer count elements.
func TestFileDatarepShared(t *testing.T) {
	eachFile(t, 3, nil, func(ctx context.Context, c *Comm, f *File[int32], name string) error {
		if err := RegisterDatarep(c.World(), "decimal", decimal); err != nil {
			return err
		}
		if err := f.SetView(ctx, 0, nil, "decimal"); err != nil {
			return err
		}
		r := int32(c.Rank())
		if k, err := f.WriteOrdered(ctx, []int32{r, r}); wantN(k, err, 2) != nil {
			return wantN(k, err, 2)
		}
		if k, err := f.WriteShared(ctx, []int32{7}); wantN(k, err, 1) != nil {
			return wantN(k, err, 1)
		}
		if err := f.Sync(ctx); err != nil {
			return err
		}
		got, err := os.ReadFile(name)
		if want := decimals(0, 0, 1, 1, 2, 2, 7, 7, 7); err != nil || string(got) != want {
			return fmt.Errorf("file %q, %w", got, err)
		}
		return nil
	})
}

// TestFileDatarepErrors lets conversions fail: on one rank of a collective, on
// what is not text, and for views that cannot be.
func TestFileDatarepErrors(t *testing.T) {
	eachFile(t, 2, nil, func(ctx context.Context, c *Comm, f *File[int32], name string) error {
		w := c.World()
		for i, err := range []error{
			RegisterDatarep(w, "", decimal), RegisterDatarep(w, strings.Repeat("x", MaxDatarep+1), decimal),
			RegisterDatarep(w, "none", Datarep[int32]{Size: 4}),
			RegisterDatarep(w, "none", Datarep[int32]{Read: decimal.Read, Write: decimal.Write}),
			RegisterDatarep(w, "none", Datarep[int32]{Size: maxDatarepSize + 1, Read: decimal.Read, Write: decimal.Write}),
		} {
			if !errors.Is(err, ErrOption) {
				return fmt.Errorf("representation %d: %w", i, err)
			}
		}
		for _, name := range []string{strings.Repeat("x", MaxDatarep), "decimal"} {
			if err := RegisterDatarep(w, name, decimal); err != nil {
				return err
			}
		}
		for _, name := range []string{"decimal", Native, Internal, External32} {
			if err := RegisterDatarep(w, name, decimal); !errors.Is(err, ErrDatarep) {
				return fmt.Errorf("%s again: %w", name, err)
			}
		}
		if err := RegisterDatarep(w, "decimal", Datarep[int8]{1, func([]int8, []byte) error { return nil }, func([]byte, []int8) error { return nil }}); err != nil {
			return fmt.Errorf("for another type: %w", err)
		}
		b, _ := TypeOf[byte]()
		half, err := TypeVector(2, 2, 4, b) // four bytes that are no number
		if err != nil {
			return err
		}
		if err := f.SetView(ctx, 0, half, "decimal"); !errors.Is(err, ErrView) {
			return fmt.Errorf("view of half numbers: %w", err)
		}
		odd, err := TypeResized(b, 0, 3)
		if err != nil {
			return err
		}
		if err := f.SetView(ctx, 0, nil, "decimal"); err != nil {
			return err
		}
		if _, err := f.TypeExtent(odd); !errors.Is(err, ErrView) {
			return fmt.Errorf("extent of three bytes: %w", err)
		}
		r := c.Rank()
		if _, err := f.WriteAtAll(ctx, int64(r), []int32{int32(-r)}); err == nil || r == 1 != errors.Is(err, errNegative) {
			return fmt.Errorf("writing what cannot be, on rank %d: %w", r, err)
		}
		if size, err := f.Size(); size != 0 || err != nil {
			return fmt.Errorf("%d bytes, %w", size, err)
		}
		if _, err := f.WriteAt(ctx, 0, []int32{-1}); !errors.Is(err, errNegative) || !errors.Is(err, ErrConversion) {
			return fmt.Errorf("writing what cannot be: %w", err)
		}
		if err := Barrier(ctx, c); err != nil { // all have seen the size
			return err
		}
		if r == 0 {
			if err := os.WriteFile(name, []byte("      1\n nonsen\n      3"), 0o666); err != nil {
				return err
			}
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		for _, read := range []func(context.Context, int64, []int32) (int, error){f.ReadAt, f.ReadAtAll} {
			back := make([]int32, 2)
			if _, err := read(ctx, 0, back); !errors.Is(err, ErrConversion) || !errors.Is(err, strconv.ErrSyntax) {
				return fmt.Errorf("reading nonsense: %w", err)
			}
			if k, err := read(ctx, 2, back); k != 0 || err != nil {
				return fmt.Errorf("reading half a number: %d, %w", k, err)
			}
		}
		return nil
	})
}

// TestFileExternalPadding writes structs with padding, which external32 has not.
func TestFileExternalPadding(t *testing.T) {
	type padded struct {
		A int8
		B int32
	}
	name := filepath.Join(t.TempDir(), "x")
	local(t, 1, func(ctx context.Context, c *Comm) error {
		f, err := FileOpen[padded](ctx, c, name, FileReadWrite|FileCreate, nil)
		if err != nil {
			return err
		}
		if err := f.SetView(ctx, 1, nil, External32); err != nil {
			return err
		}
		want := make([]padded, 300_000) // in several parts
		for i := range want {
			want[i] = padded{int8(i), int32(i * i)}
		}
		if k, err := f.WriteAt(ctx, 0, want); wantN(k, err, len(want)) != nil {
			return wantN(k, err, len(want))
		}
		got := make([]padded, len(want))
		if k, err := f.ReadAtAll(ctx, 0, got); wantN(k, err, len(want)) != nil || !slices.Equal(got, want) {
			return fmt.Errorf("read other data, %w", wantN(k, err, len(want)))
		}
		clear(got)
		if k, err := f.ReadAt(ctx, 1, got); wantN(k, err, len(want)-1) != nil || !slices.Equal(got[:k], want[1:]) {
			return fmt.Errorf("read other data from 1 on, %w", wantN(k, err, len(want)-1))
		}
		return f.Close(ctx)
	})
	b, err := os.ReadFile(name)
	if err != nil || len(b) != 1+5*300_000 || string(b[1+5*259:][:5]) != "\x03\x00\x01\x06\x09" {
		t.Errorf("%d bytes, %x, %v", len(b), b[1+5*259:][:5], err)
	}
}
