package pmi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Commands beyond PMI-1, between ranks and `weft run` only.
const (
	cmdWatch  = "weft_watch"  // a rank wants to be told of failures
	cmdFailed = "weft_failed" // it is told of one, at any time
)

// EnvWatch tells a rank that its launcher knows the commands beyond PMI-1. Its
// value is the name of the job's key-value space, so that a program that
// another launcher started from within a job does not take it for its own.
const EnvWatch = "WEFT_PMI_JOB"

// replies serializes what is written to one rank.
type replies struct {
	mu sync.Mutex
	w  io.Writer
}

func (r *replies) line(s string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := io.WriteString(r.w, s+"\n")
	return err
}

// Name returns the name of the job's key-value space.
func (s *Server) Name() string { return s.name }

// watch tells a rank of the failures so far, and of those to come.
func (s *Server) watch(rank int, w *replies) {
	s.mu.Lock()
	s.watches[rank] = w
	var lines []string
	for i, why := range s.dead {
		if why != "" {
			lines = append(lines, failedLine(i, why))
		}
	}
	lines = append(lines, s.others...)
	s.mu.Unlock()
	for _, l := range lines {
		_ = w.line(l) // serve notices when the rank is gone
	}
}

func (s *Server) unwatch(rank int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, rank)
}

// Fail notes that a rank is dead, and why: the others that have called
// Client.Watch are told, and barriers no longer wait for it. It may block on
// ranks that do not read.
func (s *Server) Fail(rank int, why string) {
	if why = oneLine(why); why == "" {
		why = "unknown"
	}
	s.mu.Lock()
	if s.dead[rank] != "" {
		s.mu.Unlock()
		return
	}
	s.dead[rank] = why
	s.inside[rank] = false
	s.openGate()
	to := make([]*replies, 0, len(s.watches))
	for r, w := range s.watches {
		if r != rank {
			to = append(to, w)
		}
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, w := range to {
		wg.Go(func() { _ = w.line(failedLine(rank, why)) })
	}
	wg.Wait()
}

func failedLine(rank int, why string) string {
	return fmt.Sprintf("cmd=%s rank=%d %s=%s", cmdFailed, rank, textKey, why)
}

// errLost is what a Watch ends with when the launcher is gone.
var errLost = errors.New("pmi: the launcher is gone")

// CanWatch reports whether the launcher is one that tells of failures.
func (c *Client) CanWatch() bool { return c.extended }

// Watch makes the launcher tell of ranks that fail: failed is called with the
// rank and the reason, lost once if the connection ends before Finalize. Both
// are called one at a time on a goroutine of the client and must not call its
// methods. The launcher must be `weft run`, see CanWatch. Only one call may be
// made.
func (c *Client) Watch(ctx context.Context, failed func(rank int, why string), lost func(error)) error {
	if _, err := c.call(ctx, "cmd="+cmdWatch, cmdWatch); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies = make(chan message, 1)
	c.closed = make(chan struct{})
	go c.read(c.closed, failed, lost)
	return nil
}

// read takes in all lines once the launcher may send some unasked.
func (c *Client) read(closed <-chan struct{}, failed func(int, string), lost func(error)) {
	defer close(c.replies)
	for {
		m, err := readMessage(c.r)
		if err != nil {
			select {
			case <-closed:
			default:
				lost(fmt.Errorf("%w: %w", errLost, err))
			}
			return
		}
		switch m.cmd {
		case cmdFailed:
			rank, bad := m.number("rank")
			if other := m.args["weft_job"]; other != "" && other != c.kvs {
				if bad == nil && c.OnOther != nil {
					c.OnOther(other, rank, m.args[textKey])
				}
				continue
			}
			if bad == nil && rank < c.Size && rank != c.Rank {
				failed(rank, m.args[textKey])
			}
			continue
		case cmdBlocked:
			go c.tellBlocked(m.args[textKey])
			continue
		case "finalize_ack":
			lost = func(error) {} // what follows is the end
		}
		select {
		case c.replies <- m:
		default: // the call has been given up, and with it the connection
		}
	}
}
