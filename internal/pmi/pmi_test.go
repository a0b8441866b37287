package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// job runs n ranks against one server over in-memory connections and returns
// what the server said of each.
func job(t *testing.T, n int, rank func(c *Client) error) []error {
	t.Helper()
	s := NewServer(n, "kvs_test")
	served := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		here, there := net.Pipe()
		wg.Go(func() { served[i] = s.Serve(t.Context(), i, there) })
		wg.Go(func() {
			c, err := NewClient(t.Context(), here, i, n)
			if err != nil {
				t.Errorf("rank %d: %v", i, err)
				return
			}
			if err := rank(c); err != nil {
				t.Errorf("rank %d: %v", i, err)
			}
			here.Close()
		})
	}
	wg.Wait()
	return served
}

func TestRanksExchangeValues(t *testing.T) {
	const n = 5
	value := func(rank int) string {
		return strings.Repeat(fmt.Sprintf("rank %d = \x00\n\xff;", rank), 1+rank*400)
	}
	served := job(t, n, func(c *Client) error {
		ctx := t.Context()
		if err := c.Put(ctx, fmt.Sprint("card-", c.Rank), value(c.Rank)); err != nil {
			return err
		}
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		for i := range n {
			got, err := c.Get(ctx, fmt.Sprint("card-", i))
			if err != nil {
				return err
			}
			if got != value(i) {
				return fmt.Errorf("value of rank %d came back as %d bytes, want %d equal ones", i, len(got), len(value(i)))
			}
		}
		return c.Finalize(ctx)
	})
	for i, err := range served {
		if err != nil {
			t.Errorf("server about rank %d: %v", i, err)
		}
	}
}

func TestBarrierWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(2, "k")
		ctx, cancel := context.WithCancel(t.Context())
		passed := make(chan int, 2)
		enter := func(rank int) {
			here, there := net.Pipe()
			go s.Serve(ctx, rank, there)
			go func() {
				c, err := NewClient(ctx, here, rank, 2)
				if err == nil && c.Barrier(ctx) == nil {
					passed <- rank
				}
			}()
		}
		enter(0)
		synctest.Wait()
		if len(passed) != 0 {
			t.Error("rank 0 left the barrier alone")
		}
		enter(1)
		synctest.Wait()
		if len(passed) != 2 {
			t.Errorf("%d ranks left the barrier, want 2", len(passed))
		}
		cancel()
	})
}

func TestGetOfAbsentKeyIsAnError(t *testing.T) {
	job(t, 1, func(c *Client) error {
		if _, err := c.Get(t.Context(), "nobody"); err == nil || !strings.Contains(err.Error(), "nobody") {
			return fmt.Errorf("error = %v, want one that names the key", err)
		}
		return c.Finalize(t.Context())
	})
}

func TestAbortReachesTheServer(t *testing.T) {
	// A code whose low eight bits are 0 would be the exit status of success.
	for code, status := range map[int]int{7: 7, -1: -1, 300: 300, 0: 1, 256: 1, -512: 1} {
		s := NewServer(2, "k")
		here, there := net.Pipe()
		go s.Serve(t.Context(), 1, there)
		c, err := NewClient(t.Context(), here, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Abort(code, "the input\nis missing"); err != nil {
			t.Fatal(err)
		}
		<-s.Aborted()
		if got, want := *s.AbortReason(), (AbortError{1, status, "the input is missing"}); got != want {
			t.Errorf("reason of code %d = %+v, want %+v", code, got, want)
		}
	}
}

// A client that is not of this package says what it likes.
func TestAbortOfAnyClientIsNoSuccess(t *testing.T) {
	for code, status := range map[string]int{"9": 9, "256": 1, "0": 1, "x": 1, "": 1} {
		s := NewServer(1, "k")
		s.setAbort(0, message{args: map[string]string{"exitcode": code}})
		if got := s.AbortReason().Code; got != status {
			t.Errorf("code %q: status %d, want %d", code, got, status)
		}
	}
}

func TestRankThatVanishesIsReported(t *testing.T) {
	served := job(t, 1, func(c *Client) error { return nil })
	if !errors.Is(served[0], io.EOF) {
		t.Errorf("server about a rank that left without finalize: %v, want EOF", served[0])
	}
}

func TestBarrierEndsWithItsContext(t *testing.T) {
	s := NewServer(2, "k")
	here, there := net.Pipe()
	go s.Serve(t.Context(), 0, there)
	c, err := NewClient(t.Context(), here, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if err := c.Barrier(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
}

func TestConnectByPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(2, "k")
	var e environ
	go s.ServeListener(t.Context(), l, "secret")
	t.Setenv(EnvFD, "")
	t.Setenv(EnvPort, l.Addr().String())
	t.Setenv(EnvID, "1")
	t.Setenv(EnvAlone, "") // restores it
	t.Setenv("SLURM_STEP_NUM_TASKS", "2")

	t.Setenv(EnvToken, "guess")
	if _, err := e.client(t.Context()); err == nil {
		t.Error("a client with the wrong token was let in")
	}
	t.Setenv(EnvToken, "secret")
	c, err := e.client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.Addr != l.Addr().String() {
		t.Errorf("launcher at %q, want %v", c.Addr, l.Addr())
	}
	if c.Rank != 1 || c.Size != 2 {
		t.Errorf("rank %d of %d, want 1 of 2", c.Rank, c.Size)
	}
	if _, err := e.client(t.Context()); !errors.Is(err, ErrTaken) {
		t.Errorf("connecting again: %v, want ErrTaken", err)
	}
	for _, name := range []string{EnvFD, EnvPort, EnvID, EnvToken} {
		if v, ok := os.LookupEnv(name); ok {
			t.Errorf("a child would inherit %s=%s", name, v)
		}
	}
	if _, err := new(environ).client(t.Context()); err != nil {
		t.Errorf("a child of a rank of srun: %v, want a job of its own", err)
	}
	t.Setenv(EnvPort, l.Addr().String())
	t.Setenv(EnvID, "1")
	t.Setenv(EnvToken, "secret")
	if _, err := new(environ).client(t.Context()); err == nil {
		t.Error("rank 1 connected twice")
	}
	if err := c.Finalize(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestFromEnv(t *testing.T) {
	for _, tt := range []struct {
		name, fd, rank, size string
		wantErr              string
	}{
		{"alone", "", "", "", ""},
		{"not a descriptor", "x", "0", "1", "PMI_FD"},
		{"negative descriptor", "-1", "0", "1", "PMI_FD"},
		{"no rank", "7", "", "1", "PMI_RANK"},
		{"bad size", "7", "0", "many", "PMI_SIZE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(EnvPort, "")
			t.Setenv(EnvFD, tt.fd)
			t.Setenv(EnvRank, tt.rank)
			t.Setenv(EnvSize, tt.size)
			c, err := new(environ).client(t.Context())
			if c != nil {
				t.Error("got a client")
			}
			if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("error = %v, want one with %q", err, tt.wantErr)
			}
		})
	}
}

func TestServerRefuses(t *testing.T) {
	long := strings.Repeat("x", ValueMax+1)
	for _, tt := range []struct{ name, line, want string }{
		{"unknown command", "cmd=dance", "closed"},
		{"no command", "key=value", "closed"},
		{"not a pair", "hello", "closed"},
		{"key twice", "cmd=put cmd=get", "closed"},
		{"line without end", strings.Repeat("y", MaxLine), "closed"},
		{"foreign space", "cmd=put kvsname=other key=a value=b", "rc=-1"},
		{"long value", "cmd=put kvsname=k key=a value=" + long, "rc=-1"},
		{"long key", "cmd=put kvsname=k key=" + long[:KeyMax+1] + " value=b", "rc=-1"},
		{"no key", "cmd=get kvsname=k", "rc=-1"},
		{"future version", "cmd=init pmi_version=2 pmi_subversion=0", "rc=-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := NewServer(1, "k")
			here, there := net.Pipe()
			done := make(chan error, 1)
			go func() { done <- s.Serve(t.Context(), 0, there) }()
			go io.WriteString(here, tt.line+"\n")
			reply, err := bufio.NewReader(here).ReadString('\n')
			if tt.want == "closed" {
				if err == nil {
					t.Errorf("reply %q, want the connection closed", reply)
				}
				if err := <-done; !errors.Is(err, ErrProtocol) {
					t.Errorf("server's error = %v, want ErrProtocol", err)
				}
				return
			}
			if !strings.Contains(reply, tt.want) {
				t.Errorf("reply %q (%v), want one with %q", reply, err, tt.want)
			}
		})
	}
}

func TestPutRefusesWhatCannotBeStored(t *testing.T) {
	job(t, 1, func(c *Client) error {
		for _, key := range []string{"", "a b", "a=b", "a\nb", strings.Repeat("k", KeyMax+1)} {
			if c.Put(t.Context(), key, "v") == nil {
				t.Errorf("key %q was taken", key)
			}
		}
		if c.Put(t.Context(), "k", strings.Repeat("v", MaxValue+1)) == nil {
			t.Error("a value beyond MaxValue was taken")
		}
		return c.Finalize(t.Context())
	})
}

func FuzzParseMessage(f *testing.F) {
	for _, line := range []string{
		"cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_result rc=-1 msg=no such key", "mcmd=spawn", "a=b", "= =", " cmd=x ",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		m, err := parseMessage(line)
		if err == nil && m.cmd == "" {
			t.Errorf("%q parsed without a command", line)
		}
	})
}
