package mpi

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkIdle looks for a message that does not come, again and again, as programs do that wait for
// several things; an operation is one call.
func BenchmarkIdle(b *testing.B) {
	for _, tr := range testTransports {
		for _, call := range []string{"Iprobe", "Test", "Testsome"} {
			b.Run(fmt.Sprintf("transport=%s/call=%s", tr, call), func(b *testing.B) {
				b.ReportAllocs()
				benchIdle(b, tr, call)
			})
		}
	}
}

func benchIdle(b *testing.B, tr, call string) {
	err := RunLocal(context.Background(), 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if c.Rank() != 0 {
			_, err := Recv(ctx, c, make([]byte, 1), 0, 1)
			return err
		}
		r, err := Irecv(c, make([]byte, 8), 1, 2)
		if err != nil {
			return err
		}
		reqs := []*Request{r}
		b.ResetTimer()
		for range b.N {
			switch call {
			case "Iprobe":
				_, _, err = Iprobe(c, 1, 3)
			case "Test":
				_, _, err = r.Test()
			default:
				Testsome(reqs...)
			}
			if err != nil {
				return err
			}
		}
		b.StopTimer()
		r.Cancel()
		return Send(ctx, c, make([]byte, 1), 1, 1)
	}, overTransport(tr))
	if err != nil {
		b.Fatal(err)
	}
}
