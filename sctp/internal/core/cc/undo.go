package cc

// Window is what a loss changes in a [Control].
type Window struct {
	Cwnd, ssthresh int
	wMax, prior    float64
}

func (r *newReno) Window() Window { return Window{Cwnd: r.cwnd, ssthresh: r.ssthresh} }

func (r *newReno) Undo(w Window) {
	r.cwnd, r.ssthresh, r.pba = max(r.cwnd, w.Cwnd), max(r.ssthresh, w.ssthresh), 0
}

func (c *CubicControl) Window() Window {
	return Window{Cwnd: c.cwnd, ssthresh: c.ssthresh, wMax: c.wMax, prior: c.prior}
}

// Undo is RFC 9438, Section 4.9: what a spurious loss changed is restored.
func (c *CubicControl) Undo(w Window) {
	c.cwnd, c.ssthresh = max(c.cwnd, w.Cwnd), max(c.ssthresh, w.ssthresh)
	c.wMax, c.prior, c.epoch, c.timedOut = w.wMax, w.prior, 0, false
}
