package sctp

import (
	"context"
	"log/slog"
	"strings"

	"github.com/pion/logging"
)

// logHandler passes the lines of weft's log to a logger of pion's.
type logHandler struct {
	to     logging.LeveledLogger
	name   string
	prefix string // of attributes: groups
	attrs  string // " key=value" each
}

// newLog returns a log that writes to l.
func newLog(l logging.LeveledLogger, name string) *slog.Logger {
	return slog.New(&logHandler{to: l, name: name})
}

// Enabled implements slog.Handler: the logger decides.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString("[" + h.name + "] " + r.Message + h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(" " + h.prefix + a.String())
		return true
	})
	line := b.String()
	switch {
	case r.Level >= slog.LevelError:
		h.to.Error(line)
	case r.Level >= slog.LevelWarn:
		// An end by the peer's ABORT is how peers of WebRTC end an association every day.
		h.to.Info(line)
	default:
		h.to.Debug(line)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := *h
	for _, a := range attrs {
		n.attrs += " " + h.prefix + a.String()
	}
	return &n
}

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	n := *h
	if name != "" {
		n.prefix += name + "."
	}
	return &n
}
