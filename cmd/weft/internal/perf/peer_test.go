package perf

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/verbs"
)

const peerTime = 5 * time.Minute

// Both ends are ours here; with perftest's own programs interop/ measures.
func TestPerfPeers(t *testing.T) {
	for _, tt := range []struct {
		args                    string
		server, client, n, cols int // lines, iterations, columns
	}{
		{"send -n 50", 1, 1, 50, 5},
		{"send -n 100 -q 3 -t 4 -r 10", 1, 1, 300, 5},
		{"send -n 7 -r 3 -a", 23, 23, 7, 5},
		{"send -lat -n 50", 1, 1, 50, 9},
		{"send -lat -n 50 -r 5 -t 1", 1, 1, 50, 9},
		{"write -n 50 -report_gbits", 1, 1, 50, 5},
		{"write -n 20 -q 3", 1, 1, 60, 5},
		{"write -lat -n 300", 1, 1, 300, 9},
		{"write -lat -n 5 -a", 23, 23, 5, 9},
		{"read -n 50 -s 100", 1, 1, 50, 5},
		{"read -n 300 -t 300 -s 10", 1, 1, 300, 5},
		{"read -lat -n 50", 0, 1, 50, 9},
	} {
		if testenv.Race && !strings.HasPrefix(tt.args, "send -n 100") && !strings.HasPrefix(tt.args, "write -lat -n 300") && tt.args != "read -n 50 -s 100" {
			continue // each takes a second, and the others are alike
		}
		t.Run(tt.args, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), peerTime)
			defer cancel()
			args := append([]string{"perf", "-R"}, strings.Fields(tt.args)...)
			server, said, errs := startPeerServer(t, ctx, &args)
			printed, clientErrs, status := clitest.Weft(t, "", append(args, "127.0.0.1")...)
			var rest strings.Builder
			for said.Scan() {
				fmt.Fprintln(&rest, said.Text())
			}
			if err := server.Wait(); err != nil || status != 0 {
				t.Fatalf("client: status %d, %s\nserver: %v, %s", status, clientErrs, err, errs.String())
			}
			wantRows(t, "client", printed, tt.client, tt.n, tt.cols)
			wantRows(t, "server", rest.String(), tt.server, tt.n, tt.cols)
		})
	}
}

// startPeerServer starts a server, at a port that it adds to the arguments.
func startPeerServer(t *testing.T, ctx context.Context, args *[]string) (*exec.Cmd, *bufio.Scanner, *bytes.Buffer) {
	t.Helper()
	for {
		all := append(slices.Clone(*args), "-p", strconv.Itoa(testenv.FreePort(t)))
		server := exec.CommandContext(ctx, os.Args[0], all...)
		server.Env = append(os.Environ(), clitest.EnvRole+"=weft")
		errs := new(bytes.Buffer)
		server.Stderr = errs
		out, err := server.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(out)
		for said.Scan() {
			if strings.Contains(said.Text(), "Waiting for client") {
				*args = all
				return server, said, errs
			}
		}
		// Another one may have taken the port meanwhile.
		if err := server.Wait(); !strings.Contains(errs.String(), "in use") {
			t.Fatalf("the server does not start: %v, %s", err, errs.String())
		}
	}
}

// wantRows checks lines of results.
func wantRows(t *testing.T, who, said string, lines, iterations, columns int) {
	t.Helper()
	got, sum := 0, 0.0
	for line := range strings.Lines(said) {
		f := strings.Fields(line)
		if len(f) == 0 || strings.Trim(line, " 0123456789.\n") != "" {
			continue
		}
		got++
		if len(f) != columns || f[1] != strconv.Itoa(iterations) {
			t.Fatalf("%s: line %q, want %d columns, of %d iterations", who, line, columns, iterations)
		}
		v, err := strconv.ParseFloat(f[columns-1], 64)
		if err != nil || v < 0 {
			t.Errorf("%s: line %q: %v", who, line, err)
		}
		sum += v
	}
	if got != lines {
		t.Errorf("%s: %d lines of results, want %d:\n%s", who, got, lines, said)
	}
	// A few slow messages are no millionth of a million per second.
	if lines > 0 && sum <= 0 {
		t.Errorf("%s: nothing was measured:\n%s", who, said)
	}
}

// startPeer starts a server, whose client is a queue pair of the test.
func startPeer(t *testing.T, ctx context.Context, mode string) (c *peerControl, end *peerEnd, done chan error) {
	t.Helper()
	o := options{spec: spec{Mode: mode, Size: 64, Assocs: 1, Window: 4, TCP: true}, quiet: true, json: true}
	o.format, o.rdmaCM, o.iterations, o.recvDepth = formatPerftest, true, 10, 8
	addr := make(chan net.Addr, 1)
	o.listening = func(a net.Addr) { addr <- a }
	done = make(chan error, 1)
	go func() { done <- runPeer(ctx, &o) }()
	var at net.Addr
	select {
	case at = <-addr:
	case err := <-done:
		t.Fatal(err)
	}
	dev, err := verbs.Open(verbs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	end = &peerEnd{options: &o, client: true, device: dev, pd: dev.AllocPD(), addr: fmt.Sprintf("127.0.0.1:%d", at.(*net.TCPAddr).Port)}
	if c, err = end.newControl(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.qp.Close() })
	return c, end, done
}

func TestPerfPeerRefusesWhatItDoesNotUnderstand(t *testing.T) {
	version := append([]byte(peerVersion), make([]byte, peerVersionLen-len(peerVersion))...)
	number := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	for _, tt := range []struct {
		name     string
		messages [][]byte
		want     string
	}{
		{"short version", [][]byte{version[:15]}, errPeerMessage.Error()},
		{"version without number", [][]byte{make([]byte, 16)}, errPeerMessage.Error()},
		{"old version", [][]byte{append([]byte("5.69"), make([]byte, 12)...)}, "5.69"},
		{"negative page", [][]byte{version, number(1 << 31)}, errPeerMessage.Error()},
		{"large page", [][]byte{version, number(maxPeerPage + 1)}, errPeerMessage.Error()},
		{"long number", [][]byte{version, make([]byte, 8)}, errPeerMessage.Error()},
		{"message longer than any", [][]byte{make([]byte, peerDestLen+1)}, "too long"},
		{"gone", nil, "disconnected"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), peerTime)
			defer cancel()
			c, _, done := startPeer(t, ctx, "send")
			for _, m := range tt.messages {
				if err := c.send(ctx, m); err != nil {
					break // it is at its end already
				}
				if len(m) <= peerDestLen {
					c.receive(ctx, len(m)) // the last one has no answer
				}
			}
			c.qp.Disconnect(ctx)
			if err := <-done; err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestPerfPeerReport(t *testing.T) {
	rate := math.Float64bits(7)
	o := &options{spec: spec{Mode: "write"}}
	if row, err := peerReport(o, [5]uint64{64, 10, rate, rate, rate}); err != nil || row.Size != 64 || row.Iterations != 10 || row.Peak != 7 || row.Average != 7 || row.MsgRate != 7 || row.Unit != "MiB/s" {
		t.Errorf("%+v, %v", row, err)
	}
	for _, n := range [][5]uint64{
		{maxPerfSize + 1, 1, rate, rate, rate}, {64, 1 << 32, rate, rate, rate},
		{64, 1, math.Float64bits(math.NaN()), rate, rate}, {64, 1, rate, math.Float64bits(math.Inf(1)), rate}, {64, 1, rate, rate, math.Float64bits(-1)},
	} {
		if _, err := peerReport(o, n); !errors.Is(err, errPeerMessage) {
			t.Errorf("%x: %v", n, err)
		}
	}
}

// The message is what perftest 4.5 on x86-64 lays out.
func TestPeerDest(t *testing.T) {
	d := peerDest{reads: 0x01020304, qpn: 0x11121314, key: 0x21222324, address: 0x3132333435363738}
	want := "00000000" + "01020304" + "11121314" + "00000000" + "21222324" + "00000000" + "3132333435363738" + strings.Repeat("00", 24)
	if got := fmt.Sprintf("%x", d.marshal()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := parsePeerDest(d.marshal()); got != d {
		t.Errorf("%+v, want %+v", got, d)
	}
}

func TestPerfPeerWaitsWithinLimits(t *testing.T) {
	dev, err := verbs.Open(verbs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	addr := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)) // nobody listens
	e := &peerEnd{options: &options{}, client: true, addr: addr, device: dev, pd: dev.AllocPD(), tx: 4, rx: 4}
	if e.cq, err = dev.NewCQ(64); err != nil {
		t.Fatal(err)
	}
	if err := e.look(t.Context(), time.Millisecond, func() bool { return false }); !errors.Is(err, errPeerFirst) {
		t.Errorf("nothing arrives: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*peerPause)
	defer cancel()
	if err := e.connect(ctx, new(peerQP)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody listens: %v", err)
	}
}
