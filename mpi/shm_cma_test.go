package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// cmaLinkTo returns the link to the other one of two ranks, if each may copy memory of the
// other.
func cmaLinkTo(w *World) (*shmLink, error) {
	l := sharedLink(w.eng.Peers[1-w.Rank()])
	if l == nil {
		return nil, errors.New("no shared memory")
	}
	if l.in.ctl.copies.Load() == 0 {
		return nil, errors.New("a process may not copy its own memory")
	}
	return l, nil
}

// withCMA runs two ranks that copy bodies from each other's memory.
func withCMA(t *testing.T, f func(ctx context.Context, c *Comm, l *shmLink) error) {
	t.Helper()
	copying(t)
	local(t, 2, func(ctx context.Context, c *Comm) error {
		if err := Barrier(ctx, c); err != nil { // both have probed
			return err
		}
		l, err := cmaLinkTo(c.w)
		if err != nil {
			return err
		}
		if err = f(ctx, c, l); err == nil {
			err = Barrier(ctx, c)
		}
		if err != nil {
			return err
		}
		l.cma.mu.Lock()
		defer l.cma.mu.Unlock()
		if l.cma.used != 0 {
			return fmt.Errorf("offers are left: %064b", l.cma.used)
		}
		return nil
	}, WithTransport(TransportHybrid), WithSharedMemory(true), WithEager(cmaMin))
}

// Bodies are copied whole from where they are, whichever of send and receive comes
// first, and as much as there is room for.
func TestNearBodies(t *testing.T) {
	sizes := []int{cmaMin + 1, 100_001, cmaChunk, cmaChunk + 1, cmaInline, cmaInline + cmaChunk/2}
	withCMA(t, func(ctx context.Context, c *Comm, l *shmLink) error {
		for i, n := range sizes {
			for _, room := range []int{n, n + 1, n - 1} {
				for _, early := range []bool{false, true} {
					buf := make([]byte, n)
					if c.Rank() == 0 {
						pattern(buf, i)
						if early {
							if err := Barrier(ctx, c); err != nil { // the receive is there
								return err
							}
						}
						if err := Send(ctx, c, buf, 1, i); err != nil {
							return err
						}
						overwrite(buf)
						continue
					}
					in := make([]byte, room)
					r, err := Irecv(c, in, 0, i)
					if err == nil && early {
						err = Barrier(ctx, c)
					}
					if err != nil {
						return err
					}
					st, err := r.Wait(ctx)
					if room < n && errors.Is(err, ErrTruncate) {
						err = nil
					}
					if err != nil || st.Bytes != min(n, room) {
						return fmt.Errorf("%d bytes to %d: %d, %w", n, room, st.Bytes, err)
					}
					pattern(buf, i)
					if string(in[:st.Bytes]) != string(buf[:st.Bytes]) {
						return fmt.Errorf("%d bytes to %d: others came", n, room)
					}
				}
			}
		}
		if n := p2p.TrafficOf(&l.peer.RDMA.Reads).Messages; c.Rank() == 1 && n != uint64(6*len(sizes)) {
			return fmt.Errorf("%d bodies were copied, want %d", n, 6*len(sizes))
		}
		return nil
	})
}

// What there is no slot for, and what the receiver may not copy, goes through the ring buffer.
func TestNearBodiesBeyondTheSlots(t *testing.T) {
	const more, n = maxCMAOffers + 20, cmaMin + 100
	withCMA(t, func(ctx context.Context, c *Comm, l *shmLink) error {
		for _, may := range []bool{true, false} {
			before := p2p.TrafficOf(&l.peer.RDMA.Reads).Messages
			if c.Rank() == 1 && !may {
				l.in.ctl.copies.Store(0)
			}
			if err := Barrier(ctx, c); err != nil {
				return err
			}
			rs := make([]*Request, more)
			bufs := make([][]byte, more)
			if c.Rank() == 0 {
				for i := range rs {
					bufs[i] = make([]byte, n)
					pattern(bufs[i], i)
					var err error
					if rs[i], err = Isend(c, bufs[i], 1, 0); err != nil {
						return err
					}
				}
			}
			if err := Barrier(ctx, c); err != nil { // all are offered
				return err
			}
			for i := range rs {
				if c.Rank() == 0 {
					if _, err := rs[i].Wait(ctx); err != nil {
						return err
					}
					continue
				}
				in := make([]byte, n)
				if _, err := Recv(ctx, c, in, 0, 0); err != nil {
					return err
				}
				if err := checkPattern(in, i); err != nil {
					return err
				}
			}
			want := uint64(0)
			if may {
				want = maxCMAOffers
			}
			if got := p2p.TrafficOf(&l.peer.RDMA.Reads).Messages - before; c.Rank() == 1 && got != want {
				return fmt.Errorf("%d bodies were copied, want %d", got, want)
			}
		}
		return nil
	})
}

// A send that is given up while its body is being copied ends when it has been, without an
// error, and a receive that is given up then is not copied to afterwards.
func TestNearBodiesEnd(t *testing.T) {
	const n, least, most = 4 * cmaInline, 10, 200
	fresh, foreign := make([]byte, n), bytes.Repeat([]byte{foreign}, n)
	pattern(fresh, 1)
	var late, ended atomic.Int32 // change between the barriers only
	withCMA(t, func(ctx context.Context, c *Comm, l *shmLink) error {
		buf := make([]byte, n)
		offers := &l.out.ctl.offers
		if c.Rank() == 1 {
			offers = &l.in.ctl.offers
		}
		for i := 0; i < least || i < most && late.Load() == 0; i++ {
			copy(buf, fresh)
			if c.Rank() == 1 {
				clear(buf)
			}
			if err := Barrier(ctx, c); err != nil {
				return err
			}
			short, stop := context.WithCancel(ctx)
			watched := make(chan struct{})
			if i%2 != c.Rank() {
				close(watched)
			} else {
				go func() {
					defer close(watched)
					defer stop()
					for j := 0; short.Err() == nil && offers[j%maxCMAOffers].Load()&offerStates != offerTaken; j++ {
						runtime.Gosched()
					}
					if short.Err() == nil && c.Rank() == 0 {
						late.Add(1)
					}
				}()
			}
			var err error
			if c.Rank() == 0 {
				err = Send(short, c, buf, 1, i)
			} else if _, err = Recv(short, c, buf, 0, i); err == nil && !bytes.Equal(buf, fresh) {
				err = errors.New("other bytes came")
			}
			copy(buf, foreign)
			stop()
			<-watched
			switch {
			case err == nil:
			case i%2 == 1 && c.Rank() == 1 && errors.Is(err, context.Canceled):
				ended.Add(1)
			default:
				return fmt.Errorf("round %d: %w", i, err)
			}
			if err := Barrier(ctx, c); err != nil {
				return err
			}
			if !bytes.Equal(buf, foreign) {
				return fmt.Errorf("round %d: bytes were placed when the receive was done", i)
			}
		}
		return nil
	})
	if t.Logf("%d sends were given up and %d receives", late.Load(), ended.Load()); late.Load() == 0 {
		t.Skip("no send was given up while it was copied: the processors have too much to do")
	}
}

// A receive that ends while it is copied to is not copied to any more.
func TestNearReceiveEnds(t *testing.T) {
	copying(t)
	const n, most = 8 * cmaChunk, 200
	body, foreign := make([]byte, n), bytes.Repeat([]byte{foreign}, n)
	addr := uint64(uintptr(unsafe.Pointer(&body[0])))
	part := 0
	for i := 0; i < 5 || i < most && part == 0; i++ {
		l, _, _ := newSharedLink(4096)
		l.pid = os.Getpid()
		buf := bytes.Clone(foreign)
		r := p2p.GetRequest(l.peer.Engine)
		r.Context, r.Buf = p2p.NewContext(1), buf
		result := make(chan bool, 1)
		go func() {
			gone, err := l.copyTo(&p2p.Fetch{Receive: r, Len: n}, addr)
			if err != nil {
				t.Error(err)
			}
			result <- gone
		}()
		for begun := false; !begun && len(result) == 0; {
			runtime.Gosched()
			r.Place.Lock()
			begun = buf[0] == 0
			r.Place.Unlock()
		}
		r.Fail(ErrCanceled)
		copied := bytes.IndexByte(buf, foreign[0])
		copy(buf, foreign)
		gone := <-result
		if gone != (copied >= 0) {
			t.Errorf("gone %v, though %d bytes were copied", gone, copied)
		}
		if !bytes.Equal(buf, foreign) {
			t.Fatal("bytes were placed when the receive was done")
		}
		if gone {
			part++
		}
	}
	if part == 0 && runtime.GOMAXPROCS(0) > 1 {
		t.Error("the test is void")
	}
	runtime.KeepAlive(body)
}

// The word of an offer tells the sender whether its buffer is being copied.
func TestNearOfferIsWithdrawn(t *testing.T) {
	for _, tt := range []struct {
		name  string
		state uint64 // set by the receiver; 0: none
		dies  bool
		waits time.Duration
	}{
		{"open", 0, false, 0},
		{"copied", offerDone, false, 0},
		{"not copied", offerMissed, false, 0},
		{"being copied", offerTaken, false, cmaPollInterval},
		{"copier dies", offerTaken, true, cmaDeadGrace},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, _, _ := newSharedLink(4096)
				l.out.ctl.copies.Store(1)
				r := &p2p.Request{Engine: l.peer.Engine, Peer: l.peer, Buf: make([]byte, cmaMin)}
				var v envelope.Header
				v.Key, v.HasKey = l.Offer(r)
				o := l.out.ctl.offers[0].Load()
				if r.Offered == nil || !v.HasKey || o&^offerStates != binary.BigEndian.Uint64(v.Key.Token[:]) || o&offerStates != offerOpen {
					t.Fatalf("offer %x, envelope %+v", o, v)
				}
				if tt.state != 0 {
					l.out.ctl.offers[0].Store(o&^offerStates | tt.state)
				}
				if tt.dies {
					err := errors.New("died")
					l.peer.Failed.Store(&err)
				}
				var done, whole atomic.Bool
				start := time.Now()
				r.AfterReads(func(all bool) { whole.Store(all); done.Store(true) })
				if tt.waits > 0 {
					time.Sleep(20 * cmaPollInterval)
					if done.Load() {
						t.Fatal("the buffer is being copied")
					}
					if !tt.dies {
						start = time.Now()
						l.out.ctl.offers[0].Store(o&^offerStates | offerDone)
					}
				}
				for !done.Load() && time.Since(start) < 2*cmaDeadGrace {
					time.Sleep(cmaPollInterval)
					synctest.Wait()
				}
				if d := time.Since(start); !done.Load() || d > tt.waits+2*cmaPollInterval || tt.dies && d < cmaDeadGrace {
					t.Errorf("done %v, after %v, want %v", done.Load(), d, tt.waits)
				}
				if want := tt.state == offerDone || tt.state == offerTaken && !tt.dies; whole.Load() != want {
					t.Errorf("the receiver has all of it: %v", whole.Load())
				}
				if w := l.out.ctl.offers[0].Load(); w != 0 || l.cma.used != 0 || l.cma.all[0].buf != nil {
					t.Errorf("offer %x, in use %x", w, l.cma.used)
				}
			})
		})
	}
}

// An offer that makes no sense, or is not valid any more, is answered by asking for the
// body; so is one of memory that is not there.
func TestNearOfferRefused(t *testing.T) {
	copying(t)
	const n, word = cmaMin, 5 << offerBits
	body := make([]byte, n)
	pattern(body, 3)
	addr := uint64(uintptr(unsafe.Pointer(&body[0])))
	for _, tt := range []struct {
		name       string
		slot       uint32
		word, addr uint64
		open       bool
		copied     bool
	}{
		{"valid", 1, word, addr, true, true},
		{"another process by now", 1, word, addr, true, false},
		{"slot", maxCMAOffers, word, addr, true, false},
		{"largest slot", 1<<32 - 1, word, addr, true, false},
		{"state", 1, word | offerOpen, addr, true, false},
		{"withdrawn", 1, word, addr, false, false},
		{"another", 1, word + 1<<offerBits, addr, true, false},
		{"nowhere", 1, word, 8, true, false},
		{"past the end", 1, word, 1<<64 - 8, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, _, r := newSharedLink(4096)
			l.pid, l.nonceAt = os.Getpid(), uint64(uintptr(unsafe.Pointer(&l.nonce)))
			if tt.name == "another process by now" {
				l.nonceAt = addr
			}
			if tt.open {
				l.in.ctl.offers[1].Store(word | offerOpen)
			}
			req := p2p.GetRequest(l.peer.Engine)
			req.Context, req.Buf, req.Length = p2p.NewContext(1), make([]byte, n), n
			req.Status.Bytes = n
			f := p2p.Fetch{Receive: req, Peer: l.peer, ID: l.peer.Engine.IDs.Add(req, l.peer), Send: 9, Len: n, From: envelope.Key{STag: tt.slot}}
			binary.BigEndian.PutUint64(f.From.Token[:], tt.word)
			binary.BigEndian.PutUint64(f.From.Token[8:], tt.addr)
			l.Fetch(f)
			b, err := r.next(true)
			var v envelope.Header
			if err != nil || len(b) < envelope.MinLen || !v.Decode(b[:envelope.MinLen]) {
				t.Fatalf("an answer of %d bytes, %v", len(b), err)
			}
			want := envelope.Header{Kind: envelope.CTS, ID: 9, PeerID: f.ID, Length: n}
			if tt.copied {
				want = envelope.Header{Kind: envelope.ReadFIN, ID: 9}
			}
			if v != want {
				t.Errorf("answer %+v, want %+v", v, want)
			}
			if tt.copied && (!req.Finished.Load() || req.Err != nil || checkPattern(req.Buf, 3) != nil) {
				t.Errorf("the receive is done: %v, %v, %v", req.Finished.Load(), req.Err, checkPattern(req.Buf, 3))
			}
			w := l.in.ctl.offers[1].Load()
			if tt.copied != (w == word|offerDone) || w&offerStates == offerTaken {
				t.Errorf("the sender is told %x", w)
			}
		})
	}
	runtime.KeepAlive(body)
}
