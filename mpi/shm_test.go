package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/mpi/internal/cma"
	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// overMemory reports whether w exchanges messages with all others through memory.
func overMemory(w *World) bool {
	for r, p := range w.eng.Peers {
		if _, ok := p.Link.(*shmLink); r != w.Rank() && (!ok || p.Shared.Load() == nil) {
			return false
		}
	}
	return true
}

// Memory is shared where it can be, and only there.
func TestSharedMemoryUse(t *testing.T) {
	here := runtime.GOOS == "linux"
	on := WithSharedMemory(true)
	hybrid := WithTransport(TransportHybrid)
	for _, tt := range []struct {
		name string
		want bool
		opts []Option
	}{
		{"hybrid", here, []Option{hybrid, on}},
		{"off", false, []Option{hybrid}},
		{"sctp", false, []Option{WithTransport(TransportSCTP), on}},
		{"tcp", false, []Option{WithTransport(TransportTCP), on}},
		{"capture", false, []Option{hybrid, on, WithCapture(t.TempDir() + "/capture")}},
		{"hosts", false, []Option{hybrid, on, func(o *options) error {
			o.hostOf = func(rank int) string { return fmt.Sprint("host", rank) }
			return nil
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			local(t, 3, func(ctx context.Context, c *Comm) error {
				if got := overMemory(c.w); got != tt.want {
					return fmt.Errorf("through memory: %v, want %v", got, tt.want)
				}
				want := "0"
				if tt.want {
					want = "1"
				}
				for _, tun := range c.w.Tunables() {
					if tun.Name == "WEFT_SHARED" && tun.Value != want {
						return fmt.Errorf("WEFT_SHARED = %s, want %s", tun.Value, want)
					}
				}
				return Barrier(ctx, c)
			}, tt.opts...)
		})
	}
}

func TestSharedMemoryFromEnv(t *testing.T) {
	for s, want := range map[string]bool{"": true, "1": true, "0": false} {
		o := new(options)
		if err := o.fromEnv(func(name string) string { return map[string]string{"WEFT_SHARED": s}[name] }); err != nil || o.shared != want {
			t.Errorf("WEFT_SHARED=%q: %v, %v", s, o.shared, err)
		}
	}
	err := new(options).fromEnv(func(name string) string { return map[string]string{"WEFT_SHARED": "yes"}[name] })
	if !errors.Is(err, ErrOption) {
		t.Errorf("WEFT_SHARED=yes: %v", err)
	}
}

// sharing needs memory that ranks share.
func sharing(t *testing.T) *sharedMemory {
	t.Helper()
	s := newSharedMemory(new(poll.Spinning))
	if s == nil {
		if runtime.GOOS == "linux" {
			t.Fatal("no shared memory")
		}
		t.Skip("no shared memory on", runtime.GOOS)
	}
	t.Cleanup(s.close)
	return s
}

// A rank that says nothing sensible about its memory is sent messages over the
// network, and so are all where there are too many.
func TestSharedMemoryRefuses(t *testing.T) {
	connect := func(n int, change func(c *segmentRef)) *p2p.Engine {
		s := sharing(t)
		e := p2p.New(&p2p.Config{Size: n, Unexpected: 1 << 20, Streams: 1, PeerError: rankError})
		refs := make([]*segmentRef, n)
		for i := range refs {
			e.Peers[i].Link = p2p.NoLink{}
			c := s.ref
			if i > 0 {
				change(&c)
			}
			refs[i] = &c
		}
		s.connect(e, refs)
		return e
	}
	same := func(*segmentRef) {}
	for _, tt := range []struct {
		name     string
		ranks    int
		change   func(c *segmentRef)
		out, in_ bool
	}{
		{"two", 2, same, true, true},
		{"most", MaxSharedRanks, same, true, true},
		{"too many", MaxSharedRanks + 1, same, false, false},
		{"elsewhere", 2, func(c *segmentRef) { c.Place = "elsewhere" }, false, false},
		{"nonce", 2, func(c *segmentRef) { c.Nonce = "00" }, false, true},
		{"process", 2, func(c *segmentRef) { c.PID = 1 << 30 }, false, true},
		{"file", 2, func(c *segmentRef) { c.FD = 1 << 30 }, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := connect(tt.ranks, tt.change)
			for _, p := range e.Peers[1:] {
				_, out := p.Link.(*shmLink)
				if in := p.Shared.Load() != nil; out != tt.out || in != tt.in_ {
					t.Fatalf("rank %d: sends through memory %v, receives %v; want %v, %v", p.Rank, out, in, tt.out, tt.in_)
				}
			}
		})
	}
}

// The rings of all numbers of ranks fit in what a rank shares, or are the smallest.
func TestRingSizes(t *testing.T) {
	for n := 1; n < MaxSharedRanks; n++ {
		size := ringSize(n)
		if size&(size-1) != 0 || size < minRing || size > maxRing || size > minRing && n*size > shmBudget {
			t.Errorf("%d rings of %d bytes", n, size)
		}
	}
}

// newRing returns both ends of a ring of the memory of this process.
func newRing(size int) (*ringWriter, *ringReader) {
	ctl, data := new(ringControl), make([]byte, size)
	return &ringWriter{ctl: ctl, data: data}, &ringReader{ctl: ctl, data: data, sent: new(atomic.Uint64)}
}

// What is written to a ring is read from it, however it is cut.
func TestRing(t *testing.T) {
	seed := testSeed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, size := range []int{1, 64, 4 * ringStep} {
		w, r := newRing(size)
		sent, got := make([]byte, 50*size), []byte(nil)
		pattern(sent, size)
		for at := 0; len(got) < len(sent); {
			if rng.IntN(2) == 0 {
				n := w.write(sent[at:min(at+rng.IntN(2*size+1), len(sent))])
				at += n
				if rng.IntN(4) > 0 || at == len(sent) || w.room(1) == 0 {
					w.publish()
				}
			}
			if rng.IntN(2) == 0 {
				b, err := r.next(false)
				if err != nil {
					t.Fatal(err)
				}
				b = b[:rng.IntN(len(b)+1)]
				got = append(got, b...)
				r.skip(len(b))
			}
		}
		if !bytes.Equal(got, sent) || r.ready() {
			t.Errorf("ring of %d bytes: other bytes came out", size)
		}
	}
}

// What a goroutine did before it sent is seen by another that takes in the answer,
// also where Go does not know what is between: the race detector would tell.
func TestRingOrdersAnswers(t *testing.T) {
	var out [2]*ringWriter
	var in [2]*ringReader
	for i := range out { // memory that the race detector does not look at
		s := sharing(t)
		m, err := mapShm(s.file, shmLen(1))
		if err != nil {
			t.Fatal(err)
		}
		ctl, data := m.ring(0, 1)
		out[i] = &ringWriter{ctl: ctl, data: data}
		in[1-i] = &ringReader{ctl: ctl, data: data}
		defer runtime.KeepAlive(m)
	}
	in[0].sent, in[1].sent = &out[0].order, &out[1].order
	take := func(r *ringReader) {
		for {
			switch b, err := r.next(true); {
			case err != nil:
				t.Error(err)
				return
			case len(b) > 0:
				r.skip(len(b))
				return
			}
			runtime.Gosched()
		}
	}
	send := func(w *ringWriter) {
		w.begin()
		w.write([]byte{1})
		w.publish()
	}
	var before int
	var wg sync.WaitGroup
	wg.Go(func() {
		take(in[0])
		if before != 1 {
			t.Error("the answer came first")
		}
	})
	wg.Go(func() { // the other process
		take(in[1])
		send(out[1])
	})
	wg.Go(func() {
		before = 1
		send(out[0])
	})
	wg.Wait()
}

// Numbers that make no sense are neither believed nor a reason to touch memory
// beyond the ring.
func TestRingNonsense(t *testing.T) {
	w, r := newRing(64)
	r.ctl.tail.Store(65)
	if _, err := r.next(false); !errors.Is(err, ErrProtocol) {
		t.Errorf("65 bytes in 64: %v", err)
	}
	r.ctl.tail.Store(^uint64(0))
	if _, err := r.next(false); !errors.Is(err, ErrProtocol) {
		t.Errorf("less than nothing: %v", err)
	}
	if n := w.write(make([]byte, 100)); n != 64 {
		t.Errorf("%d bytes written to 64", n)
	}
	for _, head := range []uint64{65, ^uint64(0), 1 << 63} {
		if w.ctl.head.Store(head); w.room(1) != 0 {
			t.Errorf("room of %d with a head of %d", w.room(1), head)
		}
	}
}

// doorbellLink is the link under a shmLink of tests: it counts doorbells.
type doorbellLink struct {
	p2p.NoLink
	doorbells int
	aborted   string
}

func (l *doorbellLink) Send(_ uint16, hdr, _ []byte, _ transport.Owner) error {
	if envelope.Kind(hdr[0]) == envelope.Doorbell {
		l.doorbells++
	}
	return nil
}
func (l *doorbellLink) Abort(why string) { l.aborted = why }

// releases is an owner that counts.
type releases struct {
	n   int
	err error
}

func (o *releases) Released(err error) { o.n++; o.err = err }

// newSharedLink returns a link whose peer reads with r, and whose ring is small.
func newSharedLink(size int) (l *shmLink, under *doorbellLink, r *ringReader) {
	under = new(doorbellLink)
	w := newWorld(0, 2, &options{unexpected: 1 << 20, streams: 1, transport: TransportSCTP}, nil)
	l = &shmLink{under: under, peer: w.eng.Peers[1], awake: new(atomic.Uint32)}
	l.idle = sync.NewCond(&l.mu)
	l.parser.Peer = l.peer
	l.peer.Link = l
	l.peer.SetMemory(l)
	out, r := newRing(size)
	l.out.ctl, l.out.data = out.ctl, out.data
	in, _ := newRing(size)
	l.in.ctl, l.in.data, l.in.sent = in.ctl, in.data, &l.out.order
	return l, under, r
}

// A link whose ring is full keeps what it may, refuses what should be referenced,
// and writes the rest as room appears; a rank that does not poll is told once.
func TestSharedLinkFull(t *testing.T) {
	l, under, r := newSharedLink(256)
	var v envelope.Header
	v.Kind = envelope.Disconnect
	var b [envelope.MaxLen]byte
	hdr := v.Encode(&b)
	body := make([]byte, 1000)
	pattern(body, 1)
	own := new(releases)
	check := func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Fatalf("send: %v, want %v", err, want)
		}
	}
	check(l.Send(0, hdr, body[:100], nil), nil)
	l.Flush()
	l.Flush()
	if under.doorbells != 1 {
		t.Errorf("%d doorbells, want 1", under.doorbells)
	}
	check(l.Send(0, hdr, body[:200], nil), transport.ErrFull)
	check(l.Send(0, hdr, body, own), nil)
	check(l.Send(0, hdr, nil, nil), nil) // a control message, behind it
	check(l.Send(0, hdr, body[:1], nil), transport.ErrFull)
	if own.n != 0 || !l.queued.Load() || l.out.ctl.want.Load() != 1 {
		t.Fatalf("released %d times, queued %v, want %d", own.n, l.queued.Load(), l.out.ctl.want.Load())
	}
	// Each message begins at a multiple of ringAlign; what is between is of no matter.
	messages := [][]byte{slices.Concat(hdr, body[:100]), slices.Concat(hdr, body), hdr}
	var want []byte
	padded := make(map[int]bool)
	for _, m := range messages {
		for padding(uint64(len(want))) > 0 {
			padded[len(want)] = true
			want = append(want, 0)
		}
		want = append(want, m...)
	}
	var got []byte
	for len(got) < len(want) {
		p, err := r.next(false)
		if err != nil {
			t.Fatal(err)
		}
		if len(p) == 0 {
			if !l.pump() {
				t.Fatalf("%d bytes came of %d", len(got), len(want))
			}
			continue
		}
		got = append(got, p...)
		r.skip(len(p))
	}
	for at := 0; at < len(got); at++ {
		if padded[at] {
			got[at] = 0
		}
	}
	if !bytes.Equal(got, want) || own.n != 1 || own.err != nil || l.queued.Load() {
		t.Errorf("right bytes: %v; released %d times, %v; queued %v", bytes.Equal(got, want), own.n, own.err, l.queued.Load())
	}
}

// A doorbell makes the rank look and causes no doorbell in return, and the next one can be sent
// even if there was nothing to be seen any more.
func TestSharedDoorbell(t *testing.T) {
	l, under, _ := newSharedLink(256)
	l.in.ctl.doorbell.Store(1)
	l.OnDoorbell()
	if under.doorbells != 0 || l.in.ctl.doorbell.Load() != 0 {
		t.Errorf("%d doorbells; the flag is %d", under.doorbells, l.in.ctl.doorbell.Load())
	}
}

// A writer that waits for room is told when half of the ring is free, with a doorbell
// only if it does not poll.
func TestSharedRoom(t *testing.T) {
	l, under, _ := newSharedLink(256)
	w := &ringWriter{ctl: l.in.ctl, data: l.in.data}
	for doorbells, awake := range []uint32{1, 0} {
		var v envelope.Header
		v.Kind = envelope.Disconnect
		var b [envelope.MaxLen]byte
		w.begin()
		w.write(v.Encode(&b))
		w.publish()
		w.ctl.want.Store(1)
		l.awake.Store(awake)
		l.drain(true)
		if under.doorbells != doorbells || w.ctl.want.Load() != 0 {
			t.Errorf("awake %d: %d doorbells, want %d; want is %d", awake, under.doorbells, doorbells, w.ctl.want.Load())
		}
	}
}

// The end of the link under it ends a shared link, once, and releases what waits.
func TestSharedLinkEnd(t *testing.T) {
	l, _, _ := newSharedLink(64)
	own := new(releases)
	if err := l.Send(0, make([]byte, envelope.MinLen), make([]byte, 100), own); err != nil {
		t.Fatal(err)
	}
	l.peer.Down(errTestOver)
	l.peer.Down(nil)
	if own.n != 1 || own.err == nil {
		t.Errorf("released %d times, %v", own.n, own.err)
	}
	if err := l.peer.Failure(); !errors.Is(err, errTestOver) {
		t.Errorf("failure: %v", err)
	}
	if err := l.Send(0, make([]byte, envelope.MinLen), nil, nil); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("send: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = l.Shutdown(ctx) // does not block
}

// A shutdown waits for what is queued, as long as its context lets it.
func TestSharedLinkShutdown(t *testing.T) {
	l, _, _ := newSharedLink(64)
	if err := l.Send(0, make([]byte, envelope.MinLen), make([]byte, 100), new(releases)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_ = l.Shutdown(ctx)
	if ctx.Err() == nil {
		t.Error("shutdown before everything was written")
	}
}

// Nonsense in memory ends the link.
func TestSharedLinkNonsense(t *testing.T) {
	l, under, _ := newSharedLink(64)
	l.in.ctl.tail.Store(1000)
	l.drain(true)
	if under.aborted == "" {
		t.Error("not aborted")
	}
	l.peer.Down(errTestOver)
	if l.peer.Failure() == nil {
		t.Error("the peer has not failed")
	}
}

// Messages get through, in parts that are longer than the memory for them, to ranks
// whose goroutines never poll, and never call this package while they come.
func TestSharedWithoutPolling(t *testing.T) {
	sharing(t)
	const n = 3 * maxRing
	passed := make(chan struct{})
	local(t, 2, func(ctx context.Context, c *Comm) error {
		if !overMemory(c.w) {
			return errors.New("not through memory")
		}
		b := make([]byte, n)
		if c.Rank() == 0 {
			pattern(b, 1)
			r, err := Isend(c, b, 1, 0)
			if err != nil {
				return err
			}
			<-passed // the receiver has it without a call of this rank
			_, err = r.Wait(ctx)
			return err
		}
		r, err := Irecv(c, b, 0, 0)
		if err != nil {
			return err
		}
		for !r.request.Finished.Load() {
			runtime.Gosched()
		}
		close(passed)
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
		return checkPattern(b, 1)
	}, overTransport(hybridShared), WithSpin(0))
}

// Parked and polling ranks wake each other: round trips with pauses of all lengths
// around the time for which a rank is still taken to poll.
func TestSharedWakes(t *testing.T) {
	sharing(t)
	for _, spin := range []time.Duration{0, 50 * time.Microsecond, 5 * time.Millisecond} {
		local(t, 3, func(ctx context.Context, c *Comm) error {
			rng := rand.New(rand.NewPCG(uint64(c.Rank()), 7))
			next, before := (c.Rank()+1)%3, (c.Rank()+2)%3
			for i := range 300 {
				b := make([]byte, 1+rng.IntN(3000))
				for t0 := p2p.Clock(); p2p.Clock()-t0 < int64(rng.IntN(int(3*shmLease))); {
					runtime.Gosched()
				}
				r, err := Isend(c, b, next, i)
				if err != nil {
					return err
				}
				if _, err := Recv(ctx, c, make([]byte, 3000), before, i); err != nil {
					return err
				}
				if _, err := r.Wait(ctx); err != nil {
					return err
				}
			}
			return nil
		}, overTransport(hybridShared), WithSpin(spin))
	}
}

// Between ranks that share memory Put and Get are copies from process to process, if
// the memory is the program's, and RDMA where the system refuses them.
func TestSharedPutGet(t *testing.T) {
	sharing(t)
	var x, y [1]byte
	x[0] = 7
	if err := cma.Read(os.Getpid(), uint64(uintptr(unsafe.Pointer(&x[0]))), y[:]); err != nil {
		t.Skip("the system copies no memory between processes: ", err)
	}
	if y[0] != 7 {
		t.Fatalf("read %d, want 7", y[0])
	}
	const n = 100_000
	local(t, 3, func(ctx context.Context, c *Comm) error {
		next, before := (c.Rank()+1)%3, (c.Rank()+2)%3
		for round, refused := range []bool{false, true} {
			win, err := WinCreate(ctx, c, make([]byte, n))
			if err != nil {
				return err
			}
			if !win.w.Inspect(next).Copies {
				return errors.New("not by copies")
			}
			if refused {
				win.w.SetProcess(next, 1<<30)
			}
			src, got := make([]byte, n), make([]byte, n)
			pattern(src, 10*round+c.Rank())
			if err := win.Put(ctx, src, next, 0); err != nil {
				return err
			}
			if err := win.Fence(ctx); err != nil {
				return err
			}
			if err := checkPattern(win.Buf(), 10*round+before); err != nil {
				return fmt.Errorf("put: %w", err)
			}
			if err := win.Get(ctx, got[5:], next, 5); err != nil {
				return err
			}
			if err := win.Flush(ctx, next); err != nil {
				return err
			}
			if !bytes.Equal(got[5:], src[5:]) {
				return errors.New("get: other bytes")
			}
			if open := win.w.Inspect(next).Copies; open == refused {
				return fmt.Errorf("refused %v, still by copies %v", refused, open)
			}
			// What a Flush has completed does not precede a Fence.
			if err := errors.Join(win.Fence(ctx, AssertNoPrecede), win.Fence(ctx)); err != nil {
				return err
			}
			if err := win.Put(ctx, src[:2], next, n-1); !errors.Is(err, ErrRange) {
				return fmt.Errorf("beyond the end: %v", err)
			}
			if err := win.Free(ctx); err != nil {
				return err
			}
		}
		for _, opts := range [][]WinOption{{WithMessages()}, {WithAccess(AccessRead)}} {
			win, err := WinCreate(ctx, c, make([]byte, 10), opts...)
			if err != nil {
				return err
			}
			if err := win.Put(ctx, make([]byte, 10), next, 0); err != nil && !errors.Is(err, ErrAccess) {
				return err
			}
			if !win.RDMA() && win.w.Direct() {
				return errors.New("messages, and yet copies")
			}
			if err := win.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	}, overTransport(hybridShared))
}
