package mpi

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"
)

// A Tracer is a Profiler that writes every call as an event in the JSON array
// format of the Chrome trace viewer, which Perfetto reads too: a process per
// rank, times in microseconds (MPI-4.1, Section 15.2). Events are written one
// per line as calls end, so a file that was cut off can be read as well. Calls
// of several goroutines that overlap are put on several lines by "weft run
// -trace".
type Tracer struct {
	mu    sync.Mutex
	w     *bufio.Writer
	line  []byte
	err   error
	ranks map[int]bool
}

// NewTracer returns a Tracer that writes to w, with a buffer of its own.
func NewTracer(w io.Writer) *Tracer {
	t := &Tracer{w: bufio.NewWriterSize(w, 64<<10), ranks: make(map[int]bool)}
	_, t.err = t.w.WriteString("[\n")
	return t
}

// Record writes a call.
func (t *Tracer) Record(r CallRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return
	}
	b := t.line[:0]
	if !t.ranks[r.Rank] {
		t.ranks[r.Rank] = true
		b = fmt.Appendf(b, `{"name":"process_name","ph":"M","pid":%d,"tid":0,"args":{"name":"rank %[1]d"}},`+"\n", r.Rank)
	}
	b = append(b, `{"name":"`...)
	b = append(b, r.Name...)
	b = append(b, `","cat":"mpi","ph":"X","pid":`...)
	b = strconv.AppendInt(b, int64(r.Rank), 10)
	b = append(b, `,"tid":0,"ts":`...)
	b = appendMicros(b, r.Start.UnixNano())
	b = append(b, `,"dur":`...)
	b = appendMicros(b, int64(r.Duration))
	b = append(b, `,"args":{"bytes":`...)
	b = strconv.AppendInt(b, int64(r.Bytes), 10)
	if r.Comm != nil {
		b = append(b, `,"comm":`...)
		b = appendComm(b, r.Comm)
		if r.Peer != NoPeer {
			b = append(b, `,"peer":`...)
			b = strconv.AppendInt(b, int64(r.Peer), 10)
			b = append(b, `,"tag":`...)
			b = strconv.AppendInt(b, int64(r.Tag), 10)
		}
	}
	if r.Err != nil {
		b = appendJSON(append(b, `,"error":`...), r.Err.Error())
	}
	b = append(b, "}},\n"...)
	_, t.err = t.w.Write(b)
	t.line = b
}

// Flush writes what is buffered. It returns the first error of writing.
func (t *Tracer) Flush() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = t.w.Flush()
	}
	return t.err
}

// Close ends the array and writes what is buffered. It returns the first error
// of writing. It does not close the writer.
func (t *Tracer) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		_, t.err = t.w.WriteString(`{"name":"trace_end","ph":"M","pid":0,"tid":0,"args":{}}` + "\n]\n")
	}
	if err := t.w.Flush(); t.err == nil {
		t.err = err
	}
	err := t.err
	t.err = os.ErrClosed
	return err
}

// appendComm appends the name of c, or what tells it from others.
func appendComm(b []byte, c *Comm) []byte {
	if n := c.Name(); n != "" {
		return appendJSON(b, n)
	}
	b = append(b, '"', '#')
	b = strconv.AppendUint(b, c.id, 36)
	return append(b, '"')
}

func appendJSON(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string never fails
	return append(b, text...)
}

// appendMicros appends nanoseconds as microseconds with three decimals.
func appendMicros(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1000, 10)
	frac := ns % 1000
	return append(b, '.', byte('0'+frac/100), byte('0'+frac/10%10), byte('0'+frac%10))
}

// flushEvery is how often what profilers of environment variables have found is written:
// a rank that is killed loses no more.
const flushEvery = 500 * time.Millisecond

// A tool is a profiler that Init made for an environment variable.
type tool interface {
	// flush writes what the tool has found about the rank so far.
	flush(w *World) error
	// finish writes the rest, and closes the file.
	finish(w *World) error
}

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
	r := ProfileReport{Rank: w.Rank(), Size: w.Size(), Time: time.Since(p.start), Calls: p.p.Calls(), Stats: w.Stats(), Partial: partial}
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
