package rping

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
)

const testTime = 5 * time.Minute

// startServer starts a server and returns where it listens, and its end.
func startServer(t *testing.T, ctx context.Context, o options) (port int, done chan error, out, log *bytes.Buffer) {
	t.Helper()
	addr := make(chan net.Addr, 1)
	out, log, done = new(bytes.Buffer), new(bytes.Buffer), make(chan error, 1)
	o.server, o.addr, o.verbose = true, "127.0.0.1", true
	o.out, o.log = &lockedWriter{w: out}, &lockedWriter{w: log}
	o.listening = func(a net.Addr) { addr <- a }
	go func() { done <- o.run(ctx) }()
	select {
	case a := <-addr:
		if s, ok := a.(sctp.Addr); ok {
			// The UDP port is free, and so is the SCTP port.
			return int(s.Addrs[0].Port()), done, out, log
		}
		return a.(*net.TCPAddr).Port, done, out, log
	case err := <-done:
		t.Fatal(err)
	}
	return
}

func TestRping(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    options
	}{
		{"smallest", options{size: minSize, crc: true, revision: 2}},
		{"default", options{size: defaultSize, crc: true, revision: 2}},
		{"largest without CRC", options{size: maxSize, revision: 2}},
		{"markers", options{size: 5000, crc: true, markers: true, revision: 2, debug: true}},
		{"revision 1", options{size: 100, crc: true, revision: 1}},
		{"source", options{size: 100, crc: true, revision: 2, source: "127.0.0.1"}},
		{"SCTP", options{size: 20000, sctp: true, revision: 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), testTime)
			defer cancel()
			server := tt.o
			server.source = ""
			if tt.o.sctp {
				server.port = testenv.FreePort(t)
			}
			port, done, sout, slog := startServer(t, ctx, server)
			var out bytes.Buffer
			client := tt.o
			client.client, client.addr, client.port, client.count = true, "127.0.0.1", port, 10
			client.verbose, client.validate, client.out, client.log = true, true, &out, &out
			if tt.o.sctp {
				client.pcap = filepath.Join(t.TempDir(), "rping.pcap")
			}
			if err := client.run(ctx); err != nil {
				t.Fatalf("client: %v", err)
			}
			if err := <-done; err != nil {
				t.Fatalf("server: %v", err)
			}
			got, sgot := pings(out.String(), "ping data: "), pings(sout.String(), "server ping data: ")
			if len(got) != 10 || !slices.Equal(got, sgot) || slog.String() != "server DISCONNECT EVENT...\n" {
				t.Fatalf("client printed %.300q, server %.300q, %q", got, sgot, slog)
			}
			for i := range got {
				if len(got[i]) != tt.o.size-1 {
					t.Errorf("ping %d has %d bytes, want %d", i, len(got[i]), tt.o.size-1)
				}
			}
			if want := "rdma-ping-1: BCDEFGHIJKLM"; !strings.HasPrefix(got[1], want) {
				t.Errorf("client printed %.60q, want %q", got[1], want)
			}
			if client.pcap != "" {
				if fi, err := os.Stat(client.pcap); err != nil || fi.Size() < 10*2*20000 {
					t.Errorf("capture: %v, %v", fi, err)
				}
			}
			if debug := strings.Contains(sout.String(), "server posted go ahead\n"); debug != tt.o.debug {
				t.Errorf("debugging output: %v, want %v", debug, tt.o.debug)
			}
		})
	}
}

func pings(said, prefix string) (texts []string) {
	for line := range strings.SplitSeq(said, "\n") {
		if text, ok := strings.CutPrefix(line, prefix); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

func TestRpingPersistentServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	sctx, stop := context.WithCancel(ctx)
	port, done, sout, _ := startServer(t, sctx, options{size: 100, crc: true, revision: 2, persistent: true})
	errs := make(chan error)
	const clients = 5
	for range clients {
		go func() {
			var out bytes.Buffer
			c := options{client: true, addr: "127.0.0.1", port: port, size: 100, count: 5, crc: true, revision: 2, validate: true, out: &out, log: &out}
			errs <- c.run(ctx)
		}()
	}
	for range clients {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("interrupted server: %v", err)
	}
	if got := pings(sout.String(), "server ping data: "); len(got) != clients*5 {
		t.Errorf("the server saw %d pings, want %d", len(got), clients*5)
	}
}

func TestRpingTooLargeForServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	port, done, _, _ := startServer(t, ctx, options{size: 100, crc: true, revision: 2})
	var out bytes.Buffer
	c := options{client: true, addr: "127.0.0.1", port: port, size: 101, count: 1, crc: true, revision: 2, out: &out, log: &out}
	if err := c.run(ctx); err == nil {
		t.Error("a client with more data than the server has room for succeeds")
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "101 bytes") {
		t.Errorf("server: %v", err)
	}
}

func TestRpingFlags(t *testing.T) {
	// As getopt takes them.
	for _, tt := range []struct{ args, want string }{
		{"-cVv -C5 -S 100 -a host -p 7", "-c -V -v -C=5 -S=100 -a=host -p=7"},
		{"-svP", "-s -v -P"},
		{"-cvC 9 -ahost --sctp --revision 1", "-c -v -C=9 -a=host --sctp --revision 1"},
		{"-c -C=3 --crc=false", "-c -C=3 --crc=false"},
		{"-c -a ::1 -vVd", "-c -a=::1 -v -V -d"},
		{"-c -sctp", "-c -sctp"},
		{"-C", "-C"},
	} {
		got := strings.Join(splitLetters(joinValues(strings.Fields(tt.args))), " ")
		if got != tt.want {
			t.Errorf("%q is taken for %q, want %q", tt.args, got, tt.want)
		}
	}
	var o options
	if err := newFlags(&o).Parse(splitLetters(joinValues(strings.Fields("-cVv -C5 -S 100 -a host")))); err != nil || !o.client || !o.validate ||
		o.count != 5 || o.size != 100 || o.addr != "host" {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestRpingUsage(t *testing.T) {
	for _, args := range []string{"", "-s -c", "-c", "-s -S 9", "-s -S 65536", "-s x", "-c -P -a x", "-s --pcap f", "-s --revision 3", "-s -p 70000", "-s -I ::1", "-sz"} {
		clitest.WantMisused(t, "weft rping", append([]string{"rping"}, strings.Fields(args)...)...)
	}
}
