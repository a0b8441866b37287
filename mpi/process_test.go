package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/pmi"
)

func init() {
	testJobs["init twice"] = initTwiceJob
	testJobs["init after session"] = initAfterSessionJob
	testJobs["init retried"] = initRetriedJob
	testJobs["child"] = childJob
}

// want returns an error unless err is the one wanted.
func want(what string, err, wanted error) error {
	if !errors.Is(err, wanted) {
		return fmt.Errorf("%s: %v, want %v", what, err, wanted)
	}
	return nil
}

// sumOver returns an error unless c connects n ranks.
func sumOver(ctx context.Context, c *Comm, n int) error {
	sum := make([]int, 1)
	if err := Allreduce(ctx, c, []int{1}, sum, Sum); err != nil {
		return err
	}
	if sum[0] != n {
		return fmt.Errorf("%d ranks, want %d", sum[0], n)
	}
	return nil
}

// initTwiceJob calls Init again at each moment, and uses a session beside the World.
func initTwiceJob() error {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	if Initialized() || Finalized() {
		return fmt.Errorf("before Init: initialized %t, finalized %t", Initialized(), Finalized())
	}
	w, err := Init(ctx)
	if err != nil {
		return err
	}
	n := w.Size()
	_, err = Init(ctx)
	if err := want("second Init", err, ErrInitialized); err != nil {
		return err
	}
	if !Initialized() || Finalized() {
		return fmt.Errorf("after Init: initialized %t, finalized %t", Initialized(), Finalized())
	}
	s, err := SessionInit(ctx, nil)
	if err != nil {
		return fmt.Errorf("session beside the World: %w", err)
	}
	g, err := s.Group(PsetWorld)
	if err != nil {
		return err
	}
	c, err := s.CommFromGroup(ctx, g, "library", nil)
	if err != nil {
		return err
	}
	if err := errors.Join(sumOver(ctx, c, n), s.Finalize(ctx), sumOver(ctx, w.Comm(), n)); err != nil {
		return err
	}
	open, err := SessionInit(ctx, nil) // ends with the World
	if err != nil {
		return err
	}
	for _, name := range []string{pmi.EnvFD, pmi.EnvPort, pmi.EnvToken, "WEFT_TRACE", "WEFT_PROFILE", "WEFT_CAPTURE"} {
		if v := os.Getenv(name); v != "" {
			return fmt.Errorf("a child would inherit %s=%s", name, v)
		}
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), jobEnv+"=child")
	if out, err := child.CombinedOutput(); err != nil || string(out) != "a job of 1\n" {
		return fmt.Errorf("a child process: %w, %s", err, out)
	}
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	if err := open.Finalize(ctx); err != nil {
		return err
	}
	_, err = Init(ctx)
	_, err2 := SessionInit(ctx, nil)
	if !Initialized() || !Finalized() {
		return fmt.Errorf("after Finalize: initialized %t, finalized %t", Initialized(), Finalized())
	}
	return errors.Join(want("Init after Finalize", err, ErrFinalized), want("SessionInit after Finalize", err2, ErrFinalized))
}

// initAfterSessionJob has the program use the World that a library's session made.
func initAfterSessionJob() error {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	s, err := SessionInit(ctx, nil)
	if err != nil {
		return err
	}
	if Initialized() {
		return errors.New("initialized by a session")
	}
	w, err := Init(ctx)
	if err != nil {
		return err
	}
	_, err = Init(ctx)
	return errors.Join(want("second Init", err, ErrInitialized), s.Finalize(ctx), sumOver(ctx, w.Comm(), w.Size()), w.Finalize(ctx))
}

// initRetriedJob gives Init a bad option first, which costs nothing. A context that ends
// while the process joins costs the connection to the launcher.
func initRetriedJob() error {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	_, err := Init(ctx, WithTransport("pigeon"))
	if err := want("Init with a bad option", err, ErrOption); err != nil {
		return err
	}
	if os.Getenv("WEFT_TEST_SPEND") != "" {
		over, cancel := context.WithCancel(ctx)
		whileJoining := func(o *options) error {
			o.HostOf = func(int) string { cancel(); return "here" }
			return nil
		}
		_, err = Init(over, whileJoining)
		if err := want("Init that is given up", err, context.Canceled); err != nil {
			return err
		}
		_, again := Init(ctx)
		return want("Init after one that failed", again, context.Canceled)
	}
	w, err := Init(ctx)
	if err != nil {
		return err
	}
	return errors.Join(sumOver(ctx, w.Comm(), w.Size()), w.Finalize(ctx))
}

// childJob is a process that a rank has started.
func childJob() error {
	ctx := context.Background()
	w, err := Init(ctx)
	if err != nil {
		return err
	}
	fmt.Println("a job of", w.Size())
	return w.Finalize(ctx)
}

func TestInitOnce(t *testing.T) {
	dir := t.TempDir()
	files := []string{"WEFT_TRACE=" + filepath.Join(dir, "trace"), "WEFT_PROFILE=" + filepath.Join(dir, "profile")}
	for _, name := range []string{"init twice", "init after session", "init retried"} {
		t.Run(name, func(t *testing.T) {
			out, errs := runJob(t, name, 2, files...)
			if err := errors.Join(errs...); err != nil {
				t.Fatalf("%v\n%s", err, strings.Join(out, ""))
			}
			// A child process, or a second Init, would have made it anew.
			if b, err := os.ReadFile(filepath.Join(dir, "trace")); err != nil || !strings.Contains(string(b), "Allreduce") {
				t.Errorf("trace of %d bytes, %v; want one with the calls", len(b), err)
			}
		})
	}
}

// MPI is used once by a process that is alone, too.
func TestInitOnceAlone(t *testing.T) {
	for _, tt := range []struct{ name, env string }{{"init twice", ""}, {"init retried", ""}} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), jobEnv+"="+tt.name, pmi.EnvFD+"=", pmi.EnvPort+"=", tt.env)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", tt.name, err, out)
		}
	}
}

func TestInitSpent(t *testing.T) {
	out, errs := runJob(t, "init retried", 1, "WEFT_TEST_SPEND=1")
	if err := errors.Join(errs...); err != nil {
		t.Errorf("%v\n%s", err, strings.Join(out, ""))
	}
}
