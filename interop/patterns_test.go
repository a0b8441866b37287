package interop

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weftstack/weft/mpi"
)

// envPattern has this test binary, as a rank of a job, run a communication pattern of
// testdata/sites/patterns.c: its words are the arguments of that.
const envPattern = "WEFT_INTEROP_PATTERN"

// patternTime bounds a pattern.
const patternTime = 5 * time.Minute

func init() {
	playRole(envPattern, func(words string) error {
		ctx, cancel := context.WithTimeout(context.Background(), patternTime)
		defer cancel()
		opts, counts := countOptions()
		w, err := mpi.Init(ctx, opts...)
		if err != nil {
			return err
		}
		if err := runPattern(ctx, w.Comm(), strings.Fields(words)); err != nil {
			return fmt.Errorf("rank %d: %w", w.Rank(), err)
		}
		return errors.Join(w.Finalize(ctx), counts())
	})
}

// patternResult is what a pattern prints.
type patternResult struct {
	Seconds float64 `json:"seconds"` // of the slowest rank
	OneWay  float64 `json:"oneway"`  // half the median round trip, in µs
}

// A patternRank is one rank's part.
type patternRank struct {
	c     *mpi.Comm
	half  int // ranks of a site
	words []string
	trips []time.Duration
}

// patternWarmUp is how many steps are not measured.
const patternWarmUp = 2

// number returns one of the arguments.
func (p *patternRank) number(i int) int {
	n, err := strconv.Atoi(p.words[i])
	if err != nil || n < 0 {
		panic(fmt.Sprintf("%q: want numbers", p.words))
	}
	return n
}

func runPattern(ctx context.Context, c *mpi.Comm, words []string) error {
	p := &patternRank{c: c, half: c.Size() / 2, words: words}
	if err := p.run(ctx, patternWarmUp, true); err != nil {
		return err
	}
	if err := mpi.Barrier(ctx, c); err != nil {
		return err
	}
	begun := time.Now()
	if err := p.run(ctx, p.number(1), false); err != nil {
		return err
	}
	mine, most := []float64{time.Since(begun).Seconds()}, make([]float64, 1)
	if err := mpi.Reduce(ctx, c, mine, most, mpi.Max, 0); err != nil {
		return err
	}
	if c.Rank() > 0 {
		return nil
	}
	r := patternResult{Seconds: most[0]}
	if slices.Sort(p.trips); len(p.trips) > 0 {
		r.OneWay = float64(p.trips[len(p.trips)/2].Nanoseconds()) / 2e3
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func (p *patternRank) run(ctx context.Context, n int, warm bool) error {
	switch p.words[0] {
	case "pingpong":
		return p.pingpong(ctx, n, p.number(2), warm)
	case "bulk":
		if warm {
			n = bulkWindow
		}
		return p.bulk(ctx, n, p.number(2))
	case "halo":
		return p.halo(ctx, n, p.number(2), time.Duration(p.number(3))*time.Microsecond)
	case "sweep":
		return p.sweep(ctx, n, p.number(2), p.number(3))
	case "alltoall":
		return p.alltoall(ctx, n, p.number(2))
	case "allreduce":
		return p.allreduce(ctx, n, p.number(2)/8)
	}
	return fmt.Errorf("no pattern %q", p.words)
}

// stamp marks a message with its sender and step, as far as it has room; stamped checks that.
func stamp(b []byte, from, step int) {
	if len(b) >= 8 {
		binary.LittleEndian.PutUint32(b, uint32(from))
		binary.LittleEndian.PutUint32(b[len(b)-4:], uint32(step))
	}
}

func stamped(b []byte, from, step int) error {
	if len(b) < 8 {
		return nil
	}
	f, s := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[len(b)-4:])
	if int(f) != from || int(s) != step {
		return fmt.Errorf("got the message of step %d from rank %d, want that of step %d from rank %d", s, f, step, from)
	}
	return nil
}

func (p *patternRank) pingpong(ctx context.Context, n, size int, warm bool) error {
	buf := make([]byte, size)
	for range n {
		begun := time.Now()
		var err error
		switch p.c.Rank() {
		case 0:
			if err = mpi.Send(ctx, p.c, buf, p.half, 0); err == nil {
				_, err = mpi.Recv(ctx, p.c, buf, p.half, 0)
			}
		case p.half:
			if _, err = mpi.Recv(ctx, p.c, buf, 0, 0); err == nil {
				err = mpi.Send(ctx, p.c, buf, 0, 0)
			}
		}
		if err != nil {
			return err
		}
		if !warm && p.c.Rank() == 0 {
			p.trips = append(p.trips, time.Since(begun))
		}
	}
	return nil
}

// bulkWindow is how many messages are under way in bulk.
const bulkWindow = 16

func (p *patternRank) bulk(ctx context.Context, n, size int) error {
	me := p.c.Rank()
	if me != 0 && me != p.half {
		return nil
	}
	bufs := make([][]byte, bulkWindow)
	for i := range bufs {
		bufs[i] = make([]byte, size)
	}
	for i := 0; i < n; i += bulkWindow {
		var reqs []*mpi.Request
		for j := range min(bulkWindow, n-i) {
			var r *mpi.Request
			var err error
			if me == 0 {
				stamp(bufs[j], 0, i+j)
				r, err = mpi.Isend(p.c, bufs[j], p.half, 0)
			} else {
				r, err = mpi.Irecv(p.c, bufs[j], 0, 0)
			}
			if err != nil {
				return err
			}
			reqs = append(reqs, r)
		}
		if _, err := mpi.Waitall(ctx, reqs...); err != nil {
			return err
		}
		for j := range reqs {
			if err := stamped(bufs[j], 0, i+j); err != nil {
				return err
			}
		}
	}
	end := make([]byte, 1) // the last message has arrived when it has
	if me > 0 {
		return mpi.Send(ctx, p.c, end, 0, 1)
	}
	_, err := mpi.Recv(ctx, p.c, end, p.half, 1)
	return err
}

func (p *patternRank) halo(ctx context.Context, n, size int, pause time.Duration) error {
	me := p.c.Rank()
	site, i := me/p.half, me%p.half
	peers := []int{site*p.half + (i+1)%p.half, site*p.half + (i+p.half-1)%p.half, (1-site)*p.half + i}
	// What the right neighbour gets from its left one has the tag of that.
	tags := []int{1, 0, 2}
	out, in := make([]byte, size), make([][]byte, len(peers))
	for k := range in {
		in[k] = make([]byte, size)
	}
	for step := range n {
		stamp(out, me, step)
		var reqs []*mpi.Request
		for k, peer := range peers {
			r, err := mpi.Irecv(p.c, in[k], peer, tags[k])
			if err != nil {
				return err
			}
			s, err := mpi.Isend(p.c, out, peer, k)
			if err != nil {
				return err
			}
			reqs = append(reqs, r, s)
		}
		if _, err := mpi.Waitall(ctx, reqs...); err != nil {
			return err
		}
		for k, peer := range peers {
			if err := stamped(in[k], peer, step); err != nil {
				return err
			}
		}
		if pause > 0 {
			time.Sleep(pause)
		}
	}
	return nil
}

func (p *patternRank) sweep(ctx context.Context, n, planes, size int) error {
	me := p.c.Rank()
	row, col := me/p.half, me%p.half
	at := func(row, col int) int {
		if row < 0 || row > 1 || col < 0 || col >= p.half {
			return mpi.ProcNull
		}
		return row*p.half + col
	}
	buf := make([]byte, size)
	for range n {
		for back, d := range []int{1, -1} {
			for k := range planes {
				for _, from := range []int{at(row-d, col), at(row, col-d)} {
					if _, err := mpi.Recv(ctx, p.c, buf, from, back); err != nil {
						return err
					}
					if from != mpi.ProcNull {
						if err := stamped(buf, from, k); err != nil {
							return err
						}
					}
				}
				stamp(buf, me, k)
				for _, to := range []int{at(row+d, col), at(row, col+d)} {
					if err := mpi.Send(ctx, p.c, buf, to, back); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func (p *patternRank) alltoall(ctx context.Context, n, size int) error {
	ranks := p.c.Size()
	out, in := make([]byte, ranks*size), make([]byte, ranks*size)
	for step := range n {
		for r := range ranks {
			stamp(out[r*size:(r+1)*size], p.c.Rank(), step*ranks+r)
		}
		if err := mpi.Alltoall(ctx, p.c, out, in); err != nil {
			return err
		}
		for r := range ranks {
			if err := stamped(in[r*size:(r+1)*size], r, step*ranks+p.c.Rank()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *patternRank) allreduce(ctx context.Context, n, values int) error {
	out, in := make([]float64, values), make([]float64, values)
	ranks := float64(p.c.Size())
	for step := range n {
		for i := range out {
			out[i] = float64(p.c.Rank() + step + i%7)
		}
		if err := mpi.Allreduce(ctx, p.c, out, in, mpi.Sum); err != nil {
			return err
		}
		for i := range in {
			if want := ranks*(ranks-1)/2 + ranks*float64(step+i%7); in[i] != want {
				return fmt.Errorf("sum %d of step %d is %v, want %v", i, step, in[i], want)
			}
		}
	}
	return nil
}
