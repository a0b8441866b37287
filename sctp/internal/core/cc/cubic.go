package cc

import (
	"math"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// Constants of CUBIC (RFC 9438, Sections 4.1 and 4.6; RFC 8312 has the same C
// and β).
const (
	cubicC    = 0.4
	cubicBeta = 0.7
	// cubicAlpha makes the Reno-friendly window grow as fast on average as Reno
	// does (Section 4.3).
	cubicAlpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
	// youngPackets is a window within which a flow is taken to have had no part in
	// filling the queue that its first loss tells of: RFC 6928 lets TCP begin with it.
	// smallPackets is the same where round-trip times show that queue.
	youngPackets = 10
	smallPackets = 64
)

// CubicControl is CUBIC congestion control (RFC 9438) on the windows of SCTP. Windows
// are in packets of mtu bytes inside.
//
// Deviation (RFC 9260, Section 7.2, MUST NOT): on long paths it grows faster
// than Section 7.2.2 allows, as TCP has done everywhere since RFC 8312. NewReno
// is there for those who want the letter. Where packets are lost without a queue
// it gives way less than Section 7.2.3 and RFC 9438 ask for, after slow start more.
type CubicControl struct {
	cfg      Config
	mtu      int
	cwnd     int // bytes
	frac     float64
	ssthresh int
	wMax     float64
	prior    float64    // cwnd_prior
	k        float64    // seconds
	est      float64    // W_est
	epoch    clock.Time // start of this congestion avoidance stage; 0 before
	timedOut bool
	spared   bool // a loss did not end slow start
	full     bool // the window was used up, as of the last SACK
	lastAck  clock.Time
	usage    usage
	hystart  hystart
	queue    queueing
}

func (c *CubicControl) init(cfg Config, mtu int) *CubicControl {
	c.cfg, c.mtu = cfg, mtu
	c.Reset()
	return c
}

func (c *CubicControl) Name() string    { return "cubic" }
func (c *CubicControl) Cwnd() int       { return c.cwnd }
func (c *CubicControl) Ssthresh() int   { return c.ssthresh }
func (*CubicControl) PacingRate() int64 { return 0 }

func (c *CubicControl) SetMTU(mtu int) {
	scale := float64(c.mtu) / float64(mtu)
	c.wMax *= scale
	c.prior *= scale
	c.est *= scale
	c.mtu, c.cwnd, c.epoch = mtu, max(c.cwnd, mtu), 0
}

func (c *CubicControl) Reset() {
	*c = CubicControl{cfg: c.cfg, mtu: c.mtu, cwnd: c.cfg.initialWindow(c.mtu), ssthresh: initialSsthresh}
	c.hystart.reset()
}

func (c *CubicControl) OnSent(now clock.Time, _, flight int) {
	c.usage.sent(now, flight, c.cwnd, c.mtu)
}

func (c *CubicControl) OnAck(a Ack) {
	c.full = c.usage.full(&a)
	last := c.lastAck
	c.lastAck = a.Now
	c.queue.onAck(&a)
	if a.InRecovery {
		return
	}
	if !c.full {
		// RFC 9438, Section 5.8: time in which the application limits the sender
		// does not count.
		if c.epoch != 0 && last != 0 {
			c.epoch += a.Now - last
		}
		return
	}
	if c.cwnd < c.ssthresh {
		n := min(a.Acked, c.cfg.SlowStartL*c.mtu)
		if !c.cfg.NoHyStart && !c.hystart.done && c.ssthresh == initialSsthresh {
			if n = c.hystart.onAck(a, c.cwnd, n); c.hystart.done {
				c.cwnd, n = min(c.cwnd, max(c.hystart.window, c.least())), 0
				c.ssthresh = c.cwnd
			}
		}
		c.cwnd = min(c.cwnd+n, c.cfg.MaxWindow, max(c.ssthresh, c.cwnd))
		return
	}
	c.avoid(a)
}

// avoid grows the window in congestion avoidance (Sections 4.2 to 4.5).
func (c *CubicControl) avoid(a Ack) {
	w := float64(c.cwnd) / float64(c.mtu)
	if c.epoch == 0 {
		c.epoch = a.Now
		c.est = w
		if c.timedOut || c.wMax < w {
			c.k, c.wMax = 0, w // Section 4.8
		} else {
			c.k = math.Cbrt((c.wMax - w) / cubicC)
		}
		c.timedOut = false
	}
	c.epoch = min(c.epoch, a.Now)
	acked := float64(a.Acked) / float64(c.mtu)
	// Section 4.3: W_est grows by α until it reaches cwnd_prior, then by 1.
	alpha := cubicAlpha
	if c.est >= c.prior {
		alpha = 1
	}
	c.est += alpha * acked / w
	t := float64(a.Now-c.epoch) / 1e9
	if c.est > c.at(t) {
		c.set(max(w, c.est))
		return
	}
	// Section 4.2: "target" is W_cubic(t + RTT), within [cwnd, 1.5 × cwnd].
	target := min(max(c.at(t+float64(a.SRTT)/1e9), w), 1.5*w)
	c.set(w + (target-w)*min(acked/w, 1))
}

// at is W_cubic(t), in packets.
func (c *CubicControl) at(t float64) float64 { return cubicC*math.Pow(t-c.k, 3) + c.wMax }

// set sets the window to w packets, and keeps what is less than a byte.
func (c *CubicControl) set(w float64) {
	b := w*float64(c.mtu) + c.frac
	n := math.Floor(b)
	c.frac = b - n
	c.cwnd = min(int(n), c.cfg.MaxWindow)
}

// OnLoss is Section 4.6, save in three cases. Random losses, which no queue announced or
// which come whatever its length, are no sign of congestion. And where slow start has
// filled the queue, what share of it each flow has is chance, a matter of who came
// some milliseconds earlier, and CUBIC takes minutes to make up for that: each goes
// back to its share of the line, from where all grow alike. The first loss of a small
// flow, last, which came while others filled the queue, does not end its slow start.
func (c *CubicControl) OnLoss(now clock.Time) {
	slow, random := c.cwnd < c.ssthresh, c.queue.random(c.cwnd, c.mtu)
	line := 0
	if slow && !random && c.full {
		line = c.queue.line(now)
	}
	switch {
	case c.spare(line > 0):
		c.cwnd = c.reduced(cubicBeta)
		return
	case !slow && random:
		c.reduceBy(c.queue.beta())
		// Growth as that of Reno goes on from here, not slower as if what was
		// lost had to be made up for.
		c.prior = 0
	default:
		c.reduceBy(cubicBeta)
		if line > 0 {
			c.ssthresh = max(min(c.ssthresh, line), c.least())
			c.wMax = 0
		}
	}
	c.cwnd = c.ssthresh
}

// spare reports, once, that a loss is not to end the initial slow start: the flow is small
// yet, and might as well have begun after it. Who begins while another fills the queue
// would have four packets, from where CUBIC takes minutes.
func (c *CubicControl) spare(queue bool) bool {
	most := youngPackets
	if queue {
		most = smallPackets
	}
	if c.spared || c.ssthresh != initialSsthresh || c.cwnd > most*c.mtu {
		return false
	}
	c.spared = true
	return true
}

// least is what a loss leaves of the window at least (RFC 9260, Section 7.2.3).
func (c *CubicControl) least() int { return 4 * c.mtu }

// reduced returns what beta leaves of the window.
func (c *CubicControl) reduced(beta float64) int { return max(int(float64(c.cwnd)*beta), c.least()) }

// reduceBy is Sections 4.6 and 4.7.
func (c *CubicControl) reduceBy(beta float64) {
	w := float64(c.cwnd) / float64(c.mtu)
	c.prior = w
	if w < c.wMax {
		c.wMax = w * (1 + beta) / 2 // fast convergence
	} else {
		c.wMax = w
	}
	c.ssthresh = c.reduced(beta)
	c.epoch, c.frac = 0, 0
	c.hystart.done = true // HyStart++ is for the initial slow start only
}

// OnTimeout is Section 4.8. Where nothing has come since the timeout before, "the value of
// ssthresh is held constant" (RFC 5681, Section 3.1).
func (c *CubicControl) OnTimeout(clock.Time) {
	if !c.timedOut || c.cwnd > c.mtu {
		c.reduceBy(cubicBeta)
	}
	c.cwnd, c.timedOut = c.mtu, true
	c.usage = usage{}
}

func (c *CubicControl) OnECN(clock.Time) { c.reduceBy(cubicBeta); c.cwnd = c.ssthresh }

func (c *CubicControl) OnIdle(idle, rto clock.Time) {
	if rto <= 0 || idle < rto {
		return
	}
	if c.epoch != 0 {
		c.epoch += idle // Section 5.8
	}
	if c.ssthresh == initialSsthresh {
		c.ssthresh = c.cwnd
	}
	c.ssthresh = max(c.ssthresh, c.cwnd)
	c.cwnd = decayIdle(c.cwnd, c.mtu, idle, rto)
	c.usage, c.lastAck = usage{}, 0
}
