package fileio

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// TestFileViewLength compares lengths and places with a loop over the bytes.
func TestFileViewLength(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		var lens, displs []int
		at := rng.IntN(4)
		for range 1 + rng.IntN(4) {
			n := 1 + rng.IntN(5)
			lens, displs = append(lens, n), append(displs, at)
			at += n + rng.IntN(4)
		}
		ft, err := datatype.Indexed(lens, displs, datatype.OfBytes(1))
		if err != nil {
			t.Fatal(err)
		}
		if ft, err = datatype.Resized(ft, 0, at-displs[0]+rng.IntN(5)); err != nil {
			t.Fatal(err)
		}
		v, err := newView(&ViewArgs{Disp: int64(rng.IntN(9)), Etype: datatype.OfBytes(1), Filetype: ft, Rep: NativeDatarep()}, true)
		if err != nil {
			t.Fatal(err)
		}
		size := int64(rng.IntN(120))
		want := int64(0)
		for v.offset(want) < size {
			want++
		}
		if got := v.length(size); got != want {
			t.Fatalf("%v at %d, lens %v, displs %v: length %d of %d bytes, want %d", ft, v.disp, lens, displs, got, size, want)
		}
	}
}

// TestFileRequestsThatAreDamaged gives aggregators what no rank sends.
func TestFileRequestsThatAreDamaged(t *testing.T) {
	p := &twoPhase{h: &Hints{Buffer: 100}, write: true, b: []byte("hello")}
	good := p.request([]run{{3, 5, 0}})
	if runs, data, err := p.parse(good); err != nil || len(runs) != 1 || runs[0] != (run{3, 5, 0}) || string(data) != "hello" {
		t.Fatalf("runs %v, data %q, %v", runs, data, err)
	}
	for i := 1; i < len(good); i++ {
		if _, _, err := p.parse(good[:i]); !errors.Is(err, mpierr.ErrProtocol) {
			t.Errorf("%d bytes of %d: %v", i, len(good), err)
		}
	}
	for _, at := range []int{0, 8, 16} {
		bad := bytes.Clone(good)
		bad[at] = 0xff
		if _, _, err := p.parse(bad); !errors.Is(err, mpierr.ErrProtocol) {
			t.Errorf("byte %d changed: %v", at, err)
		}
	}
}

// TestDomains looks at where the domains of aggregators begin.
func TestDomains(t *testing.T) {
	for _, align := range []int64{4096, 10000, 1 << 20} {
		p := &twoPhase{h: &Hints{Aggregators: 3, Buffer: 4 << 20, Align: align}}
		p.divide([]Reach{{Lo: 123_456, Hi: 9_000_001, N: 1}, {}})
		if p.lo%align != 0 || p.domain%align != 0 || p.lo > 123_456 || p.lo+3*p.domain < p.hi {
			t.Errorf("aligned to %d: domains from %d on, %d bytes each", align, p.lo, p.domain)
		}
	}
}

// A collective operation that is given up before its turn does not let those behind it
// pass those before it.
func TestFileTurnGivenUp(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	f := &File{}
	_, first := f.enqueue()
	if err := f.InOrder(ended, func() error { return nil }); !errors.Is(err, context.Canceled) {
		t.Fatalf("operation that is given up: %v", err)
	}
	turn := make(chan error, 1)
	before, _ := f.enqueue()
	go func() {
		<-before
		turn <- nil
	}()
	for range 1000 {
		runtime.Gosched()
	}
	select {
	case <-turn:
		t.Error("the third operation does not wait for the first")
	default:
	}
	close(first)
	<-turn
}
