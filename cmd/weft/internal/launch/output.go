package launch

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// maxLine is the longest line of output that is kept together before its end
// has come.
const maxLine = 64 << 10

// lineWriter lets several ranks write whole lines to one stream.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) write(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w.Write(b)
}

// prefixer puts a rank before each line that is written to it.
type prefixer struct {
	to      *lineWriter
	rank    string
	partial []byte // begun line, without prefix
	out     []byte
}

// Write never fails: a broken output must not kill the rank.
func (p *prefixer) Write(b []byte) (int, error) {
	n := len(b)
	p.out = p.out[:0]
	for {
		line, rest, ok := bytes.Cut(b, []byte{'\n'})
		if !ok {
			break
		}
		p.line(line)
		b = rest
	}
	if p.partial = append(p.partial, b...); len(p.partial) >= maxLine {
		p.line(nil)
	}
	if len(p.out) > 0 {
		p.to.write(p.out)
	}
	return n, nil
}

// line finishes the begun line with its end.
func (p *prefixer) line(end []byte) {
	p.out = fmt.Appendf(p.out, "[%s] %s%s\n", p.rank, p.partial, end)
	p.partial = p.partial[:0]
}

// flush writes a last line that has no newline.
func (p *prefixer) flush() {
	if len(p.partial) > 0 {
		p.out = p.out[:0]
		p.line(nil)
		p.to.write(p.out)
	}
}
