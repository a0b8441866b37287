package mpi

import (
	"time"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// A Profiler is told of every call that the program makes: what the profiling
// interface of MPI (MPI-4.1, Section 15.2) is for. See WithProfiler; Profile and
// Tracer are two of them. Calls that the library makes itself are not told,
// only those of the program.
type Profiler interface {
	// Record is called at the end of each call, on the goroutine that made
	// it, and by several goroutines at a time. The call returns after Record.
	Record(r CallRecord)
}

// NoPeer as CallRecord.Peer stands for calls that have no peer or root.
const NoPeer = -100

// A CallRecord is a call that has ended (MPI-4.1, Section 15.2).
type CallRecord struct {
	// Name is that of the Go function, or type and method: "Send", "Win.Put".
	// A collective of neighbours is "Neighbor", its nonblocking form
	// "Ineighbor".
	Name string
	// Rank is that of the caller in the job.
	Rank int
	// Comm is the communicator of the call; nil for Wait, Test and their
	// relatives. That of a window or file is the one it was made of.
	Comm *Comm
	// Peer is the rank in Comm that the call names, the root of a collective,
	// or the source of a message received; or NoPeer.
	Peer int
	// Tag is that of a message, else 0.
	Tag int
	// Bytes is how long the program's buffer is, or the message received. Of
	// collectives it is the send buffer, or the receive buffer of ranks that
	// only receive.
	Bytes int
	// Start is when the call began, and Duration how long it took.
	Start    time.Time
	Duration time.Duration
	// Err is what the call returned.
	Err error
}

// WithProfiler makes p record the calls of the program (MPI-4.1, Section 15.2).
// Given several times, all of them do.
func WithProfiler(p Profiler) Option {
	return func(o *options) error {
		o.addProfiler(p)
		return nil
	}
}

func (o *options) addProfiler(p Profiler) {
	switch {
	case p == nil:
	case o.profiler == nil:
		o.profiler = p
	default:
		o.profiler = profilers{o.profiler, p}
	}
}

// profilers is two Profilers.
type profilers [2]Profiler

// Record tells both.
func (p profilers) Record(r CallRecord) {
	p[0].Record(r)
	p[1].Record(r)
}

// enter notes the beginning of a call. Without a Profiler it does nothing.
func (c *Comm) enter() (t time.Time) {
	if c.prof != nil {
		t = time.Now()
	}
	return t
}

// leave records a call that began at t.
func (c *Comm) leave(t time.Time, name string, peer, tag, n int, err error) {
	if c.prof != nil {
		c.record(t, name, peer, tag, n, err)
	}
}

func (c *Comm) record(t time.Time, name string, peer, tag, n int, err error) {
	c.prof.Record(CallRecord{Name: name, Rank: c.w.eng.Rank, Comm: c, Peer: peer, Tag: tag, Bytes: n,
		Start: t, Duration: time.Since(t), Err: err})
}

// leaveRecv is leave for calls that tell about a message.
func (c *Comm) leaveRecv(t time.Time, name string, src, tag int, st p2p.Status, err error) {
	if c.prof == nil {
		return
	}
	if err == nil {
		src, tag = st.Source, st.Tag
	}
	c.record(t, name, src, tag, st.Bytes, err)
}

// enter is Comm.enter for calls without a communicator.
func (w *World) enter() (t time.Time) {
	if w != nil && w.opts.profiler != nil {
		t = time.Now()
	}
	return t
}

func (w *World) leave(t time.Time, name string, n int, err error) {
	if w != nil && w.opts.profiler != nil {
		w.recordCall(t, name, n, err)
	}
}

func (w *World) recordCall(t time.Time, name string, n int, err error) {
	w.opts.profiler.Record(CallRecord{Name: name, Rank: w.Rank(), Peer: NoPeer, Bytes: n, Start: t,
		Duration: time.Since(t), Err: err})
}

// worldOf returns the World of the first request that is not nil, or nil.
func worldOf(reqs []*Request) *World {
	for _, r := range reqs {
		if r != nil {
			return r.w
		}
	}
	return nil
}

// enterAll and leaveAll are for calls on several requests.
func enterAll(reqs []*Request) (w *World, t time.Time) {
	if w = worldOf(reqs); w == nil || w.opts.profiler == nil {
		return nil, t
	}
	return w, time.Now()
}

func (w *World) leaveAll(t time.Time, name string, err error) {
	if w != nil {
		w.recordCall(t, name, 0, err)
	}
}
