package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// A receive that ends while it is copied to is not copied to any more.
func TestNearReceiveEnds(t *testing.T) {
	copying(t)
	// Long enough that whoever waits for the lock gets it before the end: a sync.Mutex is handed to him
	// after a millisecond.
	const n, most = 64 * CopyChunk, 50
	body, buf := make([]byte, n), bytes.Repeat([]byte{foreign}, n)
	addr := uint64(uintptr(unsafe.Pointer(&body[0])))
	part := 0
	for i := 0; i < 5 || i < most && part == 0; i++ {
		l, _, _ := newSharedLink(4096)
		l.pid = os.Getpid()
		r := p2p.GetRequest(l.peer.Engine)
		r.Context, r.Buf = p2p.NewContext(1), buf
		result := make(chan bool, 1)
		go func() {
			gone, err := l.copyTo(&p2p.Fetch{Receive: r, Len: n}, &memoryRuns{pid: l.pid, addr: addr, left: n})
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
		r.Fail(mpierr.ErrCanceled)
		copied := bytes.IndexByte(buf, foreign)
		for j := range buf {
			buf[j] = foreign
		}
		gone := <-result
		if gone != (copied >= 0) {
			t.Errorf("gone %v, though %d bytes were copied", gone, copied)
		}
		if bytes.Count(buf, []byte{foreign}) != n {
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
		{"being copied", offerTaken, false, copyPollInterval},
		{"copier dies", offerTaken, true, deadGrace},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, _, _ := newSharedLink(4096)
				l.out.ctl.copies.Store(1)
				r := &p2p.Request{Engine: l.peer.Engine, Peer: l.peer, Buf: make([]byte, OfferMin)}
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
					time.Sleep(20 * copyPollInterval)
					if done.Load() {
						t.Fatal("the buffer is being copied")
					}
					if !tt.dies {
						start = time.Now()
						l.out.ctl.offers[0].Store(o&^offerStates | offerDone)
					}
				}
				for !done.Load() && time.Since(start) < 2*deadGrace {
					time.Sleep(copyPollInterval)
					synctest.Wait()
				}
				if d := time.Since(start); !done.Load() || d > tt.waits+2*copyPollInterval || tt.dies && d < deadGrace {
					t.Errorf("done %v, after %v, want %v", done.Load(), d, tt.waits)
				}
				if want := tt.state == offerDone || tt.state == offerTaken && !tt.dies; whole.Load() != want {
					t.Errorf("the receiver has all of it: %v", whole.Load())
				}
				if w := l.out.ctl.offers[0].Load(); w != 0 || l.offers.used != 0 || l.offers.all[0].buf != nil {
					t.Errorf("offer %x, in use %x", w, l.offers.used)
				}
			})
		})
	}
}

// An offer that makes no sense, or is not valid any more, is answered by asking for the
// body; so is one of memory that is not there.
func TestNearOfferRefused(t *testing.T) {
	copying(t)
	const n, word = OfferMin, 5 << offerBits
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
		{"slot", MaxOffers, word, addr, true, false},
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
