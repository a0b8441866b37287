package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/internal/bench"
	"github.com/weftstack/weft/sctp"
)

// Parameters of the scale experiment.
const (
	// scaleSize is the size of a message: one packet each.
	scaleSize = 1000
	// scaleBurst is how many messages are under way, on so many associations,
	// streams or queue pairs in turn.
	scaleBurst = 32
	// scaleTurns is how many times each number of associations is set up and measured.
	scaleTurns = 9
	// scaleDials is how many associations are set up at the same time.
	scaleDials = 64
	// maxTSNs is the largest amount of outstanding data.
	maxTSNs = 100_000
)

// Targets of the project.
const (
	targetBytes      = 24 << 10 // of memory per idle association
	targetHandshakes = 10_000   // per second
	targetGrowth     = 1.5      // of the cost of a packet, from one association to the most
)

// curve is how something grows.
type curve struct {
	name string
	x, y []float64
}

func (c *curve) add(x, y float64) { c.x, c.y = append(c.x, x), append(c.y, y) }

// describe says how the curve grows.
func (c *curve) describe() string {
	return fmt.Sprintf("n^%.2f", bench.Exponent(c.x, c.y))
}

// tens returns 1, 10, 100 … up to limit.
func tens(limit int) (all []int) {
	for n := 1; n <= limit; n *= 10 {
		all = append(all, n)
	}
	return all
}

// scalePair is two transports of this process on loopback; what arrives at the
// second is counted.
type scalePair struct {
	a, z   *sctp.Transport
	server *sctp.Endpoint
	cfg    sctp.Config
	assocs []*sctp.Association
	got    atomic.Int64
	want   atomic.Int64 // wake when so many have arrived
	wake   chan struct{}
}

func loopback() sctp.TransportConfig {
	return sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}}
}

func newScalePair(streams int) (*scalePair, error) {
	p := &scalePair{wake: make(chan struct{}, 1)}
	p.cfg = sctp.Config{MTU: 1500, OutStreams: uint16(max(streams, 10)), InStreams: uint16(max(streams, 10))}
	var err error
	if p.a, err = sctp.NewTransport(loopback()); err != nil {
		return nil, err
	}
	if p.z, err = sctp.NewTransport(loopback()); err != nil {
		p.a.Close()
		return nil, err
	}
	server := p.cfg
	p.cfg.Backlog = -1 // nobody connects to the sending side
	server.OnPiece = func(_ *sctp.Association, piece *sctp.Piece) {
		if piece.End && p.got.Add(1) == p.want.Load() {
			p.wake <- struct{}{}
		}
	}
	if p.server, err = p.z.Listen(0, &server); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *scalePair) close() {
	p.a.Close()
	p.z.Close()
}

// connect sets up n associations, several at a time, and returns how many
// handshakes that is per second, and the processor time of each in microseconds.
func (p *scalePair) connect(ctx context.Context, n int) (perSecond, micros float64, err error) {
	p.assocs = make([]*sctp.Association, n)
	start, used := time.Now(), bench.CPUSeconds()
	errs := make(chan error, scaleDials)
	var next atomic.Int64
	for range scaleDials {
		go func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				// Each on a port of its own: two ports have one association.
				e, err := p.a.Listen(0, &p.cfg)
				if err == nil {
					p.assocs[i], err = e.Connect(ctx, p.server.Addr())
				}
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var first error
	for range scaleDials {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return float64(n) / time.Since(start).Seconds(), (bench.CPUSeconds() - used) * 1e6 / float64(n), first
}

// packets returns how many packets both ends have sent.
func (p *scalePair) packets() uint64 {
	return p.a.Stats().DatagramsSent + p.z.Stats().DatagramsSent
}

// send sends bursts for some time, each message by the function given, and
// returns the processor time per packet in nanoseconds, that of both ends: a
// message is a packet, and acknowledgements are packets too.
func (p *scalePair) send(ctx context.Context, d time.Duration, one func(i int) error) (float64, error) {
	var sent int64
	burst := func() error {
		p.want.Store(p.got.Load() + scaleBurst)
		for range scaleBurst {
			if err := one(int(sent)); err != nil {
				return err
			}
			sent++
		}
		select {
		case <-p.wake:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	run := func(d time.Duration) error {
		for end := time.Now().Add(d); time.Now().Before(end); {
			if err := burst(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := run(d / 4); err != nil {
		return 0, err
	}
	runtime.GC()
	before, from := bench.CPUSeconds(), p.packets()
	if err := run(d); err != nil {
		return 0, err
	}
	return (bench.CPUSeconds() - before) * 1e9 / float64(p.packets()-from), nil
}

// heap returns the memory in use, stacks included, after a collection: what was closed
// before may need some time until nothing refers to it.
func heap() float64 {
	least := math.Inf(1)
	for range 20 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what had finalizers goes with the second
		runtime.ReadMemStats(&m)
		n := float64(m.HeapAlloc + m.StackInuse)
		if n > 0.99*least {
			return min(n, least)
		}
		least = n
		time.Sleep(5 * time.Millisecond)
	}
	return least
}

// scaleSamples is what is measured of a number of associations between two sockets.
type scaleSamples struct{ ns, bytes, perSecond, micros bench.Sample }

// measure sets n associations up, sends on them in turn, and takes them down.
func (x *scaleSamples) measure(ctx context.Context, s *settings, n int) error {
	before := heap()
	p, err := newScalePair(1)
	if err != nil {
		return err
	}
	defer p.close()
	empty := heap() - before // sockets and their buffers
	perSecond, micros, err := p.connect(ctx, n)
	if err != nil {
		return err
	}
	each := (heap() - before - empty) / float64(2*n)
	msg := make([]byte, scaleSize)
	ns, err := p.send(ctx, s.time/4, func(i int) error { return p.assocs[i%n].Send(ctx, msg, sctp.SendOptions{}) })
	x.ns, x.bytes = append(x.ns, ns), append(x.bytes, each)
	x.perSecond, x.micros = append(x.perSecond, perSecond), append(x.micros, micros)
	return err
}

// scaleAssociations measures up to limit associations between two sockets, each
// number of them in turn, several times: what disturbs the machine for a while
// disturbs them alike.
func scaleAssociations(ctx context.Context, s *settings, limit int) (cost, memory, rate, shake curve, err error) {
	cost.name, memory.name, rate.name = "associations", "memory per association", "handshakes per second"
	shake.name = "processor time per handshake"
	numbers := tens(limit)
	all := make([]scaleSamples, len(numbers))
	for range scaleTurns {
		for k, n := range numbers {
			if err := all[k].measure(ctx, s, n); err != nil {
				return cost, memory, rate, shake, fmt.Errorf("%d associations: %w", n, err)
			}
		}
	}
	for k, n := range numbers {
		x := &all[k]
		cost.add(float64(n), x.ns.Median())
		rate.add(float64(n), x.perSecond.Median())
		shake.add(float64(n), x.micros.Median())
		if n > 1 { // of one alone, what is made once counts more
			memory.add(float64(n), x.bytes.Median())
		}
		fmt.Fprintf(os.Stderr, "%d associations: %s ns per packet, %s bytes each, %s handshakes/s\n", n, x.ns, x.bytes, x.perSecond)
	}
	return cost, memory, rate, shake, nil
}

// scaleStreams measures up to limit active streams of one association.
func scaleStreams(ctx context.Context, s *settings, limit int) (curve, error) {
	c := curve{name: "streams"}
	for _, n := range tens(limit) {
		err := func() error {
			p, err := newScalePair(n)
			if err != nil {
				return err
			}
			defer p.close()
			if _, _, err := p.connect(ctx, 1); err != nil {
				return err
			}
			msg := make([]byte, scaleSize)
			ns, err := p.send(ctx, s.time, func(i int) error { return p.assocs[0].Send(ctx, msg, sctp.SendOptions{Stream: uint16(i % n)}) })
			c.add(float64(n), ns)
			return err
		}()
		if err != nil {
			return c, fmt.Errorf("%d streams: %w", n, err)
		}
		fmt.Fprintf(os.Stderr, "%d streams: %.0f ns per packet\n", n, c.y[len(c.y)-1])
	}
	return c, nil
}

// tsnLine is a result of BenchmarkSendAck.
var tsnLine = regexp.MustCompile(`outstanding=(\d+)/rack=true\S*\s.*?([\d.]+) ns/TSN`)

// scaleTSNs has the benchmark of the protocol core measure a chunk's way from
// queueing to its acknowledgement while others are outstanding.
func scaleTSNs(ctx context.Context, s *settings, t *tools, limit int) (curve, error) {
	c := curve{name: "outstanding TSNs"}
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkSendAck$/./^rack=true$", "-benchtime", s.time.String(), "./sctp/internal/core/tx")
	cmd.Dir = t.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return c, fmt.Errorf("%w: %.500s", err, out)
	}
	for _, m := range tsnLine.FindAllSubmatch(out, -1) {
		n, _ := strconv.ParseFloat(string(m[1]), 64)
		ns, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			return c, err
		}
		if n <= float64(limit) {
			c.add(n, ns)
		}
	}
	if len(c.x) < 2 {
		return c, fmt.Errorf("the benchmark printed %.500s", out)
	}
	return c, nil
}

// runScale measures how costs grow, and draws it.
func runScale(ctx context.Context, s *settings, t *tools, w io.Writer) error {
	return scaleTo(ctx, s, t, w, 10_000, filepath.Join(t.root, "docs"))
}

// scaleTo is runScale up to limit of each, with the drawings in a directory if
// the document is written.
func scaleTo(ctx context.Context, s *settings, t *tools, w io.Writer, limit int, dir string) error {
	var count tally
	var cost, memory, rate, shake, streams, tsns, qps curve
	for _, step := range []func() error{
		func() (err error) { cost, memory, rate, shake, err = scaleAssociations(ctx, s, limit); return err },
		func() (err error) { streams, err = scaleStreams(ctx, s, limit); return err },
		func() (err error) { qps, err = scaleQPs(ctx, s, limit); return err },
		func() (err error) { tsns, err = scaleTSNs(ctx, s, t, maxTSNs); return err },
	} {
		if err := count.run(step); err != nil {
			return err
		}
	}
	fmt.Fprint(w, bench.Provenance(count.runs, count.noisy), "\n")
	last := len(cost.x) - 1
	growth := cost.y[last] / cost.y[0]
	fmt.Fprintf(w, "| of %.0f associations between two sockets | measured | target |\n|---|---|---|\n", cost.x[last])
	fmt.Fprintf(w, "| memory per idle association and end | %.1f KiB | at most %d KiB |\n", memory.y[len(memory.y)-1]/1024, targetBytes>>10)
	fmt.Fprintf(w, "| handshakes per second, both ends on this machine | %.0f | at least %d |\n", rate.y[last], targetHandshakes)
	fmt.Fprintf(w, "| processor time per handshake, both ends | %.0f µs | |\n", shake.y[last])
	fmt.Fprintf(w, "| cost of a packet relative to one association | %.2f | at most %.1f |\n", growth, targetGrowth)
	fmt.Fprintf(w, "\nOf associations, medians of %d turns. Processor time per packet of both ends, acknowledgements included, with %d messages of %d bytes under way in turn; for outstanding data, of the protocol core's sender per TSN; for queue pairs, per RDMA Read:\n\n", scaleTurns, scaleBurst, scaleSize)
	curves := []*curve{&cost, &streams, &qps, &tsns}
	fmt.Fprint(w, "| ns, by the number of |")
	for _, n := range tens(max(limit, maxTSNs)) {
		fmt.Fprintf(w, " %d |", n)
	}
	fmt.Fprint(w, " grows as |\n|---|")
	for range tens(max(limit, maxTSNs)) {
		fmt.Fprint(w, "---|")
	}
	fmt.Fprint(w, "---|\n")
	for _, c := range curves {
		fmt.Fprintf(w, "| %s |", c.name)
		for _, n := range tens(max(limit, maxTSNs)) {
			fmt.Fprintf(w, " %s |", c.text(n))
		}
		fmt.Fprintf(w, " %s |\n", c.describe())
	}
	cpu := bench.Plot{Title: "Processor time per packet", X: "number of …", Y: "ns"}
	for _, c := range curves {
		cpu.Curves = append(cpu.Curves, bench.Curve{Name: fmt.Sprintf("%s: %s", c.name, c.describe()), X: c.x, Y: c.y})
	}
	mem := bench.Plot{Title: "Memory per idle association and end", X: "associations", Y: "bytes",
		Curves: []bench.Curve{{Name: memory.name + ": " + memory.describe(), X: memory.x, Y: memory.y}}}
	fmt.Fprint(w, "\n![Processor time per packet](scale-cpu.svg)\n\n![Memory per association](scale-memory.svg)\n")
	if !s.write {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, "scale-cpu.svg"), cpu.SVG(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "scale-memory.svg"), mem.SVG(), 0o644)
}

// text returns the value at n, if there is one.
func (c *curve) text(n int) string {
	for i, x := range c.x {
		if int(math.Round(x)) == n {
			return fmt.Sprintf("%.0f", c.y[i])
		}
	}
	return ""
}
