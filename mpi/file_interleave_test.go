package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// tiling is a filetype of 2-byte elements, and where the model sees them.
type tiling struct {
	disp   int
	offs   []int // of the elements of an item, in the order of the data
	extent int
}

// at returns the byte of the file at which element i lies.
func (m *tiling) at(i int) int { return m.disp + i/len(m.offs)*m.extent + m.offs[i%len(m.offs)] }

// distinct reports whether no byte belongs to two of the first n elements.
func (m *tiling) distinct(n int) bool {
	seen := make(map[int]bool)
	for i := range n {
		for b := range 2 {
			if seen[m.at(i)+b] {
				return false
			}
			seen[m.at(i)+b] = true
		}
	}
	return true
}

// filetype makes the datatype. Places are multiplied by the number of ranks, so that
// the elements of all lie between one another.
func (m *tiling) filetype(p int) (*Datatype, error) {
	e, err := TypeOf[int16]()
	if err != nil {
		return nil, err
	}
	displs := make([]int, len(m.offs))
	for i, o := range m.offs {
		displs[i] = o * p
	}
	t, err := TypeHindexedBlock(1, displs, e)
	if err != nil {
		return nil, err
	}
	return TypeResized(t, 0, m.extent*p)
}

// randomTiling makes a filetype whose extent has nothing to do with its span.
func randomTiling(rng *rand.Rand) *tiling {
	m := &tiling{disp: 2 * rng.IntN(5), extent: 2 * (1 + rng.IntN(12))}
	at := 2 * rng.IntN(3)
	for range 1 + rng.IntN(6) {
		m.offs = append(m.offs, at)
		at += 2 * (1 + rng.IntN(8))
		if rng.IntN(3) == 0 {
			at = m.offs[len(m.offs)-1] + 2
		}
	}
	return m
}

// tilings is how many of them a test takes.
func tilings() int {
	if testenv.Race || testing.Short() {
		return 10
	}
	return 30
}

// TestFileInterleavedViews writes and reads through random filetypes whose items
// lie between one another, in all ways, and compares with a loop over the elements.
func TestFileInterleavedViews(t *testing.T) {
	const p, n = 2, 90
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	modes := []Info{{InfoCollective: "disable"}, {InfoCollective: "enable", InfoBuffer: "100", InfoNodes: "2"}, {InfoReadBuffer: "64"}}
	for try, mixed := 0, 0; mixed < tilings(); try++ {
		m := randomTiling(rng)
		if !m.distinct(200) {
			continue
		}
		if m.offs[len(m.offs)-1]+2 > m.offs[0]+m.extent {
			mixed++
		}
		skip, info := rng.IntN(20), modes[rng.IntN(len(modes))]
		collective, readMode := rng.IntN(3), rng.IntN(2)
		name := filepath.Join(t.TempDir(), "file")
		var want []byte
		for rank := range p {
			for i := range n {
				at := m.at(i+skip)*p - (p-1)*m.disp + 2*rank
				if at+2 > len(want) {
					want = append(want, make([]byte, at+2-len(want))...)
				}
				binary.NativeEndian.PutUint16(want[at:], uint16(rank<<8+i+1))
			}
		}
		err := RunLocal(t.Context(), p, func(ctx context.Context, w *World) error {
			return interleaved(ctx, w.Comm(), m, name, info, n, skip, collective, readMode)
		})
		if err != nil {
			t.Fatalf("try %d: %+v, info %v, %d: %v", try, *m, info, collective, err)
		}
		got, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("try %d: %+v, info %v, %d: files of %d and %d bytes differ, %v", try, *m, info, collective, len(got), len(want), err)
		}
	}
}

func interleaved(ctx context.Context, c *Comm, m *tiling, name string, info Info, n, skip, how, readMode int) error {
	f, err := FileOpen[int16](ctx, c, name, FileReadWrite|FileCreate, info)
	if err != nil {
		return err
	}
	ft, err := m.filetype(c.Size())
	if err != nil {
		return err
	}
	if err := f.SetView(ctx, int64(m.disp+2*c.Rank()), ft, Native); err != nil {
		return err
	}
	buf := make([]int16, n)
	for i := range buf {
		buf[i] = int16(c.Rank()<<8 + i + 1)
	}
	var k int
	switch how {
	case 0:
		k, err = f.WriteAt(ctx, int64(skip), buf)
	case 1:
		k, err = f.WriteAtAll(ctx, int64(skip), buf)
	default: // by the shared pointer, a rank after the other, to the same places of their views
		if err := f.SeekShared(ctx, int64(skip), 0); err != nil {
			return err
		}
		for r := range c.Size() {
			if r == c.Rank() {
				k, err = f.WriteShared(ctx, buf)
			}
			if err := Barrier(ctx, c); err != nil {
				return err
			}
			if err := f.SeekShared(ctx, int64(skip), 0); err != nil {
				return err
			}
		}
	}
	if err := wantN(k, err, n); err != nil {
		return err
	}
	if err := f.Sync(ctx); err != nil {
		return err
	}
	if err := Barrier(ctx, c); err != nil {
		return err
	}
	size, err := f.Size()
	if err != nil {
		return err
	}
	// Beyond the end: as much as comes before the first element that is missing.
	place := func(i int) int { return m.at(i)*c.Size() - (c.Size()-1)*m.disp + 2*c.Rank() }
	end, there := 0, 0
	for i := range skip + n + 30 {
		if place(i) < int(size) {
			end = i + 1
		}
	}
	for there < n+10 && place(skip+there) < int(size) {
		there++
	}
	read := f.ReadAt
	if readMode == 1 {
		read = f.ReadAtAll
	}
	back := make([]int16, n+10)
	if k, err = read(ctx, int64(skip), back); err != nil || k != there || !slices.Equal(back[:n], buf) {
		return fmt.Errorf("read %d elements, want %d, equal %v: %w", k, there, slices.Equal(back[:n], buf), err)
	}
	if pos, err := f.Seek(0, 2); err != nil || pos != int64(end) {
		return fmt.Errorf("end at %d, want %d: %w", pos, end, err)
	}
	if at, err := f.ByteOffset(int64(skip)); err != nil || int(at) != place(skip) {
		return fmt.Errorf("element %d at byte %d: %w", skip, at, err)
	}
	return f.Close(ctx)
}

// TestFileOverlappingViews reads through filetypes that see bytes twice, which is
// an error for a file that may be written.
func TestFileOverlappingViews(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	name := filepath.Join(t.TempDir(), "file")
	data := make([]byte, 4000)
	pattern(data, 1)
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
	for overlaps := 0; overlaps < tilings(); {
		m := randomTiling(rng)
		for i := 1; i < len(m.offs) && rng.IntN(2) == 0; i++ { // the same place again
			m.offs[i] = m.offs[i-1]
		}
		if slices.Sort(m.offs); m.distinct(200) {
			continue
		}
		overlaps++
		info := []Info{{InfoCollective: "disable"}, {InfoCollective: "enable", InfoBuffer: "100", InfoNodes: "2"}}[rng.IntN(2)]
		err := RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
			c := w.Comm()
			ft, err := m.filetype(1)
			if err != nil {
				return err
			}
			f, err := FileOpen[int16](ctx, c, name, FileReadWrite, info)
			if err != nil {
				return err
			}
			if err := f.SetView(ctx, int64(m.disp), ft, Native); !errors.Is(err, ErrView) {
				return fmt.Errorf("open for writing: %w, want ErrView", err)
			}
			if err := f.Close(ctx); err != nil {
				return err
			}
			if f, err = FileOpen[int16](ctx, c, name, FileRead, info); err != nil {
				return err
			}
			if err := f.SetView(ctx, int64(m.disp), ft, Native); err != nil {
				return err
			}
			first := 3 + c.Rank()
			for _, read := range []func(context.Context, int64, []int16) (int, error){f.ReadAt, f.ReadAtAll} {
				buf := make([]int16, 100)
				if k, err := read(ctx, int64(first), buf); k != len(buf) || err != nil {
					return fmt.Errorf("%d elements read: %w", k, err)
				}
				for i, v := range buf {
					if want := int16(binary.NativeEndian.Uint16(data[m.at(first+i):])); v != want {
						return fmt.Errorf("element %d = %d, want %d", first+i, v, want)
					}
				}
			}
			return f.Close(ctx)
		})
		if err != nil {
			t.Fatalf("%+v, info %v: %v", *m, info, err)
		}
	}
}
