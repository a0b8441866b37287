package mpi

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// toolsFromEnv reads the variables that ask for profilers.
func (o *options) toolsFromEnv(getenv func(string) string) error {
	for _, v := range []struct {
		name string
		make func(f *os.File) (tool, Profiler, error)
	}{{"WEFT_PROFILE", newProfileFile}, {"WEFT_TRACE", newTraceFile}} {
		name := getenv(v.name)
		if name == "" {
			continue
		}
		f, err := os.Create(name)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrOption, v.name, err)
		}
		o.toolFiles = append(o.toolFiles, f)
		t, p, err := v.make(f)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrOption, v.name, err)
		}
		o.tools = append(o.tools, t)
		o.addProfiler(p)
	}
	return nil
}

// dropTools closes the files of profilers of a World that did not come to be.
func (o *options) dropTools() error {
	var errs []error
	for _, f := range o.toolFiles {
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// forgetFiles removes from the environment the names of files that are this rank's: a
// child process that uses this package would write into them, too.
func forgetFiles() {
	for _, name := range []string{"WEFT_CAPTURE", "WEFT_PROFILE", "WEFT_TRACE"} {
		_ = os.Unsetenv(name)
	}
}

type traceFile struct {
	t *Tracer
	f *os.File
}

func newTraceFile(f *os.File) (tool, Profiler, error) {
	t := NewTracer(f)
	return &traceFile{t, f}, t, nil
}

func (t *traceFile) flush(*World) error { return t.t.Flush() }

func (t *traceFile) finish(*World) error { return errors.Join(t.t.Close(), t.f.Close()) }

type profileFile struct {
	p     Profile
	name  string
	start time.Time

	mu   sync.Mutex // guards what follows, and writing
	over bool
}

func newProfileFile(f *os.File) (tool, Profiler, error) {
	p := &profileFile{name: f.Name(), start: time.Now()}
	return p, &p.p, f.Close() // it can be written, and is replaced
}

func (p *profileFile) flush(w *World) error { return p.write(w, true) }

func (p *profileFile) finish(w *World) error { return p.write(w, false) }

// write replaces the file by one with a new report, so that it is whole at any time.
func (p *profileFile) write(w *World, partial bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil
	}
	p.over = !partial
	r := ProfileReport{Rank: w.Rank(), Size: w.Size(), Time: time.Since(p.start), Calls: p.p.Calls(), Stats: w.Stats(),
		Partial: partial}
	text, err := json.Marshal(&r)
	if err != nil {
		return err
	}
	next := fmt.Sprintf("%s.%d.new", p.name, os.Getpid()) // ranks may have been given one file
	if err := os.WriteFile(next, append(text, '\n'), 0o666); err != nil {
		return err
	}
	return os.Rename(next, p.name)
}
