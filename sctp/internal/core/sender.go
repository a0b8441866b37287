package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// sender is the sending half of an association: the messages, what is in flight, the peer's
// window, and how much may be sent on which path. Of the association it knows the
// configuration, the paths and the timers.
type sender struct {
	cfg    *Config
	paths  *[]path
	timers *timer.Set

	q       *tx.Queue
	sb      *tx.Scoreboard
	streams int
	probes  int // that have gone into a closed window in a row (RFC 9260, Section 6.1, A)
	// rtxPath is where chunks marked by T3 go: another path than the one that
	// lost them, if there is one.
	rtxPath int
	// detour is the path, plus one, by which the chunk that unblock marked goes.
	detour int

	// Together, because each would take eight bytes between larger fields.
	mayProbe   bool // one chunk may go into a closed window
	heard      bool // a SACK came since T3 expired last
	forwarding bool // T3-rtx expired with nothing outstanding but a FORWARD-TSN
	busy       bool // something was sent since EventDry
	sackAtEnd  bool // a SACK goes with a later packet of the batch being made
	cork       cork // new data waits

	carry        carry
	tune         tx.BufferTuner
	openBatch    *openBatch // nil until one is
	pipelined    int        // messages, up to corkPipelined, that were sent while others were under way
	sackAt       uint64     // packets with data sent when the last SACK came
	deferredSack deferredSack
	segSize      int // how long the packets of the batch being made are, 0 before the first
	// released are those of the queue that a restart of the peer replaced.
	released        []tx.Release
	bytes, messages uint64
}

// share has the sender use what it shares with the rest of the association.
func (t *sender) share(cfg *Config, paths *[]path, timers *timer.Set) {
	t.cfg, t.paths, t.timers = cfg, paths, timers
}

func (t *sender) path(i int) *path { return &(*t.paths)[i] }

// dry reports whether everything was sent and acknowledged.
func (t *sender) dry() bool { return t.q.Empty() && t.sb.Outstanding() == 0 }

// rewind marks what was sent along with a COOKIE ECHO to be sent again.
func (t *sender) rewind() {
	for i := range *t.paths {
		t.sb.MarkPath(i)
		t.timers.StartPath(timer.T3, i, 0)
	}
}

// close releases all messages with err, nil meaning ErrClosed.
func (t *sender) close(err error) {
	if err == nil {
		err = ErrClosed
	}
	t.q.Close(err)
	if t.openBatch != nil {
		*t.openBatch = openBatch{}
	}
	t.carry.full = false
}

// retune adapts how much may be queued to what the paths hold.
func (t *sender) retune(now clock.Time, res *tx.SackResult, slowest clock.Time) {
	n, rtt := 0, clock.Time(0)
	for i := range res.Paths {
		n += res.Paths[i].Acked
		rtt = max(rtt, res.Paths[i].AckRTT)
	}
	t.tune.Ack(now, n, rtt)
	t.q.SetSoftLimit(t.tune.Limit(slowest), t.tune.LowRTT(slowest))
}

// built describes a packet that was built.
type built struct {
	Tuple
	path int // -1 for a packet that stands alone
	ecn  uint8
	// oversize tells that it is longer than the path MTU has become, so that IP
	// has to fragment it.
	oversize bool
}

// carry keeps a packet that was built but did not fit the batch, for the next one.
type carry struct {
	built
	data []byte
	full bool
}

func (c *carry) put(p built, data []byte) {
	c.built, c.full = p, true
	c.data = append(c.data[:0], data...)
}

// openBatch is a GSO batch that has room for more packets, and waits for them for as long as
// ShouldCork says. Its chunks count as in flight.
type openBatch struct {
	tx     Transmit // Segs is 0 if there is none
	header [checksumField]byte
	n      int // its length
	bytes  int // of its chunks
	chunks int
}

// deferredSack is a SACK that is processed after the data in its packet. It came in front of
// the data, as the acknowledgement of a request does in front of the answer, and takes as long
// to process as the data, for which a reader waits. The association then behaves as if the
// SACK had come later, but measures round-trip times by when it came.
type deferredSack struct {
	at        clock.Time // when it came
	cum, rwnd uint32
	on        bool
}
