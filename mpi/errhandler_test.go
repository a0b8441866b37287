package mpi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

func TestErrorHandler(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c, err := w.Comm().Dup(ctx)
		if err != nil {
			return err
		}
		var got []error
		ours := errors.New("ours")
		c.SetErrorHandler(func(on *Comm, err error) error {
			if on == c {
				got = append(got, err)
			}
			return fmt.Errorf("%w: %w", ours, err)
		})
		want := func(what string, err, class error) error {
			if !errors.Is(err, ours) || !errors.Is(err, class) {
				return fmt.Errorf("%s = %w", what, err)
			}
			if len(got) != 1 || !errors.Is(got[0], class) {
				return fmt.Errorf("%s: handler got %v", what, got)
			}
			got = nil
			return nil
		}
		other := 1 - w.Rank()
		r, err := Irecv(c, make([]int, 1), other, 0)
		if err != nil {
			return err
		}
		if err := Send(ctx, c, []int{1, 2}, other, 0); err != nil {
			return err
		}
		_, err = r.Wait(ctx)
		if err := want("truncated", err, ErrTruncate); err != nil {
			return err
		}
		for _, immediate := range []bool{false, true} {
			if err := Send(ctx, c, []int{1, 2}, other, 1); err != nil {
				return err
			}
			m, err := Mprobe(ctx, c, other, 1)
			if err != nil {
				return err
			}
			if immediate {
				if r, err = Imrecv(m, make([]int, 1)); err != nil {
					return err
				}
				_, err = r.Wait(ctx)
			} else {
				_, err = Mrecv(ctx, m, make([]int, 1))
			}
			if err := want("truncated after a probe", err, ErrTruncate); err != nil {
				return err
			}
		}
		if err := want("rank", Send(ctx, c, []int{1}, 2, 0), ErrRank); err != nil {
			return err
		}
		if err := want("tag", second(Irecv(c, []int{1}, 0, -5)), ErrTag); err != nil {
			return err
		}
		if err := want("root", Bcast(ctx, c, []int{1}, 7), ErrRoot); err != nil {
			return err
		}
		if err := want("called", c.CallErrorHandler(errTestOver), errTestOver); err != nil {
			return err
		}
		r, err = Ibcast(c, make([]int, 1+w.Rank()), 0)
		if err != nil {
			return err
		}
		_, err = r.Wait(ctx)
		if w.Rank() == 1 {
			if err := want("nonblocking", err, ErrCount); err != nil {
				return err
			}
		}
		// What is made from c has its handler; the world has none.
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if err := Send(ctx, d, []int{1}, 2, 0); !errors.Is(err, ours) || w.Comm().ErrorHandler() != nil || d.ErrorHandler() == nil {
			return fmt.Errorf("on a duplicate: %w", err)
		}
		c.SetErrorHandler(nil)
		if err := Send(ctx, c, []int{1}, 2, 0); errors.Is(err, ours) || !errors.Is(err, ErrRank) {
			return fmt.Errorf("without a handler: %w", err)
		}
		return nil
	})
}

func TestAbortOnError(t *testing.T) {
	err := RunLocal(context.Background(), 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if w.Rank() == 0 {
			c.SetErrorHandler(AbortOnError)
			return Send(ctx, c, []int{1}, 5, 0)
		}
		_, err := Recv(ctx, c, []int{1}, 0, 0) // never sent
		return err
	})
	if !errors.Is(err, ErrRank) {
		t.Errorf("job = %v", err)
	}
}

func TestErrorClasses(t *testing.T) {
	full := AddErrorClass("disk full")
	quota := AddErrorCode(full, "no room for the checkpoint")
	for _, tt := range []struct {
		err  error
		want Class
	}{
		{nil, ClassSuccess},
		{fmt.Errorf("sending: %w", ErrRank), ClassRank},
		{&RankError{Rank: 3}, ClassProcFailed},
		{fmt.Errorf("wrapped: %w", quota), full},
		{AddErrorCode(ClassCount, "odd"), ClassCount},
		{errors.New("else"), ClassUnknown},
		{context.DeadlineExceeded, ClassPending},
		{&fs.PathError{Op: "open", Err: fs.ErrNotExist}, ClassNoSuchFile},
		{&fs.PathError{Op: "open", Err: errors.New("strange")}, ClassIO},
		{fmt.Errorf("%w: %w", ErrProcFailedPending, &RankError{Rank: 1}), ClassProcFailedPending},
	} {
		if got := ErrorClass(tt.err); got != tt.want {
			t.Errorf("class of %v = %v, want %v", tt.err, got, tt.want)
		}
	}
	// Every error of the package has a class, since it is one of mpierr.
	files, _ := filepath.Glob("*.go")
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^(?:var|\t) ?(Err[A-Z]\w*) *= ((?:errors|mpierr)\..*)`).FindAllSubmatch(src, -1) {
			if string(m[2]) != "mpierr."+string(m[1]) {
				t.Errorf("%s of %s is %s", m[1], name, m[2])
			}
		}
	}
	if full.String() != "disk full" || ClassTag.String() != "tag" || Class(-1).String() != "error class -1" {
		t.Errorf("names %v, %v, %v", full, ClassTag, Class(-1))
	}
	if !RemoveErrorClass(full) || RemoveErrorClass(full) || RemoveErrorClass(ClassTag) {
		t.Error("removing classes")
	}
	if next := AddErrorClass("again"); next == full || full.String() == "disk full" {
		t.Errorf("class %d after %d", next, full)
	}
}
