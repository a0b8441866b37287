package sctp

import (
	"context"
	"errors"
	"log/slog"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/wire"
)

// logged reports whether notifications of a kind go to TransportConfig.Log: changes of state and
// of paths, but nothing that a peer can cause at any rate without cost, such as ERROR chunks.
func (k NotificationKind) logged() bool {
	switch k {
	case NotifyUp, NotifyShutdown, NotifyDown, NotifyRestart,
		NotifyPathUp, NotifyPathDown, NotifyPathFailed, NotifyPathConfirmed,
		NotifyPathAdded, NotifyPathRemoved, NotifyPrimary:
		return true
	}
	return false
}

// level returns how much a notification matters to an operator.
func (n *Notification) level() slog.Level {
	switch n.Kind {
	case NotifyPathDown, NotifyRestart:
		return slog.LevelWarn
	case NotifyDown:
		if n.Err != nil {
			return slog.LevelWarn
		}
	case NotifyPathUp, NotifyPathFailed, NotifyPathAdded, NotifyPathRemoved, NotifyPrimary:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// note is what the goroutine that runs callbacks has to tell: a notification, or a change of
// state for the log.
type note struct {
	Notification
	change *core.Transition
}

// logState logs a change of the association's state (RFC 9260, Section 4). No lock is held.
func (a *Association) logState(c *core.Transition) {
	log, level := a.t.cfg.Log, slog.LevelDebug
	if !log.Enabled(context.Background(), level) {
		return
	}
	log.LogAttrs(context.Background(), level, "sctp: state", slog.String("local", a.ep.line()),
		slog.String("peer", a.RemoteAddr().String()), slog.String("from", c.From.String()),
		slog.String("to", c.To.String()), slog.String("reason", c.Reason))
}

// tell logs a notification and makes its upcall.
func (a *Association) tell(n Notification) {
	if n.Kind.logged() {
		a.log(n.level(), n.Kind.String(), &n)
	}
	if f := a.ep.cfg.OnNotify; f != nil {
		f(a, n)
	}
}

// log writes a line about the association, with the path and the error of n. The error of an
// association that was aborted comes with its cause (RFC 9260, Section 3.3.10). No lock is held.
func (a *Association) log(level slog.Level, what string, n *Notification) {
	log := a.t.cfg.Log
	if log == nil || !log.Enabled(context.Background(), level) {
		return
	}
	attrs := []slog.Attr{slog.String("local", a.ep.line()), slog.String("peer", a.RemoteAddr().String())}
	if n.Addr.IsValid() {
		attrs = append(attrs, slog.String("path", n.Addr.String()))
	}
	if n.Err != nil {
		attrs = append(attrs, slog.String("error", n.Err.Error()))
	}
	if ab := (*AbortError)(nil); errors.As(n.Err, &ab) {
		attrs = append(attrs, slog.String("cause", wire.CauseCode(ab.Cause).String()), slog.Bool("by_peer", ab.ByPeer))
	}
	log.LogAttrs(context.Background(), level, "sctp: "+what, attrs...)
}
