package mpi

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// A gapped has 24 bytes. 8 of them are padding, between its fields and at its end: those with 1 in gapMarks.
type gapped struct {
	A int8
	B float64
	C [3]int16
	D bool
}

// gapMarks has 1 for the bytes of a gapped that are padding.
var gapMarks = []byte{0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}

// gappedData is the bytes of data in a gapped.
const gappedData = 16

// gappeds returns n elements with values from first on, and all padding set to fill.
func gappeds(n, first int, fill byte) []gapped {
	s := make([]gapped, n)
	for i, b := 0, datatype.Bytes(s); i < len(b); i++ {
		if gapMarks[i%len(gapMarks)] == 1 {
			b[i] = fill
		}
	}
	for i := range s {
		x, k := &s[i], first+i
		x.A, x.B, x.C, x.D = int8(k), float64(k)/3, [3]int16{int16(k), int16(-k), int16(k + 1)}, k%2 == 1
	}
	return s
}

// checkGapped checks that s has the values from first on, and its padding is fill.
func checkGapped(what string, s []gapped, first int, fill byte) error {
	if !bytes.Equal(datatype.Bytes(s), datatype.Bytes(gappeds(len(s), first, fill))) {
		return fmt.Errorf("%s: elements %v, or their padding, are not those from %d on with padding of %d: % x",
			what, s[:min(len(s), 4)], first, fill, datatype.Bytes(s)[:min(len(s), 2)*len(gapMarks)])
	}
	return nil
}

// TestPaddingStays sends structs with padding: only their fields travel, a receiver keeps its padding,
// and the other side may describe the fields by a datatype.
func TestPaddingStays(t *testing.T) {
	fields := MustType(TypeStruct([]int{1, 1, 3, 1}, []int{0, 8, 16, 22}, []*Datatype{MustType(TypeOf[int8]()),
		MustType(TypeOf[float64]()), MustType(TypeOf[int16]()), MustType(TypeOf[bool]())}))
	whole := MustType(TypeOf[gapped]())
	if !whole.Matches(fields) || whole.Size() != gappedData || fields.Size() != gappedData {
		t.Fatalf("%v of %s does not match %v of %s", whole, whole.Signature(), fields, fields.Signature())
	}
	for _, tr := range testTransports {
		for _, n := range []int{1, 10, 50_000} {
			t.Run(fmt.Sprintf("%s/n=%d", tr, n), func(t *testing.T) {
				local(t, 2, func(ctx context.Context, c *Comm) error {
					return paddedMessages(ctx, c, n, fields)
				}, overTransport(tr))
			})
		}
	}
}

// paddedMessages exchanges n elements by messages and collectives between two ranks.
func paddedMessages(ctx context.Context, c *Comm, n int, fields *Datatype) error {
	me := c.Rank()
	mine, theirs := gappeds(n, 100*me, 0x50), gappeds(n, 7, 0x60)
	arrived := func(what string, first int) error {
		err := checkGapped(what, theirs, first, 0x60)
		theirs = gappeds(n, 7, 0x60)
		return err
	}
	if me == 0 {
		if err := Send(ctx, c, mine, 1, 0); err != nil {
			return err
		}
		if err := Send(ctx, c, mine, 1, 0); err != nil {
			return err
		}
		if err := c.Send(ctx, Items(mine, n, fields), 1, 0); err != nil {
			return err
		}
	} else {
		st, err := Probe(ctx, c, 0, 0)
		if err != nil {
			return err
		}
		if k, err := Count[gapped](st); k != n || st.Bytes != n*gappedData || err != nil {
			return fmt.Errorf("%d elements in %d bytes, %w, want %d", k, st.Bytes, err, n)
		}
		if _, err := Recv(ctx, c, theirs, 0, 0); err != nil {
			return err
		}
		if err := arrived("Recv", 0); err != nil {
			return err
		}
		st, err = c.Recv(ctx, Items(theirs, n, fields), 0, 0)
		if err != nil {
			return err
		}
		if k, err := st.Elements(fields); k != 6*n || err != nil {
			return fmt.Errorf("%d basic elements, %w, want %d", k, err, 6*n)
		}
		if err := arrived("Recv of a datatype", 0); err != nil {
			return err
		}
		if _, err := Recv(ctx, c, theirs, 0, 0); err != nil {
			return err
		}
		if err := arrived("Recv from a datatype", 0); err != nil {
			return err
		}
	}
	if _, err := Sendrecv(ctx, c, mine, 1-me, 1, theirs, 1-me, 1); err != nil {
		return err
	}
	if err := arrived("Sendrecv", 100*(1-me)); err != nil {
		return err
	}
	if me == 0 {
		copy(theirs, gappeds(n, 0, 0x60))
	}
	if err := Bcast(ctx, c, theirs, 0); err != nil {
		return err
	}
	if err := arrived("Bcast", 0); err != nil {
		return err
	}
	both := gappeds(2*n, 7, 0x70)
	if err := Allgather(ctx, c, mine, both); err != nil {
		return err
	}
	for r := range 2 {
		if err := checkGapped("Allgather", both[r*n:][:n], 100*r, 0x70); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkElements measures a buffer of elements of a type whose padding is looked up.
func BenchmarkElements(b *testing.B) {
	type dense struct{ X, Y float64 }
	run := func(name string, f func() Buffer) {
		b.Run("type="+name, func(b *testing.B) {
			b.ReportAllocs()
			var x Buffer
			for b.Loop() {
				x = f()
			}
			if x.Len() == 0 {
				b.Fatal(x)
			}
		})
	}
	numbers, points, structs := make([]float64, 8), make([]dense, 8), make([]gapped, 8)
	run("float64", func() Buffer { return Elements(numbers) })
	run("struct", func() Buffer { return Elements(points) })
	run("padded", func() Buffer { return Elements(structs) })
}
