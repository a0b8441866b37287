package sctp

import (
	"context"
	"log/slog"
)

// logged reports whether TransportConfig.Log is told of such a notification.
func (k NotificationKind) logged() bool {
	switch k {
	case NotifyUp, NotifyDown, NotifyRestart, NotifyPathUp, NotifyPathDown, NotifyPathFailed:
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
	case NotifyPathUp, NotifyPathFailed:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// tell makes the upcalls of a notification.
func (a *Association) tell(n Notification) {
	if log := a.t.cfg.Log; log != nil && n.Kind.logged() {
		attrs := []slog.Attr{slog.String("local", a.ep.line()), slog.String("peer", a.RemoteAddr().String())}
		if n.Addr.IsValid() {
			attrs = append(attrs, slog.String("path", n.Addr.String()))
		}
		if n.Err != nil {
			attrs = append(attrs, slog.String("error", n.Err.Error()))
		}
		log.LogAttrs(context.Background(), n.level(), "sctp: "+n.Kind.String(), attrs...)
	}
	if f := a.ep.cfg.OnNotify; f != nil {
		f(a, n)
	}
}
