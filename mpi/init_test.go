package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/sctp/wire"
)

// jobEnv, in the environment of the test binary, makes it a rank of a job
// rather than run tests.
const jobEnv = "WEFT_TEST_JOB"

func TestMain(m *testing.M) {
	if name := os.Getenv(jobEnv); name != "" {
		if err := testJobs[name](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var testJobs = map[string]func() error{
	"alone":         aloneJob,
	"ring":          ringJob,
	"victim":        victimJob,
	"session":       sessionJob,
	"shared":        sharedJob,
	"mapped victim": mappedVictimJob,
}

// ringJob checks the world and exchanges messages with both neighbours.
func ringJob() error {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	w, err := Init(ctx)
	if err != nil {
		return err
	}
	c := w.Comm()
	n := c.Size()
	for i, size := range []int{0, 1000, 300_000} {
		out, in := make([]byte, size), make([]byte, size)
		pattern(out, c.Rank()+i)
		left := (c.Rank() + n - 1) % n
		if _, err := Sendrecv(ctx, c, out, (c.Rank()+1)%n, i, in, left, i); err != nil {
			return err
		}
		if err := checkPattern(in, left+i); err != nil {
			return err
		}
	}
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	fmt.Printf("rank %d of %d over %s\n", c.Rank(), n, w.Transport())
	return nil
}

// victimJob has rank 1 die without a word; the others must notice.
func victimJob() error {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	w, err := Init(ctx)
	if err != nil {
		return err
	}
	c := w.Comm()
	if c.Rank() == 1 {
		if _, err := Recv(ctx, c, []byte{}, 0, 0); err != nil {
			return err
		}
		os.Exit(7)
	}
	if c.Rank() == 0 {
		if err := Send(ctx, c, []byte{}, 1, 0); err != nil {
			return err
		}
	}
	_, err = Recv(ctx, c, []byte{}, 1, 1)
	var re *RankError
	if !errors.As(err, &re) || re.Rank != 1 {
		return fmt.Errorf("receive from the dead = %w", err)
	}
	fmt.Println("noticed")
	return nil
}

// runJob starts n processes as ranks and returns what they print, by rank.
func runJob(t *testing.T, name string, n int, env ...string) (out []string, errs []error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	s := pmi.NewServer(n, "test")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.ServeListener(ctx, ln, "secret") }()
	out, errs = make([]string, n), make([]error, n)
	var wg sync.WaitGroup
	for rank := range n {
		wg.Go(func() {
			cmd := exec.CommandContext(ctx, exe)
			cmd.Env = append(os.Environ(), jobEnv+"="+name, pmi.EnvPort+"="+ln.Addr().String(),
				fmt.Sprintf("%s=%d", pmi.EnvID, rank), pmi.EnvToken+"=secret", "WEFT_ADDRS=127.0.0.1")
			cmd.Env = append(cmd.Env, env...)
			var buf bytes.Buffer
			cmd.Stdout, cmd.Stderr = &buf, &buf
			errs[rank] = cmd.Run()
			out[rank] = buf.String()
		})
	}
	wg.Wait()
	cancel()
	_ = ln.Close()
	<-served
	return out, errs
}

func TestInitProcesses(t *testing.T) {
	for _, tt := range []struct {
		transport string
		n         int
	}{{"tcp", 3}, {"sctp", 4}, {"hybrid", 2}} {
		t.Run("transport="+tt.transport, func(t *testing.T) {
			out, errs := runJob(t, "ring", tt.n, "WEFT_TRANSPORT="+tt.transport)
			for r := range out {
				want := fmt.Sprintf("rank %d of %d over %s\n", r, tt.n, tt.transport)
				if errs[r] != nil || out[r] != want {
					t.Errorf("rank %d: %v, %q, want %q", r, errs[r], out[r], want)
				}
			}
		})
	}
}

func TestProcessDies(t *testing.T) {
	for _, tr := range []string{"tcp"} {
		t.Run("transport="+tr, func(t *testing.T) {
			out, errs := runJob(t, "victim", 3, "WEFT_TRANSPORT="+tr)
			for _, r := range []int{0, 2} {
				if errs[r] != nil || out[r] != "noticed\n" {
					t.Errorf("rank %d: %v, %q", r, errs[r], out[r])
				}
			}
		})
	}
}

func TestCapture(t *testing.T) {
	file := t.TempDir() + "/capture"
	out, errs := runJob(t, "ring", 2, "WEFT_CAPTURE="+file, "WEFT_TRANSPORT=sctp")
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err, out)
	}
	if records, bytes := readCapture(t, file); records < 20 || bytes < 600_000 {
		t.Errorf("%d records with %d bytes, want those of 600 kB of messages", records, bytes)
	}
}

func TestWithCapture(t *testing.T) {
	file := t.TempDir() + "/capture"
	const n = 100_000
	local(t, 2, func(ctx context.Context, c *Comm) error {
		other, in := 1-c.Rank(), make([]byte, n)
		_, err := Sendrecv(ctx, c, make([]byte, n), other, 0, in, other, 0)
		return err
	}, WithTransport(TransportSCTP), WithCapture(file))
	if _, bytes := readCapture(t, file); bytes < 2*n {
		t.Errorf("%d bytes, want those of two messages of %d", bytes, n)
	}
}

// readCapture checks the records of a file and returns their number and that of
// the bytes in them.
func readCapture(t *testing.T, file string) (records, bytes int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for len(b) > 0 {
		const head = 8 + 2*19 + 4
		if len(b) < head || b[8] != 4 || b[27] != 4 {
			t.Fatalf("record %d is damaged", records)
		}
		n := int(b[head-4])<<24 | int(b[head-3])<<16 | int(b[head-2])<<8 | int(b[head-1])
		if !wire.VerifyChecksum(b[head : head+n]) {
			t.Fatalf("the checksum of packet %d is wrong", records)
		}
		records, bytes = records+1, bytes+n
		b = b[head+n:]
	}
	return records, bytes
}

func TestInitAlone(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), jobEnv+"=alone", pmi.EnvFD+"=", pmi.EnvPort+"=")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "rank 0 of 1 over hybrid\n" {
		t.Errorf("%s, %v", out, err)
	}
}

func aloneJob() error {
	ctx := context.Background()
	w, err := Init(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("rank %d of %d over %s\n", w.Rank(), w.Size(), w.Transport())
	return w.Finalize(ctx)
}

func TestOptions(t *testing.T) {
	env := map[string]string{
		"WEFT_TRANSPORT": "tcp", "WEFT_EAGER": "128K", "WEFT_STREAMS": "3", "WEFT_UNEXPECTED": "1M",
		"WEFT_SPIN": "10us", "WEFT_RENDEZVOUS": "write", "WEFT_ADDRS": "127.0.0.1:5000,::1", "WEFT_CAPTURE": "x",
	}
	o := &options{}
	if err := o.fromEnv(func(s string) string { return env[s] }); err != nil {
		t.Fatal(err)
	}
	if o.Transport != "tcp" || o.Eager != 128<<10 || o.Streams != 3 || o.Unexpected != 1<<20 || o.Rendezvous != p2p.RendezvousWrite ||
		o.Spin != 10*time.Microsecond || len(o.Addrs) != 2 || o.Addrs[0].Port() != 5000 || o.Capture != "x" {
		t.Errorf("options %+v", o)
	}
	for name, bad := range map[string]string{
		"WEFT_TRANSPORT": "inproc", "WEFT_EAGER": "-1", "WEFT_STREAMS": "0", "WEFT_UNEXPECTED": "lots",
		"WEFT_SPIN": "fast", "WEFT_RENDEZVOUS": "carrier", "WEFT_ADDRS": "localhost",
	} {
		err := new(options).fromEnv(func(s string) string {
			if s == name {
				return bad
			}
			return ""
		})
		if !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), ": want ") {
			t.Errorf("%s=%s: %v; want the name and what is allowed", name, bad, err)
		}
	}
	for i, opt := range []Option{WithEager(MaxEager + 1), WithStreams(MaxStreams + 1), WithUnexpected(-1), WithSpin(-1), WithTransport("avian")} {
		if err := opt(o); !errors.Is(err, ErrOption) {
			t.Errorf("option %d: %v", i, err)
		}
	}
	if err := RunLocal(context.Background(), 0, nil); !errors.Is(err, ErrOption) {
		t.Errorf("no ranks: %v", err)
	}
}
