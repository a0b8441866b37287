package main

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

func TestRping(t *testing.T) {
	for _, size := range []int{rpingMinSize, rpingSize, rpingMaxSize} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		addr := make(chan net.Addr, 1)
		var out, sout bytes.Buffer
		server := rpingOptions{server: true, addr: "127.0.0.1", size: size, verbose: true, out: &sout,
			listening: func(a net.Addr) { addr <- a }}
		done := make(chan error, 1)
		go func() { done <- server.run(ctx) }()
		var a net.Addr
		select {
		case a = <-addr:
		case err := <-done:
			t.Fatal(err)
		}
		client := rpingOptions{client: true, addr: "127.0.0.1", port: a.(*net.TCPAddr).Port, size: size, count: 10,
			verbose: true, validate: true, out: &out}
		if err := client.run(ctx); err != nil {
			t.Fatalf("client: %v", err)
		}
		if err := <-done; err != nil {
			t.Fatalf("server: %v", err)
		}
		got, sgot := strings.Split(out.String(), "\n"), strings.Split(sout.String(), "\n")
		if len(got) != 11 || len(sgot) != 12 || sgot[10] != "server DISCONNECT EVENT..." {
			t.Fatalf("client printed %q, server %q", got, sgot)
		}
		for i := range 10 {
			if "server "+got[i] != sgot[i] || len(got[i]) != len("ping data: ")+size-1 {
				t.Errorf("client printed %q, server %q", got[i], sgot[i])
			}
		}
		if !strings.HasPrefix(got[1], "ping data: rdma-ping-1: BCDEFGHIJKLM") {
			t.Errorf("client printed %.60q", got[1])
		}
	}
}

func TestRpingUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"-s", "-c"}, {"-c"}, {"-s", "-S", "9"}, {"-s", "-S", "70000"}, {"-s", "x"}} {
		if got := rpingMain(args); got != exitUsage {
			t.Errorf("rping %q: status %d", args, got)
		}
	}
}
