package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/weftstack/weft/mpi"
)

func TestCheck(t *testing.T) {
	for _, tr := range []string{mpi.TransportInproc, mpi.TransportTCP, mpi.TransportSCTP, mpi.TransportHybrid} {
		for _, n := range []int{1, 2, 5} {
			t.Run(fmt.Sprintf("transport=%s/ranks=%d", tr, n), func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				err := mpi.RunLocal(ctx, n, func(ctx context.Context, w *mpi.World) error {
					return check(ctx, w.Comm())
				}, mpi.WithTransport(tr), mpi.WithProgram(os.Args[0], child))
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}
