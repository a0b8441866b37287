package core

// ccWindow is what a loss changes in a congestion control.
type ccWindow struct {
	cwnd, ssthresh int
	wMax, prior    float64
}

// undoer is a [CongestionControl] that can take back its reaction to a loss.
type undoer interface {
	window() ccWindow
	// undo returns to a window of before a loss, unless the present one is
	// larger.
	undo(w ccWindow)
}

func (r *newReno) window() ccWindow { return ccWindow{cwnd: r.cwnd, ssthresh: r.ssthresh} }

func (r *newReno) undo(w ccWindow) {
	r.cwnd, r.ssthresh, r.pba = max(r.cwnd, w.cwnd), max(r.ssthresh, w.ssthresh), 0
}

func (c *cubic) window() ccWindow {
	return ccWindow{cwnd: c.cwnd, ssthresh: c.ssthresh, wMax: c.wMax, prior: c.prior}
}

// undo is RFC 9438, Section 4.9: what a spurious loss changed is restored.
func (c *cubic) undo(w ccWindow) {
	c.cwnd, c.ssthresh = max(c.cwnd, w.cwnd), max(c.ssthresh, w.ssthresh)
	c.wMax, c.prior, c.epoch, c.timedOut = w.wMax, w.prior, 0, false
}
