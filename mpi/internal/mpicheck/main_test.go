package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi"
)

func TestCheck(t *testing.T) {
	run := func(tr string, n int, opts ...mpi.Option) {
		t.Run(fmt.Sprintf("transport=%s/ranks=%d", tr, n), func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
			defer stop()
			err := mpi.RunLocal(ctx, n, func(ctx context.Context, w *mpi.World) error {
				return check(ctx, w.Comm())
			}, append(opts, mpi.WithProgram(os.Args[0], child))...)
			if err != nil {
				t.Error(err)
			}
		})
	}
	sizes := []int{1, 2, 5}
	if testenv.Race {
		sizes = []int{5}
	}
	for _, tr := range []string{mpi.TransportInproc, mpi.TransportTCP, mpi.TransportSCTP, mpi.TransportHybrid} {
		for _, n := range sizes {
			run(tr, n, mpi.WithTransport(tr))
		}
	}
	for _, method := range []string{mpi.RendezvousWrite, mpi.RendezvousRead} {
		for _, n := range []int{2, 5} { // nearly all messages are moved by RDMA
			run("hybrid/rendezvous="+method, n, mpi.WithTransport(mpi.TransportHybrid),
				mpi.WithRendezvous(method), mpi.WithEager(256))
		}
	}
}
