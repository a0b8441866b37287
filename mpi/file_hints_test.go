package mpi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/weftstack/weft/mpi/internal/fileio"
)

// TestFileSetInfo changes the hints of an open file, and reads and writes with
// them.
func TestFileSetInfo(t *testing.T) {
	const p, n = 3, 500
	eachFile(t, p, nil, func(ctx context.Context, c *Comm, f *File[int64], _ string) error {
		if i := f.Info(); i[InfoNodes] != "3" || i[InfoBuffer] != "4194304" || i[InfoStripingUnit] != "4096" {
			return fmt.Errorf("info %v", i)
		}
		me := c.Rank()
		e, err := TypeOf[int64]()
		if err != nil {
			return err
		}
		cyclic, err := TypeResized(e, 0, 8*p)
		if err != nil {
			return err
		}
		if err := f.SetView(ctx, int64(8*me), cyclic, "native"); err != nil {
			return err
		}
		for k, info := range []Info{
			{InfoNodes: "2", InfoBuffer: "1000", InfoCollective: "true", "vendor": "x"},
			{InfoCollective: "automatic", InfoCollectiveRead: "disable", InfoSieve: "disable"},
			{InfoSieve: "enable", InfoReadBuffer: "100", InfoCollectiveWrite: "enable", InfoCollectiveRead: "enable"},
			{InfoStripingUnit: "512", InfoNodes: "100", InfoBuffer: "1000"},
			{InfoAccessStyle: "write_once, random"}, {InfoAccessStyle: "sequential"},
			{"cb_block_size": "x", "chunked": "1", "io_node_list": "", "nb_proc": "3", "num_io_nodes": "2", "filename": "y"},
		} {
			if err := f.SetInfo(ctx, info); err != nil {
				return fmt.Errorf("%v: %w", info, err)
			}
			mine, back := make([]int64, n), make([]int64, n)
			for i := range mine {
				mine[i] = int64(k*1_000_000 + me*1000 + i)
			}
			if k, err := f.WriteAtAll(ctx, 0, mine); k != n || err != nil {
				return fmt.Errorf("%v: wrote %d: %w", info, k, err)
			}
			for _, read := range []func(context.Context, int64, []int64) (int, error){f.ReadAtAll, f.ReadAt} {
				clear(back)
				if k, err := read(ctx, 0, back); k != n || err != nil {
					return fmt.Errorf("%v: read %d: %w", info, k, err)
				}
				for i := range back {
					if back[i] != mine[i] {
						return fmt.Errorf("%v: %d at %d, want %d", info, back[i], i, mine[i])
					}
				}
			}
		}
		want := f.Info()
		if want["vendor"] != "x" || want[InfoNodes] != "3" || want[InfoStripingUnit] != "512" {
			return fmt.Errorf("info %v", want)
		}
		// Bad values on one rank, or different ones, change nothing anywhere.
		for _, tt := range []struct {
			key    string
			values [p]string
		}{
			{InfoNodes, [p]string{"1", "0", "1"}}, {InfoBuffer, [p]string{"100", "100", "1e9"}}, {InfoCollective, [p]string{"so"}},
			{InfoCollectiveRead, [p]string{"x"}}, {InfoSieve, [p]string{"x"}}, {InfoStripingUnit, [p]string{"-1"}},
			{InfoStripingFactor, [p]string{"x"}}, {InfoReadBuffer, [p]string{fmt.Sprint(MaxBuffer + 1)}},
			{InfoFilePerm, [p]string{"8"}}, {InfoAccessStyle, [p]string{"often"}},
			{InfoNodes, [p]string{"1", "2", "2"}}, {InfoBuffer, [p]string{"100", "100", "200"}},
			{InfoStripingUnit, [p]string{"1", "2", "3"}}, {InfoCollectiveRead, [p]string{"enable", "disable", "enable"}},
		} {
			info := Info{}
			if v := tt.values[me]; v != "" {
				info[tt.key] = v
			}
			if err := f.SetInfo(ctx, info); !errors.Is(err, ErrOption) && !errors.Is(err, ErrFile) {
				return fmt.Errorf("%s=%v: %w", tt.key, tt.values, err)
			}
			if !maps.Equal(f.Info(), want) {
				return fmt.Errorf("%s=%v: info %v", tt.key, tt.values, f.Info())
			}
		}
		return nil
	})
}

// TestFileStriping reads the hints about the devices that a file lies on.
func TestFileStriping(t *testing.T) {
	for _, unit := range []string{"4096", "10000", "1048576"} {
		h, err := fileio.ReadHints(Info{InfoStripingUnit: unit, InfoStripingFactor: "3"}, 8, true)
		if err != nil || h.Aggregators != 3 {
			t.Fatalf("%+v, %v", h, err)
		}
		if want, _ := strconv.ParseInt(unit, 10, 64); h.Align != want {
			t.Errorf("unit %s: aligned to %d", unit, h.Align)
		}
	}
	h, err := fileio.ReadHints(Info{InfoStripingFactor: "3", InfoNodes: "5"}, 8, true)
	if err != nil || h.Aggregators != 5 {
		t.Errorf("both given: %+v, %v", h, err)
	}
}

func TestFilePermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such permissions")
	}
	name := filepath.Join(t.TempDir(), "secret")
	local(t, 2, func(ctx context.Context, c *Comm) error {
		f, err := FileOpen[byte](ctx, c, name, FileWrite|FileCreate, Info{InfoFilePerm: "600"})
		if err != nil {
			return err
		}
		return f.Close(ctx)
	})
	if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}
