package relay

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// maxNotes bounds the lines that wait for the handler; further ones are dropped.
const maxNotes = 256

// notebook has lines for the log, which are written with no lock held: by the timer, and at the end.
type notebook struct {
	log *slog.Logger

	mu    sync.Mutex
	lines []slog.Record
}

// note adds a line. It may be called with locks held.
func (n *notebook) note(level slog.Level, msg string, attrs ...slog.Attr) {
	if n.log == nil || !n.log.Enabled(context.Background(), level) {
		return
	}
	r := slog.NewRecord(time.Now(), level, msg, 0)
	r.AddAttrs(attrs...)
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.lines) < maxNotes {
		n.lines = append(n.lines, r)
	}
}

// write passes the lines to the handler.
func (n *notebook) write() {
	if n.log == nil {
		return
	}
	n.mu.Lock()
	lines := n.lines
	n.lines = nil
	n.mu.Unlock()
	for _, r := range lines {
		_ = n.log.Handler().Handle(context.Background(), r)
	}
}
