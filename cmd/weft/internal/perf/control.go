package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/metrics"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/weftstack/weft/internal/units"
)

// counts is what one side has received or completed, and what it cost.
type counts struct {
	Bytes, Msgs uint64
	CPU         float64 // seconds of processor time of the process
	Mallocs     uint64
	Retransmits uint64
	Drops       uint64
}

func (c counts) add(d counts) counts {
	return counts{c.Bytes + d.Bytes, c.Msgs + d.Msgs, c.CPU + d.CPU, c.Mallocs + d.Mallocs, c.Retransmits + d.Retransmits,
		c.Drops + d.Drops}
}

func (c counts) sub(d counts) counts {
	return counts{c.Bytes - d.Bytes, c.Msgs - d.Msgs, c.CPU - d.CPU, c.Mallocs - d.Mallocs, c.Retransmits - d.Retransmits,
		c.Drops - d.Drops}
}

// cost adds what this process has used so far.
func (c counts) cost() counts {
	c.CPU = cpuSeconds()
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(sample)
	c.Mallocs = sample[0].Value.Uint64()
	return c
}

// target is the server's end of a measurement.
type target interface {
	addr() string
	counts() counts
	close()
}

// source is the client's end.
type source interface {
	// load sends until ctx is done.
	load(ctx context.Context) error
	// trip makes one round trip.
	trip(ctx context.Context) error
	counts() counts
	close()
}

func openTarget(ctx context.Context, s *spec) (target, error) {
	switch s.Mode {
	case "udp":
		return openUDPTarget(s)
	case "tcp":
		return openTCPTarget(ctx, s)
	case "sctp":
		return openSCTPTarget(ctx, s)
	case "send", "write", "read", "atomic":
		return openRDMATarget(ctx, s)
	}
	return nil, fmt.Errorf("unknown mode %q: the client may be of a newer version", s.Mode)
}

func openSource(ctx context.Context, s *spec, addr string) (source, error) {
	switch s.Mode {
	case "udp":
		return openUDPSource(s, addr)
	case "tcp":
		return openTCPSource(ctx, s, addr)
	case "sctp":
		return openSCTPSource(ctx, s, addr)
	case "send", "write", "read", "atomic":
		return openRDMASource(ctx, s, addr)
	}
	return nil, fmt.Errorf("unknown mode %q: the client may be of a newer version", s.Mode)
}

// Requests of the control connection, one JSON value each.
type request struct {
	Op   string // open, counts
	Spec *spec
	Host string // the address under which the client reached us
}

type reply struct {
	Err    string
	Addr   string
	Counts counts
}

// serve answers clients, one at a time.
func serve(ctx context.Context, addr string, once bool) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	fmt.Fprintf(os.Stdout, "%s%s\n", servingPrefix, l.Addr())
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		err = serveClient(ctx, conn)
		if once {
			return err
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "weft perf:", err)
		}
	}
}

func serveClient(ctx context.Context, conn net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	var target target
	defer func() {
		if target != nil {
			target.close()
		}
	}()
	for {
		var req request
		if err := in.Decode(&req); err != nil {
			return nil // the client has gone: that is how it ends
		}
		var reply reply
		switch {
		case req.Op == "open" && req.Spec != nil && target == nil:
			o := options{spec: *req.Spec, time: 1, rounds: 1}
			err := o.check()
			if err == nil && (o.Size < 1 || o.Size > maxPerfSize) {
				err = fmt.Errorf("size %d: want 1 to %v", o.Size, units.Bytes(maxPerfSize))
			}
			if err == nil {
				o.spec.bind(conn.LocalAddr())
				target, err = openTarget(ctx, &o.spec)
			}
			if err != nil {
				reply.Err = err.Error()
			} else {
				reply.Addr = target.addr()
			}
		case req.Op == "counts" && target != nil:
			reply.Counts = target.counts().cost()
		default:
			reply.Err = fmt.Sprintf("unknown request %q", req.Op)
		}
		if err := out.Encode(&reply); err != nil {
			return err
		}
	}
}

// control is the client's end of the control connection.
type control struct {
	conn net.Conn
	in   *json.Decoder
	out  *json.Encoder
}

func (c *control) ask(req request) (reply, error) {
	var reply reply
	if err := c.out.Encode(&req); err != nil {
		return reply, err
	}
	if err := c.in.Decode(&reply); err != nil {
		return reply, fmt.Errorf("connection to the server lost: %w", err)
	}
	if reply.Err != "" {
		return reply, errors.New("server: " + reply.Err)
	}
	return reply, nil
}

// runClient measures against the server at addr.
func runClient(ctx context.Context, o *options, addr string) (*result, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	c := &control{conn, json.NewDecoder(conn), json.NewEncoder(conn)}
	reply, err := c.ask(request{Op: "open", Spec: &o.spec})
	if err != nil {
		return nil, err
	}
	spec := o.spec
	spec.bind(conn.LocalAddr())
	src, err := openSource(ctx, &spec, reply.Addr)
	if err != nil {
		return nil, err
	}
	defer src.close()
	if o.samples != nil {
		return nil, perftestRun(ctx, o, c, src)
	}
	if o.Latency {
		return runLatency(ctx, o, c, src)
	}
	return runLoad(ctx, o, c, src)
}

// runLoad measures bytes and messages.
func runLoad(ctx context.Context, o *options, c *control, src source) (*result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	loaded := make(chan error, 1)
	go func() { loaded <- src.load(ctx) }()
	counts := func() (counts, error) {
		reply, err := c.ask(request{Op: "counts"})
		return reply.Counts.add(src.counts().cost()), err
	}
	pause := func(d time.Duration) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case err := <-loaded:
			loaded <- err
			return fmt.Errorf("the measurement ended early: %w", err)
		}
	}
	if err := pause(o.warmup); err != nil {
		return nil, err
	}
	busy := otherCPU()
	first, err := counts()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	last, lastTime := first, start
	var intervals []interval
	for left := o.time; left > 0; left = o.time - time.Since(start) {
		if err := pause(min(left, time.Second)); err != nil {
			return nil, err
		}
		now, err := counts()
		if err != nil {
			return nil, err
		}
		t := time.Now()
		if part := newPerfInterval(now.sub(last), lastTime.Sub(start), t.Sub(start)); o.time > time.Second {
			if !o.quiet && !o.json {
				part.print(len(intervals) == 0)
			}
			intervals = append(intervals, part)
		}
		lastTime = t
		last = now
	}
	took := time.Since(start)
	res := newPerfResult(o, last.sub(first), took)
	res.OtherCPU, res.Intervals = busy.since(last.sub(first).CPU, took), intervals
	cancel()
	<-loaded
	return res, nil
}

func newPerfResult(o *options, c counts, took time.Duration) *result {
	r := &result{
		Mode: o.Mode, Size: o.Size, MTU: o.MTU, Bytes: c.Bytes, Seconds: took.Seconds(),
		Gbps: float64(c.Bytes) * 8 / took.Seconds() / 1e9, MsgsPerS: float64(c.Msgs) / took.Seconds(),
		Retransmits: c.Retransmits, Drops: c.Drops, OtherCPU: -1, Streams: o.Streams, Assocs: o.Assocs,
	}
	if c.Bytes > 0 {
		r.CPUPerGB = c.CPU / (float64(c.Bytes) / 1e9)
		r.AllocsPerGB = float64(c.Mallocs) / (float64(c.Bytes) / 1e9)
	}
	if c.Msgs > 0 {
		r.AllocsPerMsg = float64(c.Mallocs) / float64(c.Msgs)
	}
	return r
}

// more reports whether to make another round trip after so many.
func (o *options) more(trips uint64, elapsed time.Duration) bool {
	if o.count > 0 {
		return trips < uint64(o.count)
	}
	return elapsed < o.time
}

// runLatency measures round trips.
func runLatency(ctx context.Context, o *options, c *control, src source) (*result, error) {
	for end := time.Now().Add(o.warmup); time.Now().Before(end); {
		if err := src.trip(ctx); err != nil {
			return nil, err
		}
	}
	busy := otherCPU()
	reply, err := c.ask(request{Op: "counts"})
	if err != nil {
		return nil, err
	}
	before := reply.Counts.add(src.counts().cost())
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	start := time.Now()
	trips := uint64(0)
	for last := start; o.more(trips, last.Sub(start)); trips++ {
		if err := src.trip(ctx); err != nil {
			return nil, err
		}
		now := time.Now()
		h.RecordValue(int64(now.Sub(last)))
		last = now
	}
	took := time.Since(start)
	if reply, err = c.ask(request{Op: "counts"}); err != nil {
		return nil, err
	}
	used := reply.Counts.add(src.counts().cost()).sub(before)
	used.Bytes, used.Msgs = trips*2*uint64(o.Size), trips
	res := newPerfResult(o, used, took)
	res.OtherCPU = busy.since(used.CPU, took)
	res.Latency = newPercentiles(h)
	return res, nil
}

// newPercentiles sums a histogram of nanoseconds up.
func newPercentiles(h *hdrhistogram.Histogram) *percentiles {
	us := func(v int64) float64 { return float64(v) / 1e3 }
	return &percentiles{
		Min: us(h.Min()), P50: us(h.ValueAtQuantile(50)), P90: us(h.ValueAtQuantile(90)), P99: us(h.ValueAtQuantile(99)),
		P999: us(h.ValueAtQuantile(99.9)), Max: us(h.Max()), Mean: h.Mean() / 1e3,
	}
}

// pacer spreads messages over time to keep an offered rate.
type pacer struct {
	gap  time.Duration
	next time.Time
}

func newPacer(s *spec, senders int) *pacer {
	if s.Rate == 0 {
		return &pacer{}
	}
	return &pacer{gap: time.Duration(float64(s.Size) * 8e9 * float64(senders) / s.Rate)}
}

// wait returns when the next message is due.
func (p *pacer) wait() {
	if p.gap == 0 {
		return
	}
	now := time.Now()
	if p.next.IsZero() || now.Sub(p.next) > time.Second {
		p.next = now
	}
	if d := p.next.Sub(now); d > 0 {
		time.Sleep(d)
	}
	p.next = p.next.Add(p.gap)
}
