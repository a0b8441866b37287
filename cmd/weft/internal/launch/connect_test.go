package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/mpi"
)

// openService opens a port at rank 0 and publishes it.
func openService(ctx context.Context, w *mpi.World) (port string, err error) {
	if w.Rank() == 0 {
		if port, err = w.OpenPort(); err == nil {
			err = w.PublishName(ctx, "the service", port)
		}
	}
	return port, err
}

func serverRole(ctx context.Context, args []string) error {
	return within(ctx, func(ctx context.Context, w *mpi.World) error {
		port, err := openService(ctx, w)
		if err != nil {
			return err
		}
		for range 2 {
			c, err := w.Comm().Accept(ctx, port, 0)
			if err != nil {
				return err
			}
			if err := together(ctx, c, false, w.Size()+c.RemoteSize()); err != nil {
				return err
			}
			if err := c.Disconnect(ctx); err != nil {
				return err
			}
		}
		if w.Rank() == 0 {
			return w.UnpublishName(ctx, "the service", port)
		}
		return nil
	})
}

func clientRole(ctx context.Context, args []string) error {
	return within(ctx, func(ctx context.Context, w *mpi.World) error {
		port := ""
		for w.Rank() == 0 && port == "" {
			var err error
			port, err = w.LookupName(ctx, "the service")
			if err != nil && (!errors.Is(err, mpi.ErrName) || ctx.Err() != nil) {
				return err
			}
			if err != nil {
				<-time.After(5 * time.Millisecond)
			}
		}
		for range 2 {
			c, err := w.Comm().Connect(ctx, port, 0, nil)
			if err != nil {
				return err
			}
			if err := together(ctx, c, true, w.Size()+c.RemoteSize()); err != nil {
				return err
			}
			if err := c.Disconnect(ctx); err != nil {
				return err
			}
		}
		fmt.Printf("client %d done\n", w.Rank())
		return nil
	})
}

// bereftRole is a server that loses its client, without word to its launcher.
func bereftRole(ctx context.Context, args []string) error {
	return within(ctx, func(ctx context.Context, w *mpi.World) error {
		port, err := openService(ctx, w)
		if err != nil {
			return err
		}
		c, err := w.Comm().Accept(ctx, port, 0)
		if err != nil {
			return err
		}
		_, err = mpi.Recv(ctx, c, make([]int, 1), 0, 0)
		var re *mpi.RankError
		if !errors.As(err, &re) || !re.Other {
			return fmt.Errorf("received from the dead: %w", err)
		}
		c.Free()
		sum := []int{1}
		if err := mpi.Allreduce(ctx, w.Comm(), sum, sum, mpi.Sum); err != nil || sum[0] != w.Size() {
			return fmt.Errorf("sum %d, %w", sum[0], err)
		}
		// Nobody accepts there any more.
		if _, err := w.Comm().Connect(ctx, port, 0, mpi.Info{mpi.InfoTimeout: "1"}); !errors.Is(err, mpi.ErrPort) {
			return fmt.Errorf("connected: %w", err)
		}
		return nil
	})
}

func clientDiesRole(ctx context.Context, args []string) error {
	return within(ctx, func(ctx context.Context, w *mpi.World) error {
		port := ""
		for port == "" {
			var err error
			if port, err = w.LookupName(ctx, "the service"); err != nil {
				if !errors.Is(err, mpi.ErrName) || ctx.Err() != nil {
					return err
				}
				<-time.After(5 * time.Millisecond)
			}
		}
		if _, err := w.Comm().Connect(ctx, port, 0, nil); err != nil {
			return err
		}
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	})
}

// A job goes on when another one that it is connected to is killed.
func TestRunSurvivesOtherJob(t *testing.T) {
	t.Parallel()
	for _, tr := range spawnTransports() {
		t.Run("transport="+tr, func(t *testing.T) {
			t.Parallel()
			addr := nameserver(t)
			served := make(chan int, 1)
			go func() {
				_, _, status := clitest.Weft(t, "", "run", "-n", "2", "-x", "WEFT_SILENCE=3s", "-transport", tr, "-nameserver", addr, os.Args[0], "bereft")
				served <- status
			}()
			_, errs, status := clitest.Weft(t, "", "run", "-n", "1", "-transport", tr, "-nameserver", addr, os.Args[0], "client-dies")
			if status == 0 || !strings.Contains(errs, "rank 0 (pid ") {
				t.Errorf("status %d of the client", status)
			}
			if s := <-served; s != 0 {
				t.Errorf("status %d of the server", s)
			}
		})
	}
}

// nameserver starts one and returns the file with its address and secret.
func nameserver(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "names")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "nameserver", "-file", file)
	cmd.Env = append(os.Environ(), clitest.EnvRole+"=weft")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return file
}

// Two jobs of two launchers.
func TestRunsConnect(t *testing.T) {
	for _, tr := range spawnTransports() {
		t.Run("transport="+tr, func(t *testing.T) {
			addr := nameserver(t)
			served := make(chan int, 1)
			go func() {
				_, _, status := clitest.Weft(t, "", "run", "-n", "2", "-transport", tr, "-nameserver", addr, os.Args[0], "server")
				served <- status
			}()
			out, _, status := clitest.Weft(t, "", "run", "-n", "3", "-transport", tr, "-nameserver", addr, os.Args[0], "client")
			if s := <-served; s != 0 || status != 0 || strings.Count(out, "done\n") != 3 {
				t.Errorf("status %d, of the server %d", status, s)
			}
		})
	}
}

func TestNameserverTakesNoStrangers(t *testing.T) {
	text, err := readNameServer(nameserver(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	host, _, _ := strings.Cut(text, "/")
	if err := pmi.NameClient(host+"/guess").Publish(ctx, "name", "port"); err == nil {
		t.Error("a client with the wrong secret was let in")
	}
	c := pmi.NameClient(text)
	if err := c.Publish(ctx, "name", "port"); err != nil {
		t.Error(err)
	}
	if port, err := c.Lookup(ctx, "name"); port != "port" || err != nil {
		t.Errorf("found %q, %v", port, err)
	}
}
