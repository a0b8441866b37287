package verbs

import (
	"time"

	"github.com/weftstack/weft/ddp/ddpsctp"
)

// DefaultCloseTimeout is the default of Config.CloseTimeout.
const DefaultCloseTimeout = 5 * time.Second

// closeTimeout returns Config.CloseTimeout or its default.
func (d *Device) closeTimeout() time.Duration {
	if d.cfg.CloseTimeout == 0 {
		return DefaultCloseTimeout
	}
	return d.cfg.CloseTimeout
}

// linger bounds how long a life that has come to its end keeps memory because the peer
// does not acknowledge what was sent: see Config.CloseTimeout. Over TCP ddpmpa.Linger
// does. It may be called with the locks of the stream held.
func (qp *QP) linger(l *life) {
	a, limit := l.assoc.Load(), qp.pd.dev.closeTimeout()
	if left := l.stream.Outstanding(); a != nil && limit > 0 && left > 0 {
		time.AfterFunc(limit, func() { qp.expire(l, a, left) })
	}
}

// expire is called when nothing may have been acknowledged for as long as linger allows,
// since left segments were outstanding.
func (qp *QP) expire(l *life, a *ddpsctp.Association, left int) {
	if l.ended() {
		return
	}
	if l.stream.Outstanding() >= left && a.AbortUnused("closed, and nothing is acknowledged") {
		return
	}
	qp.linger(l)
}
