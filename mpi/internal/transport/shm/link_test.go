package shm

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// doorbellLink is the link under a Link of tests: it counts doorbells.
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
func newSharedLink(size int) (l *Link, under *doorbellLink, r *ringReader) {
	under = new(doorbellLink)
	e := p2p.New(&p2p.Config{Size: 2, Unexpected: 1 << 20, Streams: 1, PeerError: peerError})
	l = &Link{under: under, peer: e.Peers[1], awake: new(atomic.Uint32)}
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
