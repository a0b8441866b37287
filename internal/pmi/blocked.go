package pmi

import (
	"context"
	"strings"
)

// Commands beyond PMI-1, between ranks that have called Client.Watch and `weft run`.
const (
	cmdBlocked = "weft_blocked" // the launcher asks a rank what it waits for
	cmdWaits   = "weft_waits"   // its answer
)

// maxWaits bounds what a rank says it waits for, in bytes.
const maxWaits = MaxLine / 2

// Blocked asks a rank what it waits for, and to write the stacks of its goroutines to a
// file, unless its name is empty. It blocks until the rank answers or ctx is done; ok
// tells that it has. Ranks that have not called Client.Watch do not answer.
func (s *Server) Blocked(ctx context.Context, rank int, stacksTo string) (text string, ok bool) {
	answer := make(chan string, 1)
	s.mu.Lock()
	w := s.watches[rank]
	if w != nil {
		s.asked[rank] = answer
	}
	s.mu.Unlock()
	if w == nil {
		return "", false
	}
	sent := make(chan error, 1)
	go func() { sent <- w.line("cmd=" + cmdBlocked + " " + textKey + "=" + oneLine(stacksTo)) }() // the rank may not read
	for {
		select {
		case text = <-answer:
			return text, true
		case err := <-sent:
			if err != nil {
				return "", false
			}
			sent = nil
		case <-ctx.Done():
			return "", false
		}
	}
}

// waits passes on what a rank answers.
func (s *Server) waits(rank int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.asked[rank]; answer != nil {
		delete(s.asked, rank)
		answer <- text[:min(len(text), maxWaits)]
	}
}

// tellBlocked answers the launcher.
func (c *Client) tellBlocked(stacksTo string) {
	text := "does not say"
	if c.OnBlocked != nil {
		text = c.OnBlocked(stacksTo)
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxWaits)], "")
	// Lines are written in one piece; one of a call under way may come before or after.
	_, _ = c.conn.Write([]byte("cmd=" + cmdWaits + " " + textKey + "=" + oneLine(text) + "\n"))
}
