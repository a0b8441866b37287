package mpi_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/weftstack/weft/mpi"
)

// inTempDir gives the name of a file that is removed afterwards.
func inTempDir(f func(name string) error) error {
	dir, err := os.MkdirTemp("", "weft-example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return f(filepath.Join(dir, "data"))
}

// Each rank sees every third number of a file, and all write theirs together.
func ExampleFileOpen() {
	const ranks = 3
	err := inTempDir(func(name string) error {
		return mpi.RunLocal(context.Background(), ranks, func(ctx context.Context, w *mpi.World) error {
			c := w.Comm()
			f, err := mpi.FileOpen[int32](ctx, c, name, mpi.FileReadWrite|mpi.FileCreate, nil)
			if err != nil {
				return err
			}
			number, err := mpi.TypeOf[int32]()
			if err != nil {
				return err
			}
			third, err := mpi.TypeResized(number, 0, 4*ranks)
			if err != nil {
				return err
			}
			if err := f.SetView(ctx, int64(4*c.Rank()), third, mpi.Native); err != nil {
				return err
			}
			me := int32(c.Rank())
			if _, err := f.WriteAtAll(ctx, 0, []int32{me, me + 10, me + 20}); err != nil {
				return err
			}
			if err := f.SetView(ctx, 0, nil, mpi.Native); err != nil {
				return err
			}
			all := make([]int32, 9)
			if _, err := f.ReadAll(ctx, all); err != nil {
				return err
			}
			if c.Rank() == 0 {
				fmt.Println(all)
			}
			return f.Close(ctx)
		})
	})
	fmt.Println(err)
	// Output:
	// [0 1 2 10 11 12 20 21 22]
	// <nil>
}

// Ranks append lines to a log, in the order of the ranks.
func ExampleFile_WriteOrdered() {
	err := inTempDir(func(name string) error {
		err := mpi.RunLocal(context.Background(), 3, func(ctx context.Context, w *mpi.World) error {
			f, err := mpi.FileOpen[byte](ctx, w.Comm(), name, mpi.FileWrite|mpi.FileCreate, nil)
			if err != nil {
				return err
			}
			if _, err := f.WriteOrdered(ctx, fmt.Appendf(nil, "rank %d was here\n", w.Rank())); err != nil {
				return err
			}
			return f.Close(ctx)
		})
		if err != nil {
			return err
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = io.Copy(os.Stdout, file)
		return err
	})
	fmt.Println(err)
	// Output:
	// rank 0 was here
	// rank 1 was here
	// rank 2 was here
	// <nil>
}

// A file of text to people is one of numbers to the program.
func ExampleRegisterDatarep() {
	const width = 6 // a line is a number
	lines := mpi.Datarep[int]{
		Size: width,
		Write: func(dst []byte, src []int) error {
			for i, x := range src {
				copy(dst[width*i:], fmt.Sprintf("%*d\n", width-1, x))
			}
			return nil
		},
		Read: func(dst []int, src []byte) error {
			for i := range dst {
				if _, err := fmt.Sscan(string(src[width*i:width*(i+1)]), &dst[i]); err != nil {
					return err
				}
			}
			return nil
		},
	}
	err := inTempDir(func(name string) error {
		err := mpi.RunLocal(context.Background(), 2, func(ctx context.Context, w *mpi.World) error {
			if err := mpi.RegisterDatarep(w, "lines", lines); err != nil {
				return err
			}
			f, err := mpi.FileOpen[int](ctx, w.Comm(), name, mpi.FileReadWrite|mpi.FileCreate, nil)
			if err != nil {
				return err
			}
			if err := f.SetView(ctx, 0, nil, "lines"); err != nil {
				return err
			}
			if _, err := f.WriteAtAll(ctx, int64(2*w.Rank()), []int{10 * w.Rank(), 10*w.Rank() + 1}); err != nil {
				return err
			}
			return f.Close(ctx)
		})
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		fmt.Printf("%s", text)
		return err
	})
	fmt.Println(err)
	// Output:
	//     0
	//     1
	//    10
	//    11
	// <nil>
}

// Each rank has two columns of a matrix of chars in the file, and writes them from memory of its own
// layout.
func ExampleComm_OpenFile() {
	const ranks, rows = 2, 2
	err := inTempDir(func(name string) error {
		return mpi.RunLocal(context.Background(), ranks, func(ctx context.Context, w *mpi.World) error {
			c := w.Comm()
			f, err := c.OpenFile(ctx, name, mpi.FileReadWrite|mpi.FileCreate, nil)
			if err != nil {
				return err
			}
			char := mpi.MustType(mpi.NamedType("MPI_CHAR"))
			columns := mpi.MustType(mpi.TypeVector(rows, 2, 2*ranks, char))
			if err := f.SetView(ctx, int64(2*c.Rank()), char, columns, mpi.Native, nil); err != nil {
				return err
			}
			mem := [][]byte{[]byte("a-b-c-d-"), []byte("A-B-C-D-")}[c.Rank()]
			everySecond := mpi.MustType(mpi.TypeVector(2*rows, 1, 2, char))
			st, err := f.WriteAll(ctx, mpi.Items(mem, 1, everySecond))
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				fmt.Println(st.Bytes, "bytes written")
			}
			if err := f.Close(ctx); err != nil || c.Rank() > 0 {
				return err
			}
			all, err := os.ReadFile(name)
			fmt.Printf("%s\n", all)
			return err
		})
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 4 bytes written
	// abABcdCD
}
