package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/weftstack/weft/mpi"
	"golang.org/x/term"
)

// result is what rank 0 reports.
type result struct {
	ranks   int
	tasks   int
	bytes   int64
	seconds float64
	digests [][sha256.Size]byte
	hist    [256]uint64

	verified bool
	sha      [sha256.Size]byte // of the whole input
}

// lead is rank 0: it deals the tasks out, collects the results and checks them.
func lead(ctx context.Context, c *mpi.Comm, o *options) (*result, error) {
	src, err := open(o)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	res := &result{
		ranks: c.Size(), tasks: src.count(), bytes: src.size(),
		digests: make([][sha256.Size]byte, src.count()),
	}
	bar := newBar(res.tasks)
	start := time.Now()
	if c.Size() == 1 {
		err = alone(src, o, res, bar)
	} else {
		err = farm(ctx, c, src, o, res, bar)
	}
	if err != nil {
		return nil, err
	}
	res.seconds = time.Since(start).Seconds()
	bar.Finish()
	return res, verify(src, o, res)
}

// newBar returns a progress bar: on a terminal only.
func newBar(tasks int) *progressbar.ProgressBar {
	return progressbar.NewOptions(tasks,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetVisibility(term.IsTerminal(int(os.Stderr.Fd()))),
		progressbar.OptionSetDescription("farm"),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("tasks"),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
}

// farm deals to the workers and collects at the same time.
func farm(ctx context.Context, c *mpi.Comm, src source, o *options, res *result, bar *progressbar.ProgressBar) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dealt := make(chan struct{})
	go func() {
		defer close(dealt)
		if err := deal(ctx, c, src, o); err != nil {
			cancel(err)
		}
	}()
	if err := collect(ctx, c, res, bar); err != nil {
		cancel(err)
	}
	<-dealt
	return context.Cause(ctx)
}

// deal answers every request with -fanout messages, tasks as long as there are
// any, until every worker has said goodbye.
func deal(ctx context.Context, c *mpi.Comm, src source, o *options) error {
	out := newSendRing(int(o.task))
	request := make([]byte, 1)
	next := 0
	for workers := c.Size() - 1; workers > 0; {
		st, err := mpi.Recv(ctx, c, request, mpi.AnySource, tagRequest)
		if err != nil {
			return err
		}
		if request[0] == bye {
			workers--
			continue
		}
		for range o.fanout {
			buf, err := out.next(ctx)
			if err != nil {
				return err
			}
			tag, length := tagNone, 0
			if next < src.count() {
				piece, err := src.read(next, buf[taskHeader:])
				if err != nil {
					return err
				}
				binary.BigEndian.PutUint64(buf, uint64(next))
				tag, length = tagTask+next%o.tags, taskHeader+len(piece)
				next++
			}
			if err := out.send(c, buf[:length], st.Source, tag); err != nil {
				return err
			}
		}
	}
	return out.drain(ctx)
}

// collect receives one result for every task.
func collect(ctx context.Context, c *mpi.Comm, res *result, bar *progressbar.ProgressBar) error {
	buf := make([]byte, resultLen)
	seen := make([]bool, res.tasks)
	for range res.tasks {
		st, err := mpi.Recv(ctx, c, buf, mpi.AnySource, tagResult)
		if err != nil {
			return err
		}
		index, d, err := parseResult(buf[:st.Bytes])
		if err != nil {
			return fmt.Errorf("rank %d: %w", st.Source, err)
		}
		if index >= uint64(res.tasks) || seen[index] {
			return fmt.Errorf("rank %d: a result for task %d that is not awaited", st.Source, index)
		}
		seen[index] = true
		res.add(int(index), &d)
		bar.Add(1)
	}
	return nil
}

// add takes one result in.
func (r *result) add(index int, d *digest) {
	r.digests[index] = d.sum
	for i, n := range d.hist {
		r.hist[i] += n
	}
}

// alone does all tasks here: a farm of one rank has no workers.
func alone(src source, o *options, res *result, bar *progressbar.ProgressBar) error {
	buf := make([]byte, o.task)
	for i := range res.tasks {
		piece, err := src.read(i, buf)
		if err != nil {
			return err
		}
		d := compute(piece)
		res.add(i, &d)
		bar.Add(1)
	}
	return nil
}

// verify computes everything once more, alone and from the input itself, and
// the digest of the whole.
func verify(src source, o *options, res *result) error {
	buf := make([]byte, o.task)
	whole := sha256.New()
	var hist [256]uint64
	same := true
	for i := range res.tasks {
		piece, err := src.read(i, buf)
		if err != nil {
			return err
		}
		whole.Write(piece)
		d := compute(piece)
		same = same && d.sum == res.digests[i]
		for b, n := range d.hist {
			hist[b] += n
		}
	}
	whole.Sum(res.sha[:0])
	res.verified = same && hist == res.hist
	return nil
}
