package datachannel_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/datachannel"
	"github.com/weftstack/weft/sctp/sctptest"
)

// Everything at once: losses, reordering and duplicates; channels of all kinds that both sides open,
// use in both directions, and close while the other side still sends, so that their numbers are used
// again all the time; readers that pause. Of a reliable channel all that was sent before Close comes,
// once, and in order if it is ordered; of another one a part, once; nothing comes on another channel.
// When all is over the sessions have no channels, and memory and goroutines are what they were.
func TestConservation(t *testing.T) {
	channels := 400
	if testenv.Soak(t, 0) > 0 {
		channels = 20_000
	}
	if testenv.Race {
		channels /= 4
	}
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("WEFT_CONSERVATION"), 10, 64); err == nil {
		seed = s // of a failure
	}
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		link := sctptest.Link{Delay: 3 * time.Millisecond, Jitter: time.Millisecond, Loss: 0.02, Duplicate: 0.02, Reorder: 0.02}
		e := end{sctp: sctp.Config{RecvBuffer: 128 << 10, SendBuffer: 128 << 10}, dc: datachannel.Config{AssemblyBuffer: 1 << 20}}
		p := newPair(t, link, e, e)
		c := &conservation{t: t, seed: seed, ends: map[string]*conserved{}}
		c.run(p, 50) // what is kept for later is there then
		synctest.Wait()
		heapBefore, goroutines := heap(), runtime.NumGoroutine()
		c.run(p, channels)
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, s := range []*datachannel.Session{p.a, p.b} {
			if st := s.Stats(); st.Channels != 0 || st.AssemblyBytes != 0 || st.Violations != 0 || st.Refused != 0 {
				t.Errorf("seed %d: %+v", seed, st)
			}
		}
		if n := testenv.Goroutines(goroutines); n > goroutines {
			t.Errorf("seed %d: %d goroutines, %d before", seed, n, goroutines)
		}
		after := heap()
		t.Logf("%d channels, %d messages; heap %d KiB before, %d after", channels, c.messages.Load(), heapBefore>>10, after>>10)
		if grown := after - heapBefore; grown > 1<<20 {
			t.Errorf("seed %d: the heap grew by %d KiB", seed, grown>>10)
		}
		// The numbers are free.
		for i := range uint16(4) {
			ch, err := p.a.Open(t.Context(), "", datachannel.Options{})
			if err != nil || ch.ID() != 2*i {
				t.Errorf("seed %d: %v, %v; want number %d", seed, ch, err, 2*i)
			}
		}
	})
}

type conservation struct {
	t        *testing.T
	seed     uint64
	next     atomic.Int64
	messages atomic.Int64
	mu       sync.Mutex
	ends     map[string]*conserved // by label; guarded by mu
}

// conserved is a channel: what each side has sent before it closed.
type conserved struct {
	label  string
	o      datachannel.Options
	count  [2]int // messages that the opener and the acceptor send
	closer int    // the side that closes when it has sent everything; the other one reads to the end
	done   sync.WaitGroup
}

// run opens n channels, some at a time, and waits until they are closed.
func (c *conservation) run(p *pair, n int) {
	var workers, acceptors sync.WaitGroup
	stop := make(chan struct{})
	for _, s := range []*datachannel.Session{p.a, p.b} {
		acceptors.Go(func() {
			for {
				accepted := make(chan *datachannel.Channel)
				ctx, cancel := contextUntil(stop)
				go func() {
					defer cancel()
					ch, err := s.Accept(ctx)
					if err != nil {
						ch = nil
					}
					accepted <- ch
				}()
				ch := <-accepted
				if ch == nil {
					return
				}
				c.mu.Lock()
				x := c.ends[ch.Label()]
				c.mu.Unlock()
				if x == nil {
					c.t.Errorf("seed %d: accepted %v, which was not opened", c.seed, ch)
					return
				}
				x.done.Go(func() { c.use(ch, x, 1, rand.New(rand.NewPCG(c.seed, uint64(ch.ID())))) })
			}
		})
	}
	left := atomic.Int64{}
	left.Store(int64(n))
	for w := range 8 {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(c.seed, uint64(w)))
			for left.Add(-1) >= 0 {
				s := []*datachannel.Session{p.a, p.b}[w%2]
				x := c.newChannel(r)
				ch, err := s.Open(c.t.Context(), x.label, x.o)
				if err != nil {
					c.t.Errorf("seed %d: %v", c.seed, err)
					return
				}
				c.use(ch, x, 0, r)
				x.done.Wait()
			}
		})
	}
	workers.Wait()
	close(stop)
	acceptors.Wait()
}

func (c *conservation) newChannel(r *rand.Rand) *conserved {
	x := &conserved{label: fmt.Sprintf("channel %d", c.next.Add(1)), closer: r.IntN(2)}
	x.o.Unordered = r.IntN(2) == 0
	switch r.IntN(4) {
	case 0:
		x.o.PR, x.o.MaxRetransmits = sctp.LimitedRetransmissions, uint32(r.IntN(3))
	case 1:
		x.o.PR, x.o.Lifetime = sctp.Timed, time.Duration(1+r.IntN(50))*time.Millisecond
	}
	x.o.Priority = []uint16{0, 128, 256, 512, 1024}[r.IntN(5)]
	x.count = [2]int{r.IntN(30), r.IntN(30)}
	c.mu.Lock()
	c.ends[x.label] = x
	c.mu.Unlock()
	return x
}

// use sends and receives on one side of a channel until it is closed.
func (c *conservation) use(ch *datachannel.Channel, x *conserved, side int, r *rand.Rand) {
	var sending sync.WaitGroup
	seed := r.Uint64()
	sending.Go(func() {
		r := rand.New(rand.NewPCG(seed, 0))
		for i := range x.count[side] {
			msg := make([]byte, len(x.label)+3+[]int{0, 10, 1000, 5000, 40_000}[r.IntN(5)])
			copy(msg, x.label)
			msg[len(x.label)] = byte(side)
			binary.BigEndian.PutUint16(msg[len(x.label)+1:], uint16(i))
			if err := ch.Send(c.t.Context(), msg); err != nil {
				if side == x.closer || !errors.Is(err, datachannel.ErrClosed) {
					c.t.Errorf("seed %d: %s: send: %v", c.seed, x.label, err)
				}
				return // the other side has closed
			}
			if r.IntN(10) == 0 {
				time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			}
		}
		if side == x.closer {
			ch.Close()
		}
	})
	seen := map[int]bool{}
	last := -1
	for {
		m, err := ch.Recv(c.t.Context(), nil)
		if err != nil {
			if side == x.closer && !errors.Is(err, datachannel.ErrClosed) || side != x.closer && err != io.EOF {
				c.t.Errorf("seed %d: %s: receive: %v", c.seed, x.label, err)
			}
			break
		}
		n := len(x.label)
		if len(m.Data) < n+3 || string(m.Data[:n]) != x.label || int(m.Data[n]) != 1-side {
			c.t.Errorf("seed %d: %s received a message of %.20q", c.seed, x.label, m.Data)
			break
		}
		i := int(binary.BigEndian.Uint16(m.Data[n+1:]))
		if seen[i] || !x.o.Unordered && i <= last {
			c.t.Errorf("seed %d: %s: message %d after %d, seen %v", c.seed, x.label, i, last, seen[i])
		}
		seen[i], last = true, i
		c.messages.Add(1)
		if r.IntN(20) == 0 {
			time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond) // a slow reader
		}
	}
	if side != x.closer && x.o.PR == sctp.Reliable && len(seen) != x.count[x.closer] {
		c.t.Errorf("seed %d: %s: %d of %d messages came", c.seed, x.label, len(seen), x.count[x.closer])
	}
	sending.Wait()
	ch.Close()
	select {
	case <-ch.Done():
	case <-time.After(5 * time.Minute):
		c.t.Errorf("seed %d: %s is not closed: %s", c.seed, x.label, ch.Debug())
	}
	if err := ch.Err(); err != nil {
		c.t.Errorf("seed %d: %s: %v", c.seed, x.label, err)
	}
	if side == 0 {
		c.mu.Lock()
		delete(c.ends, x.label)
		c.mu.Unlock()
	}
}
