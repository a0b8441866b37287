package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/weftstack/weft/mpi"
)

// Message tags. Task types come after these, one tag each.
const (
	tagRequest = iota // worker → manager: one byte, please or bye
	tagResult         // worker → manager
	tagNone           // manager → worker, in place of a task: there are no more
	tagTask           // manager → worker: tagTask + type of the task
)

// What a request says.
const (
	please byte = iota // give me -fanout tasks
	bye                // this worker asks for nothing more
)

// work is a worker: each of its goroutines keeps one request outstanding. A
// request is always answered with exactly -fanout messages, any of which may be
// received by any of the goroutines, so their sum comes out.
func work(ctx context.Context, c *mpi.Comm, o *options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for range o.outstanding {
		wg.Go(func() {
			if err := serve(ctx, c, o); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return mpi.Send(ctx, c, []byte{bye}, 0, tagRequest)
}

// serve asks for tasks and does them until there are no more.
func serve(ctx context.Context, c *mpi.Comm, o *options) error {
	buf := make([]byte, taskHeader+int(o.task))
	request, result := []byte{please}, make([]byte, 0, resultLen)
	for more := true; more; {
		if err := mpi.Send(ctx, c, request, 0, tagRequest); err != nil {
			return err
		}
		for range o.fanout {
			st, err := mpi.Recv(ctx, c, buf, 0, mpi.AnyTag)
			if err != nil {
				return err
			}
			if st.Tag == tagNone {
				more = false
				continue
			}
			if st.Tag < tagTask || st.Tag >= tagTask+o.tags || st.Bytes < taskHeader {
				return fmt.Errorf("invalid task: %d bytes with tag %d", st.Bytes, st.Tag)
			}
			d := compute(buf[taskHeader:st.Bytes])
			time.Sleep(o.pause)
			result = appendResult(result[:0], binary.BigEndian.Uint64(buf), &d)
			if err := mpi.Send(ctx, c, result, 0, tagResult); err != nil {
				return err
			}
		}
	}
	return nil
}
