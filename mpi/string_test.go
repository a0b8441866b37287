package mpi

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

func TestHandlesPrintShort(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	err := RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		send, err := Isend(c, make([]float64, 1000), 1-c.Rank(), 1)
		if err != nil {
			return err
		}
		m, err := Mprobe(ctx, c, 1-c.Rank(), 1)
		if err != nil {
			return err
		}
		handles := []any{w, c, c.Group(), send, m}
		if _, err := Mrecv(ctx, m, make([]float64, 1000)); err != nil {
			return err
		}
		if _, err := send.Wait(ctx); err != nil {
			return err
		}
		handles = append(handles, send)
		win, err := WinCreate(ctx, c, make([]float64, 1000))
		if err != nil {
			return err
		}
		defer win.Free(ctx)
		mem, err := WindowCreate(ctx, c, make([]byte, 1000), 1)
		if err != nil {
			return err
		}
		defer mem.Free(ctx)
		f, err := FileOpen[int32](ctx, c, name, FileCreate|FileReadWrite, nil)
		if err != nil {
			return err
		}
		defer f.Close(ctx)
		s, err := w.NewSession(nil)
		if err != nil {
			return err
		}
		p, err := SendInit(c, []byte("x"), 1-c.Rank(), 2)
		if err != nil {
			return err
		}
		bar, err := BarrierInit(c)
		if err != nil {
			return err
		}
		ps, err := PsendInit(c, make([]byte, 100), 4, 1-c.Rank(), 3)
		if err != nil {
			return err
		}
		pr, err := PrecvInit(c, make([]byte, 100), 4, 1-c.Rank(), 3)
		if err != nil {
			return err
		}
		cart, err := NewCart(ctx, c, []int{2, 1}, []bool{true, false})
		if err != nil {
			return err
		}
		graph, err := NewGraph(ctx, c, []int{1 - c.Rank()}, []int{1 - c.Rank()})
		if err != nil {
			return err
		}
		typ, err := TypeOf[float64]()
		if err != nil {
			return err
		}
		gr := w.StartGrequest(nil)
		handles = append(handles, win, f, s, p, bar, ps, pr, cart, graph, typ, gr, gr.Request())
		gr.Complete(Status{}, nil)
		handles = append(handles, gr, new(Profile), NewTracer(new(bytes.Buffer)))
		handles = append(handles, mem, f.FileHandle, OpSum, Elements(make([]int32, 100_000)), Buffer{}, Items(make([]int32, 1), 2, typ))
		if c.Rank() == 0 { // others print meanwhile what they use
			testenv.CheckHandles(t, handles, "Tuning", "Contents", "ErrorCode")
		}
		return s.Finalize(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}
