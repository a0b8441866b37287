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
	done    []bool // whose digests are there
	hist    [256]uint64

	verified bool
	sha      [sha256.Size]byte // of the whole input
}

// manager is what rank 0 knows of the job.
type manager struct {
	o     *options
	src   source
	res   *result
	bar   *progressbar.ProgressBar
	start time.Time
}

func newManager(o *options) (*manager, error) {
	src, err := open(o)
	if err != nil {
		return nil, err
	}
	n := src.count()
	return &manager{
		o: o, src: src, bar: newBar(n), start: time.Now(),
		res: &result{tasks: n, bytes: src.size(), digests: make([][sha256.Size]byte, n), done: make([]bool, n)},
	}, nil
}

// lead is rank 0: it deals the tasks out, collects the results and checks them.
func lead(ctx context.Context, c *mpi.Comm, o *options) (*result, error) {
	m, err := newManager(o)
	if err != nil {
		return nil, err
	}
	defer m.src.Close()
	if err := m.farm(ctx, c); err != nil {
		return nil, err
	}
	return m.finish(c)
}

// finish checks the results.
func (m *manager) finish(c *mpi.Comm) (*result, error) {
	m.res.ranks = c.Size()
	m.res.seconds = time.Since(m.start).Seconds()
	m.bar.Finish()
	return m.res, verify(m.src, m.o, m.res)
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

// farm does the tasks that are not done: it deals to the workers and collects at
// the same time, or does them alone if there are none.
func (m *manager) farm(ctx context.Context, c *mpi.Comm) error {
	src, o, res, bar := m.src, m.o, m.res, m.bar
	if c.Size() == 1 {
		return alone(src, o, res, bar)
	}
	todo := res.todo()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dealt := make(chan struct{})
	go func() {
		defer close(dealt)
		if err := deal(ctx, c, src, o, todo); err != nil {
			cancel(err)
		}
	}()
	if err := collect(ctx, c, res, len(todo), bar); err != nil {
		cancel(err)
	}
	<-dealt
	return context.Cause(ctx)
}

// deal answers every request with -fanout messages, tasks as long as there are
// any, until every worker has said goodbye.
func deal(ctx context.Context, c *mpi.Comm, src source, o *options, todo []int) error {
	out := newSendRing(int(o.task))
	request := make([]byte, 1)
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
			if len(todo) > 0 {
				piece, err := src.read(todo[0], buf[taskHeader:])
				if err != nil {
					return err
				}
				binary.BigEndian.PutUint64(buf, uint64(todo[0]))
				tag, length = tagTask+todo[0]%o.tags, taskHeader+len(piece)
				todo = todo[1:]
			}
			if err := out.send(c, buf[:length], st.Source, tag); err != nil {
				return err
			}
		}
	}
	return out.drain(ctx)
}

// collect receives n results.
func collect(ctx context.Context, c *mpi.Comm, res *result, n int, bar *progressbar.ProgressBar) error {
	buf := make([]byte, resultLen)
	for range n {
		st, err := mpi.Recv(ctx, c, buf, mpi.AnySource, tagResult)
		if err != nil {
			return err
		}
		index, d, err := parseResult(buf[:st.Bytes])
		if err != nil {
			return fmt.Errorf("rank %d: %w", st.Source, err)
		}
		if index >= uint64(res.tasks) || res.done[index] {
			return fmt.Errorf("rank %d: unexpected result for task %d", st.Source, index)
		}
		res.add(int(index), &d)
		bar.Add(1)
	}
	return nil
}

// add takes one result in.
func (r *result) add(index int, d *digest) {
	r.digests[index] = d.sum
	r.done[index] = true
	for i, n := range d.hist {
		r.hist[i] += n
	}
}

// todo lists the tasks that are not done.
func (r *result) todo() []int {
	var out []int
	for i, done := range r.done {
		if !done {
			out = append(out, i)
		}
	}
	return out
}

// alone does the tasks here: a farm of one rank has no workers.
func alone(src source, o *options, res *result, bar *progressbar.ProgressBar) error {
	buf := make([]byte, o.task)
	for _, i := range res.todo() {
		piece, err := src.read(i, buf)
		if err != nil {
			return err
		}
		d := compute(piece)
		time.Sleep(o.pause)
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
