package mpi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
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
	b = strconv.AppendUint(b, c.comm.ID, 36)
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
