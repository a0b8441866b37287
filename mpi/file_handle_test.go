package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/fileio"
)

// eachHandle opens a new file on p ranks, over each transport.
func eachHandle(t *testing.T, p int, f func(ctx context.Context, c *Comm, f *FileHandle, name string) error) {
	t.Helper()
	for _, tr := range fileTransports {
		t.Run(tr, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "file")
			local(t, p, func(ctx context.Context, c *Comm) error {
				file, err := c.OpenFile(ctx, name, FileReadWrite|FileCreate, Info{InfoNodes: "no number"})
				if err != nil {
					return err
				}
				if err := f(ctx, c, file, name); err != nil {
					return err
				}
				return file.Close(ctx)
			}, overTransport(tr))
		})
	}
}

func wantBytes(st Status, err error, want int) error {
	if err == nil && st.Bytes != want {
		err = fmt.Errorf("%d bytes, want %d", st.Bytes, want)
	}
	return err
}

// TestFileHandleViews has the ranks write the columns of a matrix from memory with gaps, by all kinds
// of operations, and compares every byte.
func TestFileHandleViews(t *testing.T) {
	const p, rows, cols = 3, 40, 4
	eachHandle(t, p, func(ctx context.Context, c *Comm, f *FileHandle, name string) error {
		if disp, e, ft, rep := f.View(); disp != 0 || e.Size() != 1 || ft.Size() != 1 || rep != Native {
			return fmt.Errorf("first view: %d, %v, %v, %s", disp, e, ft, rep)
		}
		num := MustType(NamedType("MPI_INT"))
		etype := MustType(TypeContiguous(2, num))
		column := MustType(TypeSubarray([]int{rows, p * cols}, []int{rows, cols}, []int{0, c.Rank() * cols}, RowMajor, num))
		if err := f.SetView(ctx, 8, etype, column, Native, nil); err != nil {
			return err
		}
		if disp, e, ft, _ := f.View(); disp != 8 || e != etype || ft != column {
			return fmt.Errorf("view: %d, %v, %v", disp, e, ft)
		}
		// Every second number of memory is data.
		mem := make([]int32, 2*rows*cols)
		for i := range rows * cols {
			mem[2*i] = int32(1000*(c.Rank()+1) + i)
		}
		spread := MustType(TypeVector(cols, 1, 2, num)) // one row
		spread = MustType(TypeResized(spread, 0, 8*cols))
		row := func(i int) Buffer { return Items(mem[2*cols*i:], 1, spread) }
		some := func(i, n int) Buffer { return Items(mem[2*cols*i:], n, spread) }
		if err := wantBytesOf(f.WriteAt(ctx, 0, row(0)))(16); err != nil {
			return err
		}
		if err := wantBytesOf(f.WriteAtAll(ctx, 2, some(1, 9)))(144); err != nil {
			return err
		}
		if _, err := f.Seek(20, io.SeekStart); err != nil {
			return err
		}
		if err := wantBytesOf(f.WriteAll(ctx, some(10, 10)))(160); err != nil {
			return err
		}
		r, err := f.Iwrite(some(20, 10))
		if err != nil {
			return err
		}
		if err := wantBytesOf(r.Wait(ctx))(160); err != nil || f.Position() != 60 {
			return fmt.Errorf("at %d, %w", f.Position(), err)
		}
		if err := f.WriteAllBegin(some(30, 10)); err != nil {
			return err
		}
		if err := wantBytesOf(f.WriteAllEnd(ctx))(160); err != nil {
			return err
		}
		if err := f.Sync(ctx); err != nil {
			return err
		}
		got, err := os.ReadFile(name)
		if err != nil || len(got) != 8+4*rows*p*cols {
			return fmt.Errorf("%d bytes, %w", len(got), err)
		}
		for i := range rows * p * cols {
			at := i % (p * cols)
			want := uint32(1000*(at/cols+1) + i/(p*cols)*cols + at%cols)
			if v := binary.NativeEndian.Uint32(got[8+4*i:]); v != want {
				return fmt.Errorf("number %d is %d, want %d", i, v, want)
			}
		}
		back := make([]int32, 2*rows*cols)
		if err := wantBytesOf(f.ReadAtAll(ctx, 0, Items(back, rows+5, MustType(TypeResized(spread, 0, 0)))))(4 * rows * cols); err != nil {
			return err // all rows to the same place
		}
		if back[0] != mem[2*cols*(rows-1)] {
			return fmt.Errorf("last row begins with %d", back[0])
		}
		clear(back)
		if err := wantBytesOf(f.ReadAt(ctx, 0, Items(back, rows, spread)))(4 * rows * cols); err != nil || !slices.Equal(back, mem) {
			return fmt.Errorf("read what was written: %v, %w", slices.Equal(back, mem), err)
		}
		for _, bad := range []struct {
			b   Buffer
			err error
		}{{Items(mem, 1, num), ErrCount}, {Items(mem, 1, nil), ErrDatatype}, {Items(mem, -1, num), ErrDatatype}} {
			if _, err := f.WriteAt(ctx, 0, bad.b); !errors.Is(err, bad.err) {
				return fmt.Errorf("writing %v: %w, want %w", bad.b, err, bad.err)
			}
			if _, err := f.WriteAtAll(ctx, 0, bad.b); !errors.Is(err, bad.err) {
				return fmt.Errorf("writing %v together: %w, want %w", bad.b, err, bad.err)
			}
		}
		if err := f.SetView(ctx, 0, nil, num, Native, nil); !errors.Is(err, ErrDatatype) {
			return fmt.Errorf("no etype: %w", err)
		}
		if err := f.SetView(ctx, 0, etype, num, Native, nil); !errors.Is(err, ErrView) {
			return fmt.Errorf("half an etype as filetype: %w", err)
		}
		return nil
	})
}

func wantBytesOf(st Status, err error) func(int) error {
	return func(want int) error { return wantBytes(st, err, want) }
}

// TestFileHandleExternal writes C structs with padding and a long in external32, where a long has four
// bytes, and compares the bytes (MPI-4.1, Section 14.5.2).
func TestFileHandleExternal(t *testing.T) {
	eachHandle(t, 2, func(ctx context.Context, c *Comm, f *FileHandle, name string) error {
		long, char := MustType(NamedType("MPI_LONG")), MustType(NamedType("MPI_CHAR"))
		pair := MustType(TypeStruct([]int{1, 1}, []int{0, 8}, []*Datatype{char, long}))
		if n, err := f.TypeExtent(pair); n != 16 || err != nil {
			return fmt.Errorf("native extent %d, %w", n, err)
		}
		inFile := MustType(TypeStruct([]int{1, 1}, []int{0, 1}, []*Datatype{char, long})) // displacements of the file
		two := MustType(TypeVector(1, 1, 2, inFile))
		two = MustType(TypeResized(two, 0, 10))
		if err := f.SetView(ctx, int64(5*c.Rank()), inFile, two, External32, nil); err != nil {
			return err
		}
		if n, err := f.TypeExtent(MustType(TypeVector(3, 1, 2, long))); n != 20 || err != nil {
			return fmt.Errorf("extent of a vector %d, %w", n, err)
		}
		mem := make([]int64, 4)
		mem[0], mem[1], mem[2], mem[3] = 'a', -2, 'b', 3
		if err := wantBytesOf(f.WriteAtAll(ctx, 0, Items(mem, 2, pair)))(18); err != nil {
			return err
		}
		if err := wantBytesOf(f.WriteAt(ctx, 2, Items(mem, 1, pair)))(9); err != nil {
			return err
		}
		if _, err := f.WriteAt(ctx, 3, Items([]int64{'c', 1 << 31}, 1, pair)); !errors.Is(err, ErrConversion) {
			return fmt.Errorf("a long that is too long: %w", err)
		}
		if err := f.Sync(ctx); err != nil {
			return err
		}
		got, err := os.ReadFile(name)
		a, b := []byte{'a', 0xff, 0xff, 0xff, 0xfe}, []byte{'b', 0, 0, 0, 3}
		if want := bytes.Join([][]byte{a, a, b, b, a, a}, nil); err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("file %x, want %x, %w", got, want, err)
		}
		for _, read := range []func(context.Context, int64, Buffer) (Status, error){f.ReadAt, f.ReadAtAll} {
			back := make([]int64, 10)
			if err := wantBytesOf(read(ctx, 0, Items(back, 5, pair)))(27); err != nil {
				return err
			}
			if want := append(slices.Clone(mem), mem[0], mem[1], 0, 0, 0, 0); !slices.Equal(back, want) {
				return fmt.Errorf("read %x, want %x", back, want)
			}
		}
		if at, err := f.Seek(0, io.SeekEnd); at != 3 || err != nil {
			return fmt.Errorf("end at %d, %w", at, err)
		}
		return nil
	})
}

// hexReps is a representation of items of all datatypes: each byte as two digits.
func hexRep() *fileio.Items {
	const digits = "0123456789abcdef"
	each := func(items datatype.Buffer, n int, f func(i int, b *byte)) {
		for i := range items.Type.Prefix(n) {
			var one [1]byte
			items.Pack(one[:], i)
			f(i, &one[0])
			items.Unpack(one[:], i)
		}
	}
	return &fileio.Items{
		Extent: func(t *datatype.Type) (int, error) { return 2 * t.Size(), nil },
		Write: func(file []byte, items datatype.Buffer, n int) error {
			each(items, n, func(i int, b *byte) { file[2*i], file[2*i+1] = digits[*b>>4], digits[*b&15] })
			return nil
		},
		Read: func(file []byte, items datatype.Buffer, n int) error {
			each(items, n, func(i int, b *byte) {
				*b = byte(bytes.IndexByte([]byte(digits), file[2*i])<<4 | bytes.IndexByte([]byte(digits), file[2*i+1]))
			})
			return nil
		},
	}
}

// TestFileHandleItemsRep uses a representation that the program has for all datatypes, with data that
// has gaps in memory and in the file, and that the end of the file cuts.
func TestFileHandleItemsRep(t *testing.T) {
	eachHandle(t, 2, func(ctx context.Context, c *Comm, f *FileHandle, name string) error {
		if err := c.World().datareps.AddItems("hex", hexRep()); err != nil {
			return err
		}
		if err := c.World().datareps.AddItems("hex", hexRep()); ErrorClass(err) != ClassDupDatarep {
			return fmt.Errorf("registered twice: %w", err)
		}
		short := MustType(NamedType("MPI_SHORT"))
		deal := MustType(TypeVector(2, 1, 2, short)) // displacements that count items
		if err := f.SetView(ctx, int64(4*c.Rank()), short, MustType(TypeResized(deal, 0, 16)), "hex", nil); err != nil {
			return err
		}
		mem := []int16{1, 99, 2, 99, 3, 99}
		for i := range mem {
			mem[i] += int16(16 * c.Rank())
		}
		gaps := MustType(TypeVector(3, 1, 2, short))
		if err := wantBytesOf(f.WriteAtAll(ctx, 0, Items(mem, 1, gaps)))(6); err != nil {
			return err
		}
		if err := wantBytesOf(f.WriteAt(ctx, 3, Items(mem, 1, gaps)))(6); err != nil {
			return err
		}
		if err := f.Sync(ctx); err != nil {
			return err
		}
		got, err := os.ReadFile(name)
		if want := "010011000200120003001300010011000200120003001300"; err != nil || string(got) != want {
			return fmt.Errorf("file %s, want %s, %w", got, want, err)
		}
		for _, read := range []func(context.Context, int64, Buffer) (Status, error){f.ReadAt, f.ReadAtAll} {
			back := slices.Repeat([]int16{7}, 12)
			if err := wantBytesOf(read(ctx, 2, Items(back, 2, MustType(TypeResized(gaps, 0, 12)))))(8); err != nil {
				return err
			}
			r := int16(16 * c.Rank())
			if want := []int16{3 + r, 7, 1 + r, 7, 2 + r, 7, 3 + r, 7, 7, 7, 7, 7}; !slices.Equal(back, want) {
				return fmt.Errorf("read %v, want %v", back, want)
			}
		}
		return Barrier(ctx, c)
	})
}

// TestFileHandleSequential sets views of a file that has no offsets: they begin at the shared pointer
// (MPI-4.1, Section 14.3: MPI_DISPLACEMENT_CURRENT).
func TestFileHandleSequential(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("abcdefghij"), 0o666); err != nil {
		t.Fatal(err)
	}
	local(t, 2, func(ctx context.Context, c *Comm) error {
		f, err := c.OpenFile(ctx, name, FileRead|FileSequential, nil)
		if err != nil {
			return err
		}
		one, two := make([]byte, 1), make([]byte, 2)
		if _, err := f.ReadOrdered(ctx, Elements(one)); err != nil || one[0] != 'a'+byte(c.Rank()) {
			return fmt.Errorf("%q, %w", one, err)
		}
		b := MustType(TypeOf[byte]())
		pair := MustType(TypeContiguous(2, b))
		if err := f.SetView(ctx, 0, b, b, Native, nil); ErrorClass(err) != ClassUnsupportedOperation || !errors.Is(err, ErrMode) {
			return fmt.Errorf("a view at byte 0: %w", err)
		}
		if err := f.SetView(ctx, DisplacementCurrent, pair, pair, Native, nil); err != nil {
			return err
		}
		if _, err := f.ReadOrdered(ctx, Elements(two)); err != nil || string(two) != []string{"cd", "ef"}[c.Rank()] {
			return fmt.Errorf("%q, %w", two, err)
		}
		for what, err := range map[string]error{
			"Read": errorOf(f.Read(ctx, Elements(two))), "ReadAtAll": errorOf(f.ReadAtAll(ctx, 0, Elements(two))),
			"Seek": errorOf(f.Seek(0, io.SeekStart)),
		} {
			if ErrorClass(err) != ClassUnsupportedOperation {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		if _, err := f.WriteShared(ctx, Elements(two)); ErrorClass(err) != ClassReadOnly {
			return fmt.Errorf("writing: %w", err)
		}
		if err := f.Close(ctx); err != nil {
			return err
		}
		if f, err = c.OpenFile(ctx, name, FileWrite, nil); err != nil {
			return err
		}
		if _, err := f.ReadAt(ctx, 0, Elements(two)); ErrorClass(err) != ClassFileAccess {
			return fmt.Errorf("reading: %w", err)
		}
		if err := f.SetView(ctx, DisplacementCurrent, b, b, Native, nil); !errors.Is(err, ErrView) {
			return fmt.Errorf("the current displacement without FileSequential: %w", err)
		}
		return f.Close(ctx)
	})
}

// TestFileHandleBadBegin begins split operations with a bad buffer on one rank: it gets the error at once,
// the others when they end them, and then all goes on.
func TestFileHandleBadBegin(t *testing.T) {
	eachHandle(t, 3, func(ctx context.Context, c *Comm, f *FileHandle, name string) error {
		bad := c.Rank() == 1
		b := Elements([]byte{byte(c.Rank())})
		if bad {
			b = Items([]byte(nil), -1, nil)
		}
		for i, begin := range []func(Buffer) error{
			f.WriteOrderedBegin, f.WriteAllBegin, func(b Buffer) error { return f.WriteAtAllBegin(0, b) },
		} {
			err := begin(b)
			if !bad && err == nil {
				_, err = []func(context.Context) (Status, error){f.WriteOrderedEnd, f.WriteAllEnd, f.WriteAtAllEnd}[i](ctx)
			}
			if !errors.Is(err, ErrDatatype) {
				return fmt.Errorf("operation %d: %w", i, err)
			}
			r, err := f.IwriteAll(b)
			if err == nil {
				_, err = r.Wait(ctx)
			}
			if !errors.Is(err, ErrDatatype) {
				return fmt.Errorf("nonblocking operation %d: %w", i, err)
			}
		}
		_, err := f.WriteAtAll(ctx, int64(c.Rank()), Elements([]byte{1}))
		return err
	})
}
