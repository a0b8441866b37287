package rma

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// keptPosts holds, by origin, the receive of its Complete if a Post has notified the origin and failed then. The origin
// may access the memory, so the next Post stands for that one: it notifies the origin no second time.
type keptPosts map[int]Request

// Post opens the caller's memory to the given origins. It does not block.
func (w *Window) Post(origins []int, a Assert) error {
	if err := a.Check(AssertsPost); err != nil {
		return err
	}
	if err := w.checkGroup(origins); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.posted != nil {
		return fmt.Errorf("%w: Post before Wait", mpierr.ErrEpoch)
	}
	for _, o := range origins { // before the first one is notified
		if err := w.c.Failure(o); err != nil {
			return err
		}
	}
	w.Sync()
	posted := make([]Request, 0, len(origins))
	for _, o := range origins {
		r, err := w.postTo(o, a)
		if err != nil {
			w.keepPosts(origins, posted, a)
			return err
		}
		posted = append(posted, r)
	}
	if a&AssertNoCheck == 0 && len(w.kept) > 0 {
		for _, o := range origins {
			delete(w.kept, o)
		}
	}
	w.posted = posted
	return nil
}

// postTo is Post for one origin. It returns the receive of the origin's Complete. w.mu is held.
func (w *Window) postTo(origin int, a Assert) (Request, error) {
	kept := w.kept[origin]
	if kept != nil && a&AssertNoCheck == 0 {
		return kept, nil
	}
	r, err := w.c.Irecv(nil, origin, tagComplete)
	switch {
	case err != nil:
		return nil, err
	case a&AssertNoCheck == 0:
		s, err := w.c.Isend(nil, origin, tagPost, false)
		if err != nil {
			r.Cancel()
			return nil, err
		}
		s.Free()
	case kept != nil: // the origin does not use up the kept Post now: its next Complete is for this one
		r, w.kept[origin] = kept, r
	}
	return r, nil
}

// keepPosts ends a Post that has failed after the first origins, whose Completes are received by posted. w.mu is held.
func (w *Window) keepPosts(origins []int, posted []Request, a Assert) {
	for i, r := range posted {
		switch {
		case a&AssertNoCheck != 0: // they were not notified
			r.Cancel()
		case w.kept == nil:
			w.kept = make(keptPosts)
			fallthrough
		default:
			w.kept[origins[i]] = r
		}
	}
}

// Start blocks until all targets have called Post. If that fails the window is not started.
func (w *Window) Start(ctx context.Context, targets []int, a Assert) error {
	if err := a.Check(AssertsStart); err != nil {
		return err
	}
	if err := w.checkGroup(targets); err != nil {
		return err
	}
	w.mu.Lock()
	busy := w.started != nil
	if !busy {
		w.started = append([]int{}, targets...)
	}
	w.mu.Unlock()
	if busy {
		return fmt.Errorf("%w: Start before Complete", mpierr.ErrEpoch)
	}
	if a&AssertNoCheck != 0 {
		return nil
	}
	for i, t := range targets {
		if w.to[t].takePost() {
			continue
		}
		if _, err := w.c.Recv(ctx, nil, t, tagPost); err != nil {
			// The Posts of the targets before t are received: the next Start uses them.
			for _, t := range targets[:i] {
				w.to[t].keepPost()
			}
			w.mu.Lock()
			w.started = nil
			w.mu.Unlock()
			return err
		}
	}
	return nil
}

// Complete completes the operations since Start and notifies the targets. If ctx ends first, the window stays
// started for the targets that have not been notified.
func (w *Window) Complete(ctx context.Context) error {
	w.mu.Lock()
	targets := w.started
	w.started = nil
	w.mu.Unlock()
	if targets == nil {
		return fmt.Errorf("%w: Complete without Start", mpierr.ErrEpoch)
	}
	var errs []error
	for _, t := range targets {
		_ = w.to[t].startFlush(ctx, w) // an error: flush repeats it
	}
	for i, t := range targets {
		err := w.to[t].flush(ctx, w)
		if err == nil || ctx.Err() == nil {
			// The target is notified even after an error, because it waits.
			err = errors.Join(err, w.c.Send(ctx, nil, t, tagComplete, false))
		}
		errs = append(errs, err)
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			w.mu.Lock()
			w.started = targets[i:]
			w.mu.Unlock()
			break
		}
	}
	return errors.Join(errs...)
}

// Wait blocks until all origins of the last Post have called Complete or have failed. If ctx ends first, the memory is
// still open.
func (w *Window) Wait(ctx context.Context) error {
	w.mu.Lock()
	posted := w.posted
	w.mu.Unlock()
	if posted == nil {
		return fmt.Errorf("%w: Wait without Post", mpierr.ErrEpoch)
	}
	var errs []error
	for _, r := range posted {
		_, err := r.Wait(ctx)
		if err != nil && ctx.Err() != nil && !r.Done() {
			return err
		}
		if err != nil { // the other origins may still write
			errs = append(errs, err)
		}
	}
	w.endPosted()
	return errors.Join(errs...)
}

// Test reports whether Wait would return at once, and if so does what it does.
func (w *Window) Test() (bool, error) {
	w.mu.Lock()
	posted := w.posted
	w.mu.Unlock()
	if posted == nil {
		return false, fmt.Errorf("%w: Test without Post", mpierr.ErrEpoch)
	}
	var errs []error
	for _, r := range posted {
		done, err := r.Test()
		if !done {
			return false, nil
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	w.endPosted()
	return true, errors.Join(errs...)
}

func (w *Window) endPosted() {
	w.mu.Lock()
	for _, r := range w.posted {
		r.Free()
	}
	w.posted = nil
	w.mu.Unlock()
	w.Sync()
}

// checkGroup checks the ranks of Post or Start.
func (w *Window) checkGroup(ranks []int) error {
	if err := w.Usable(); err != nil {
		return err
	}
	seen := make(map[int]bool, len(ranks))
	for _, r := range ranks {
		if err := w.checkTarget(r); err != nil {
			return err
		}
		if seen[r] {
			return fmt.Errorf("%w: %d given twice", mpierr.ErrRank, r)
		}
		seen[r] = true
	}
	return nil
}
