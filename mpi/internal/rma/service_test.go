package rma

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

// TestAnswersAreBounded has an origin ask for far more than it receives: the target holds answers up to the limit, and
// goes on as soon as one is received. A goroutine of the program that polls does not wait for that.
func TestAnswersAreBounded(t *testing.T) {
	for _, polls := range []bool{false, true} {
		for _, size := range []int{MaxChunk, MaxChunk/2 + 1, 1} {
			t.Run(fmt.Sprint("polls=", polls, "/bytes=", size), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { floodWithGets(t, polls, size) })
			})
		}
	}
}

func floodWithGets(t *testing.T, polls bool, size int) {
	const most = maxAnswers / answerCost // answers, if they have no data
	n := min(4*maxAnswers/size, 2*most)
	mem := make([]byte, size+n)
	for i := range mem {
		mem[i] = byte(rand.Uint32())
	}
	c := &testComm{size: 2, polls: polls}
	w := newTestWindow(c, mem)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		w.serve(ctx, 1)
		close(over)
	}()
	synctest.Wait()
	for i := range n {
		c.request(amHeader{kind: amGet, answer: true, num: uint32(1 + i), off: uint64(i), n: uint64(size)})
	}
	for first := true; ; first = false {
		c.serve()
		synctest.Wait()
		all, held := c.pending(1)
		if held > maxAnswers || len(all) > most {
			t.Errorf("%d answers hold %d bytes", len(all), held)
		}
		if first && 2*held < maxAnswers-2*MaxChunk && 2*len(all) < most { // memory is up to twice the data
			t.Errorf("%d answers with %d bytes are all that is sent at a time", len(all), held)
		}
		if len(all) == 0 {
			break
		}
		for _, r := range all[:1+len(all)/2] {
			i := (r.tag - answerTag(1)) / 2
			if !bytes.Equal(r.b, mem[i:i+size]) {
				t.Errorf("wrong answer to request %d", i)
			}
			r.end(nil)
		}
	}
	if len(c.sends) != n {
		t.Errorf("%d answers, want %d", len(c.sends), n)
	}
	stop()
	<-over
}
