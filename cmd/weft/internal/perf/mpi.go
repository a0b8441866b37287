package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/sctp"
)

// envPerfRank makes `weft perf` a rank of the job that mode mpi runs; its value
// is the spec.
const envPerfRank = "WEFT_PERF_RANK"

// measureMPI measures between two ranks, started as `weft run` would.
func measureMPI(ctx context.Context, o *options) error {
	res, err := mpiRun(ctx, o)
	if err != nil {
		return err
	}
	return res.print(o)
}

// mpiOrder is what the ranks are told.
type mpiOrder struct {
	Spec         spec
	Time, Warmup time.Duration
	Count        int
	CPUProfile   string // of rank 0
}

// mpiRun runs two ranks and takes rank 0's result.
func mpiRun(ctx context.Context, o *options) (*result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	order, err := json.Marshal(mpiOrder{o.spec, o.time, o.warmup, o.count, o.cpuprofile})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "run", "-n", "2", self, "perf", "mpi")
	cmd.Env = append(os.Environ(), envPerfRank+"="+string(order))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(errs.String()))
	}
	var res result
	if err := json.Unmarshal(out, &res); err != nil {
		return nil, fmt.Errorf("the ranks printed %q: %w", out, err)
	}
	return &res, nil
}

// Tags of the measurement.
const (
	mpiData = iota
	mpiControl
)

// runOrdered is the part of a rank that mpiRun has started.
func runOrdered(ctx context.Context, text string) error {
	var order mpiOrder
	if err := json.Unmarshal([]byte(text), &order); err != nil {
		return err
	}
	o := &options{spec: order.Spec, time: order.Time, warmup: order.Warmup, count: order.Count,
		cpuprofile: order.CPUProfile}
	return runRank(ctx, o, func(r *result) error { return json.NewEncoder(os.Stdout).Encode(r) })
}

// runRank is one rank's part. Rank 0 gives the result to print.
func runRank(ctx context.Context, o *options, print func(*result) error) error {
	opts := []mpi.Option{mpi.WithSCTP(sctp.Config{MTU: o.MTU})}
	if o.BusyPoll != 0 {
		opts = append(opts, mpi.WithSpin(max(o.BusyPoll, 0)))
	}
	opts = append(opts, mpi.WithSharedMemory(o.Shared))
	w, err := mpi.Init(ctx, opts...)
	if err != nil {
		return err
	}
	c := w.Comm()
	if c.Size() != 2 {
		return errors.New("mode mpi requires 2 ranks")
	}
	if c.Rank() == 0 {
		stop, err := startCPUProfile(o.cpuprofile)
		if err != nil {
			return err
		}
		defer stop()
	}
	var res *result
	switch {
	case c.Rank() == 1 && o.Latency:
		err = mpiEcho(ctx, c, o)
	case c.Rank() == 1:
		err = mpiDrain(ctx, c, o)
	case o.Latency:
		res, err = mpiLatency(ctx, c, o)
	default:
		res, err = mpiLoad(ctx, c, o)
	}
	if err == nil && res != nil {
		err = print(res)
	}
	return errors.Join(err, w.Finalize(ctx))
}

// mpiRing is a window of nonblocking operations.
type mpiRing struct {
	bufs [][]byte
	reqs []*mpi.Request
}

func newMPIRing(s *spec) *mpiRing {
	r := &mpiRing{bufs: make([][]byte, s.Window), reqs: make([]*mpi.Request, s.Window)}
	for i := range r.bufs {
		r.bufs[i] = make([]byte, s.Size)
	}
	return r
}

// turn starts the operations of the ring once more, each as soon as the one
// before it is done, so that there is always a window of them under way.
func (r *mpiRing) turn(ctx context.Context, start func(i int, buf []byte) (*mpi.Request, error)) error {
	for i, buf := range r.bufs {
		if err := r.finish(ctx, i); err != nil {
			return err
		}
		var err error
		if r.reqs[i], err = start(i, buf); err != nil {
			return err
		}
	}
	return nil
}

// finish waits for operation i, if it was started.
func (r *mpiRing) finish(ctx context.Context, i int) error {
	req := r.reqs[i]
	if req == nil {
		return nil
	}
	r.reqs[i] = nil
	if _, err := req.Wait(ctx); err != nil {
		return err
	}
	req.Free()
	return nil
}

// drain waits for all of them.
func (r *mpiRing) drain(ctx context.Context) error {
	for i := range r.reqs {
		if err := r.finish(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// mpiStop as the first byte of a message tells that it is the last.
const mpiStop = 1

// mpiLoad sends windows until the time is over. The receiver confirms the last
// one, so what is counted has arrived.
func mpiLoad(ctx context.Context, c *mpi.Comm, o *options) (*result, error) {
	ring := newMPIRing(&o.spec)
	reply := make([]float64, 3)
	start := func(i int, buf []byte) (*mpi.Request, error) {
		return mpi.Isend(c, buf, 1, mpiData+i%o.Streams*2)
	}
	// The receiver must know after which window to stop: the sender decides at
	// each window's start and says so in a message of its own.
	word := make([]byte, 1)
	window := func(stop byte) error {
		word[0] = stop
		if err := mpi.Send(ctx, c, word, 1, mpiControl); err != nil {
			return err
		}
		if stop == mpiStop {
			return ring.drain(ctx)
		}
		return ring.turn(ctx, start)
	}
	for end := time.Now().Add(o.warmup); time.Now().Before(end); {
		if err := window(0); err != nil {
			return nil, err
		}
	}
	busy, before, began := otherCPU(), counts{}.cost(), time.Now()
	windows := 0
	for ; time.Since(began) < o.time; windows++ {
		if err := window(0); err != nil {
			return nil, err
		}
	}
	if err := window(mpiStop); err != nil {
		return nil, err
	}
	if _, err := mpi.Recv(ctx, c, reply, 1, mpiControl); err != nil {
		return nil, err
	}
	took := time.Since(began)
	used := counts{}.cost().sub(before)
	used.Msgs = uint64(windows * o.Window)
	used.Bytes = used.Msgs * uint64(o.Size)
	used.CPU += reply[0] * took.Seconds()
	used.Mallocs += uint64(reply[1] * took.Seconds())
	res := newPerfResult(o, used, took)
	res.OtherCPU = busy.since(used.CPU, took)
	return res, nil
}

// mpiDrain receives windows, and tells at the end what a second of it cost.
func mpiDrain(ctx context.Context, c *mpi.Comm, o *options) error {
	ring := newMPIRing(&o.spec)
	stop := make([]byte, 1)
	post := func(i int, buf []byte) (*mpi.Request, error) {
		return mpi.Irecv(c, buf, 0, mpiData+i%o.Streams*2)
	}
	before, start := counts{}.cost(), time.Now()
	for {
		if _, err := mpi.Recv(ctx, c, stop, 0, mpiControl); err != nil {
			return err
		}
		if stop[0] == mpiStop {
			break
		}
		if err := ring.turn(ctx, post); err != nil {
			return err
		}
	}
	if err := ring.drain(ctx); err != nil {
		return err
	}
	used, took := counts{}.cost().sub(before), time.Since(start).Seconds()
	return mpi.Send(ctx, c, []float64{used.CPU / took, float64(used.Mallocs) / took, 0}, 0, mpiControl)
}

// mpiLatency measures round trips.
func mpiLatency(ctx context.Context, c *mpi.Comm, o *options) (*result, error) {
	buf := make([]byte, o.Size)
	trip := func(more byte) error {
		buf[0] = more
		if err := mpi.Send(ctx, c, buf, 1, mpiData); err != nil || more == mpiStop {
			return err
		}
		_, err := mpi.Recv(ctx, c, buf, 1, mpiData)
		return err
	}
	for end := time.Now().Add(o.warmup); time.Now().Before(end); {
		if err := trip(0); err != nil {
			return nil, err
		}
	}
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	busy, before, start := otherCPU(), counts{}.cost(), time.Now()
	trips := uint64(0)
	for last := start; o.more(trips, last.Sub(start)); trips++ {
		if err := trip(0); err != nil {
			return nil, err
		}
		now := time.Now()
		h.RecordValue(int64(now.Sub(last)))
		last = now
	}
	took := time.Since(start)
	used := counts{}.cost().sub(before)
	used.Bytes, used.Msgs = trips*2*uint64(o.Size), trips
	if err := trip(mpiStop); err != nil {
		return nil, err
	}
	res := newPerfResult(o, used, took)
	res.Latency = newPercentiles(h)
	res.OtherCPU = busy.since(2*used.CPU, took)
	return res, nil
}

// mpiEcho plays the other side.
func mpiEcho(ctx context.Context, c *mpi.Comm, o *options) error {
	buf := make([]byte, o.Size)
	for {
		if _, err := mpi.Recv(ctx, c, buf, 0, mpiData); err != nil || buf[0] == mpiStop {
			return err
		}
		if err := mpi.Send(ctx, c, buf, 0, mpiData); err != nil {
			return err
		}
	}
}
