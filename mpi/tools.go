package mpi

import (
	"errors"
	"time"
)

// A tool is a profiler that Init made for an environment variable.
type tool interface {
	// flush writes what the tool has found about the rank so far.
	flush(w *World) error
	// finish writes the rest, and closes the file.
	finish(w *World) error
}

// flushEvery is how often what profilers of environment variables have found is written:
// a rank that is killed loses no more.
const flushEvery = 500 * time.Millisecond

// runTools has the profilers of environment variables write as they go, until
// closeTools is called.
func (w *World) runTools() {
	if len(w.opts.tools) == 0 {
		return
	}
	w.toolsOver = make(chan struct{})
	go func() {
		tick := time.NewTicker(flushEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.flushTools()
			case <-w.toolsOver:
				return
			}
		}
	}()
}

// flushTools writes what profilers of environment variables have found. Errors are
// told by closeTools, which finds them again.
func (w *World) flushTools() {
	for _, t := range w.opts.tools {
		_ = t.flush(w)
	}
}

// closeTools ends the profilers of environment variables. Finalize calls it once.
func (w *World) closeTools() error {
	if w.toolsOver != nil {
		close(w.toolsOver)
	}
	var errs []error
	for _, t := range w.opts.tools {
		errs = append(errs, t.finish(w))
	}
	return errors.Join(errs...)
}
