package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/weftstack/weft/verbs"
)

const (
	creditLen = 4 // bytes of a count of messages, in the byte order of the machines
	// peerSpin is how long memory is looked at without giving way, peerNap how
	// long the processor is left to others then.
	peerSpin = 20 * time.Microsecond
	peerNap  = 5 * time.Microsecond
	// peerFirst bounds the wait for the first write of a client, peerCredit that
	// for the last credits of a size.
	peerFirst  = 30 * time.Second
	peerCredit = 5 * time.Second
)

// errPeerFirst says why nothing comes back from a peer that we may not send to.
var errPeerFirst = errors.New("the client has sent no data: the server of an MPA connection may not send first (RFC 5044, Section 7.1.2) without the peer-to-peer mode of RFC 6581")

// measure measures one size, or with -a all.
func (e *peerEnd) measure(ctx context.Context) ([]perftestRow, error) {
	var rows []perftestRow
	passive := !e.client && e.Mode != "send" && !(e.Mode == "write" && e.Latency) // only its memory is used
	if !passive {
		for _, n := range e.sizes() {
			one := *e.options
			one.Size, one.samples = n, new(perftestSamples)
			if err := e.measureSize(ctx, &one); err != nil {
				return nil, err
			}
			rows = e.show(rows, one.perftestRow())
		}
	}
	switch {
	case e.Latency && e.Mode == "write":
		return rows, nil // without a goodbye
	case !e.Latency && e.Mode != "send":
		if err := e.sync(ctx); err != nil {
			return nil, err
		}
		var mine perftestRow
		if !passive {
			mine = rows[len(rows)-1]
		}
		theirs, err := e.report(ctx, mine)
		if err != nil {
			return nil, err
		}
		if passive {
			rows = e.show(rows, theirs)
		}
	}
	return rows, e.sync(ctx)
}

func (e *peerEnd) show(rows []perftestRow, row perftestRow) []perftestRow {
	if !e.json {
		row.print(e.options)
	}
	return append(rows, row)
}

// measureSize measures one size.
func (e *peerEnd) measureSize(ctx context.Context, o *options) error {
	for _, q := range e.qps {
		q.posted, q.ended, q.received, q.renewed = 0, 0, 0, 0
	}
	s := o.samples
	if o.Mode != "send" {
		switch {
		case o.Latency && o.Mode == "write":
			return e.pingPongMemory(ctx, o.Size, s)
		case o.Latency:
			return e.readOne(ctx, o.Size, s)
		}
		return e.load(ctx, o.Size, s)
	}
	if e.Latency || !e.client {
		for _, q := range e.qps {
			for range e.rx {
				if err := e.postRecv(q, o.Size); err != nil {
					return err
				}
			}
		}
	}
	if err := e.sync(ctx); err != nil { // they are posted
		return err
	}
	if e.Latency {
		return e.pingPong(ctx, o.Size, s)
	}
	for _, q := range e.qps {
		poke(q.credit, 0)
	}
	run := e.load
	if !e.client {
		run = e.drain
	}
	err := run(ctx, o.Size, s)
	if err == nil && e.all {
		if err = e.sync(ctx); err == nil && e.client {
			err = e.lastCredits(ctx)
		}
	}
	return err
}

// lastCredits waits until the last credits are here, so that they are not taken
// for some of the next size.
func (e *peerEnd) lastCredits(ctx context.Context) error {
	last := e.iterations
	for last > 0 && !e.worthCredit(last) {
		last--
	}
	for _, q := range e.qps {
		err := e.look(ctx, peerCredit, func() bool { return peek32(q.credit) == uint32(last) })
		if err != nil && !errors.Is(err, errPeerFirst) {
			return err
		}
	}
	return nil
}

// worthCredit tells whether the server says so when it has received n messages.
func (e *peerEnd) worthCredit(n int) bool { return n%e.rx%(e.rx/3) == 0 }

func (e *peerEnd) postRecv(q *peerQP, size int) error {
	q.renewed++
	e.sge[0] = q.in.Slice(0, size)
	e.rwr[0] = verbs.RecvWR{ID: uint64(q.index), SGL: e.sge[:]}
	return whyEnded(q.qp, q.qp.PostRecv(e.rwr[:]...))
}

func (e *peerEnd) post(q *peerQP, size int) error {
	q.posted++
	e.sge[0] = q.out.Slice(0, size)
	e.swr[0] = verbs.SendWR{ID: uint64(q.index), Op: rdmaOps[e.Mode], Flags: verbs.Signaled, SGL: e.sge[:],
		Remote: q.remote}
	return whyEnded(q.qp, q.qp.PostSend(e.swr[:]...))
}

// reap waits for completions.
func (e *peerEnd) reap(ctx context.Context) ([]verbs.WC, error) {
	n, err := e.cq.Wait(ctx, e.wc)
	if err != nil {
		return nil, err
	}
	for i := range n {
		if err := e.wc[i].Err(); err != nil {
			return nil, err
		}
	}
	return e.wc[:n], nil
}

// load is the client of a bandwidth measurement: it keeps work requests under
// way, of sends as many as the server has said to have receives for.
func (e *peerEnd) load(ctx context.Context, size int, s *perftestSamples) error {
	start := time.Now()
	free := func(q *peerQP) bool {
		return q.posted < e.iterations && q.posted-q.ended < e.tx &&
			(e.Mode != "send" || uint32(q.posted+1)-peek32(q.credit) < uint32(e.rx))
	}
	for total := e.iterations * len(e.qps); len(s.ended) < total; {
		for _, q := range e.qps {
			for free(q) {
				s.begun = append(s.begun, time.Since(start))
				if err := e.post(q, size); err != nil {
					return err
				}
			}
		}
		if len(s.ended) == len(s.begun) { // all wait for credit
			if err := e.look(ctx, 0, func() bool { return slices.ContainsFunc(e.qps, free) }); err != nil {
				return err
			}
			continue
		}
		done, err := e.reap(ctx)
		if err != nil {
			return err
		}
		now := time.Since(start)
		for i := range done {
			e.qps[done[i].ID].ended++
			s.ended = append(s.ended, now)
		}
	}
	s.took = time.Since(start)
	s.bytes = uint64(len(s.ended)) * uint64(size)
	return nil
}

// drain is the server of a bandwidth measurement with sends: it writes to the
// client how many it has received, three times while as many as were posted
// arrive. Time counts from the first.
func (e *peerEnd) drain(ctx context.Context, size int, s *perftestSamples) error {
	var start time.Time
	credits := 0
	for got, total := 0, e.iterations*len(e.qps); got < total || credits > 0; {
		done, err := e.reap(ctx)
		if err != nil {
			return err
		}
		if start.IsZero() {
			start = time.Now()
		}
		for i := range done {
			if !done[i].Recv {
				credits--
				continue
			}
			q := e.qps[done[i].ID]
			got++
			q.received++
			if q.renewed < e.iterations {
				if err := e.postRecv(q, size); err != nil {
					return err
				}
			}
			if e.worthCredit(q.received) {
				count := binary.NativeEndian.AppendUint32(nil, uint32(q.received))
				wr := verbs.SendWR{ID: uint64(q.index), Op: verbs.OpWrite, Flags: verbs.Signaled, Inline: count, Remote: q.remote}
				if err := q.qp.PostSend(wr); err != nil {
					return whyEnded(q.qp, err)
				}
				credits++
			}
		}
	}
	s.took = max(time.Since(start), 1)
	s.ended = make([]time.Duration, e.iterations*len(e.qps))
	s.bytes = uint64(len(s.ended)) * uint64(size)
	return nil
}

// pingPong sends a message and waits for one, in turn with the other side. The
// client begins.
func (e *peerEnd) pingPong(ctx context.Context, size int, s *perftestSamples) error {
	q := e.qps[0]
	last := time.Now()
	for n := 0; n < e.iterations; n++ {
		for _, send := range []bool{e.client, !e.client} {
			if send {
				if err := e.post(q, size); err != nil {
					return err
				}
				continue
			}
			for q.received == n || q.posted-q.ended >= e.tx {
				done, err := e.reap(ctx)
				if err != nil {
					return err
				}
				for i := range done {
					if !done[i].Recv {
						q.ended++
						continue
					}
					if q.received++; q.renewed < e.iterations {
						if err := e.postRecv(q, size); err != nil {
							return err
						}
					}
				}
			}
		}
		now := time.Now()
		s.trips = append(s.trips, now.Sub(last))
		last = now
	}
	return e.finish(ctx, q)
}

// finish waits for the completions of all that was posted.
func (e *peerEnd) finish(ctx context.Context, q *peerQP) error {
	for q.ended < q.posted {
		done, err := e.reap(ctx)
		if err != nil {
			return err
		}
		q.ended += len(done)
	}
	return nil
}

// pingPongMemory is pingPong with writes, each of which ends in its number. The
// server begins.
func (e *peerEnd) pingPongMemory(ctx context.Context, size int, s *perftestSamples) error {
	q := e.qps[0]
	last := time.Now()
	for n := 1; n <= e.iterations; n++ {
		for _, write := range []bool{!e.client, e.client} {
			if write {
				q.out.Bytes()[size-1] = byte(n)
				if err := e.post(q, size); err != nil {
					return err
				}
				if err := e.finish(ctx, q); err != nil {
					return err
				}
				continue
			}
			limit := time.Duration(0)
			if n == 1 && !e.client {
				limit = peerFirst
			}
			if err := e.look(ctx, limit, func() bool { return peek8(q.in, size-1) == byte(n) }); err != nil {
				return err
			}
		}
		now := time.Now()
		s.trips = append(s.trips, now.Sub(last))
		last = now
	}
	return nil
}

// readOne makes one read at a time.
func (e *peerEnd) readOne(ctx context.Context, size int, s *perftestSamples) error {
	q := e.qps[0]
	for range e.iterations {
		start := time.Now()
		if err := e.post(q, size); err != nil {
			return err
		}
		if err := e.finish(ctx, q); err != nil {
			return err
		}
		s.trips = append(s.trips, time.Since(start))
	}
	return nil
}

// look looks at memory that the other side writes until there is something, or
// for a time if limit is not 0.
func (e *peerEnd) look(ctx context.Context, limit time.Duration, found func() bool) error {
	start := time.Now()
	for !found() {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, q := range e.qps {
			if err := q.qp.Err(); err != nil && !found() {
				return err
			}
		}
		switch took := time.Since(start); {
		case limit > 0 && took > limit:
			return errPeerFirst
		case took < peerSpin:
			runtime.Gosched()
		default:
			time.Sleep(peerNap)
		}
	}
	return nil
}

// peek8 and peek32 look at memory that the other side may be writing, as RDMA
// programs do.
//
//go:norace
//go:noinline
func peek8(mr *verbs.MR, at int) byte { return mr.Bytes()[at] }

//go:norace
//go:noinline
func peek32(mr *verbs.MR) uint32 { return *(*uint32)(unsafe.Pointer(unsafe.SliceData(mr.Bytes()))) }

// poke sets what peek32 returns.
//
//go:norace
//go:noinline
func poke(mr *verbs.MR, v uint32) { *(*uint32)(unsafe.Pointer(unsafe.SliceData(mr.Bytes()))) = v }
