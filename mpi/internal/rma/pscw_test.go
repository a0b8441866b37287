package rma

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

var errGone = errors.New("this rank is gone")

// TestPostThatFailsHalfway has Post notify an origin and fail for the next one. The first origin may have its epoch:
// the next Post stands for it, and each Wait is for the Complete of its own epoch.
func TestPostThatFailsHalfway(t *testing.T) {
	for _, early := range []bool{true, false} {
		t.Run(fmt.Sprint("complete before the second Post=", early), func(t *testing.T) {
			c := &testComm{size: 3, refuse: map[int]error{2: errGone}}
			w := newTestWindow(c, nil)
			for range 2 { // the second one finds the first one's
				if err := w.Post([]int{1, 2}, 0); !errors.Is(err, errGone) {
					t.Fatalf("Post to the dead: %v", err)
				}
			}
			if early {
				c.tell(1, tagComplete)
			}
			for epoch := 1; epoch <= 3; epoch++ {
				if err := w.Post([]int{1}, 0); err != nil {
					t.Fatal(err)
				}
				if n := c.sent(1, tagPost); n != epoch {
					t.Fatalf("the origin may start %d epochs, want %d", n, epoch)
				}
				if !early || epoch > 1 {
					if done, err := w.Test(); done || err != nil {
						t.Fatalf("epoch %d is over before Complete: %v", epoch, err)
					}
					c.tell(1, tagComplete)
				}
				if err := w.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if len(w.kept) > 0 {
				t.Errorf("kept: %v", w.kept)
			}
		})
	}
}

// TestPostUncheckedAfterFailure has epochs with AssertNoCheck between a Post that fails halfway and the one that stands
// for it: the origin does not use up the notice meanwhile.
func TestPostUncheckedAfterFailure(t *testing.T) {
	c := &testComm{size: 3, refuse: map[int]error{2: errGone}}
	w := newTestWindow(c, nil)
	if err := w.Post([]int{1, 2}, 0); !errors.Is(err, errGone) {
		t.Fatalf("Post to the dead: %v", err)
	}
	for _, a := range []Assert{AssertNoCheck, AssertNoCheck, 0} {
		if err := w.Post([]int{1}, a); err != nil {
			t.Fatal(err)
		}
		if n := c.sent(1, tagPost); n != 1 {
			t.Fatalf("the origin may start %d epochs, want 1", n)
		}
		if done, err := w.Test(); done || err != nil {
			t.Fatalf("the epoch is over before Complete: %v", err)
		}
		c.tell(1, tagComplete)
		if err := w.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPostToTheDead notifies no origin if one is known to have failed.
func TestPostToTheDead(t *testing.T) {
	c := &testComm{size: 3, failed: map[int]error{2: errGone}}
	w := newTestWindow(c, nil)
	if err := w.Post([]int{1, 2}, 0); !errors.Is(err, errGone) {
		t.Fatalf("Post to the dead: %v", err)
	}
	if n := c.sent(1, tagPost); n != 0 {
		t.Errorf("%d origins were notified", n)
	}
}

// TestWaitOutlivesAnOrigin has an origin fail while the memory is open: Wait and Test go on until the others have
// called Complete, and the memory is closed then.
func TestWaitOutlivesAnOrigin(t *testing.T) {
	end := map[string]func(w *Window) error{
		"Wait": func(w *Window) error { return w.Wait(t.Context()) },
		"Test": func(w *Window) error {
			done, err := w.Test()
			if !done {
				return errors.New("not over")
			}
			return err
		},
	}
	for name, end := range end {
		t.Run(name, func(t *testing.T) {
			c := &testComm{size: 4}
			w := newTestWindow(c, nil)
			if err := w.Post([]int{1, 2, 3}, 0); err != nil {
				t.Fatal(err)
			}
			c.lose(1, errGone)
			c.tell(3, tagComplete)
			if done, err := w.Test(); done || err != nil {
				t.Fatalf("%v, %v before an origin has called Complete", done, err)
			}
			over, cancel := context.WithCancel(t.Context())
			cancel()
			if err := w.Wait(over); err != context.Canceled {
				t.Fatalf("Wait: %v", err)
			}
			if err := w.Post([]int{2}, 0); !errors.Is(err, mpierr.ErrEpoch) {
				t.Fatalf("Post before Wait: %v", err)
			}
			c.tell(2, tagComplete)
			if err := end(w); !errors.Is(err, errGone) {
				t.Fatalf("the epoch ends with %v", err)
			}
			if err := w.Post([]int{2, 3}, 0); err != nil {
				t.Fatalf("Post after Wait: %v", err)
			}
		})
	}
}
