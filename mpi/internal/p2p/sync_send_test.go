package p2p

import (
	"errors"
	"testing"
	"time"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// keeper is a link that keeps the owners of what it is given, runs and others, until it is told to release them.
type keeper struct {
	runsSink
	owners []transport.Owner
}

func (l *keeper) Send(_ uint16, _, _ []byte, own transport.Owner) error {
	if own != nil {
		l.owners = append(l.owners, own)
	}
	return nil
}

func (l *keeper) SendRuns(_ uint16, _ []byte, _ [][]byte, own transport.Owner) error {
	l.owners = append(l.owners, own)
	return nil
}

// A synchronous send fails when the communicator is revoked, the peer fails or the engine ends. If the link still reads
// its buffer it is done only when the link has released it, else at once.
func TestSyncSendEndsAfterItsBufferIsFree(t *testing.T) {
	dense := make([]byte, 1800)
	for what, end := range map[string]func(c *Comm, p *Peer){
		"revoked": func(c *Comm, _ *Peer) { c.Revoke() },
		"failed":  func(c *Comm, p *Peer) { c.Engine.peerDown(p, mpierr.ErrRevoked) },
		"ended":   func(c *Comm, _ *Peer) { c.Engine.End(mpierr.ErrRevoked) },
	} {
		for name, tt := range map[string]struct {
			start     func(c *Comm, r *Request) error
			referred  bool
			announced int32
		}{
			"runs": {func(c *Comm, r *Request) error {
				x, _ := vector(t, 10, 120)
				return c.BeginSendItems(r, SendSync, false, &x, 1, 0)
			}, true, 0},
			"packed": {func(c *Comm, r *Request) error {
				x, _ := vector(t, 20, 40)
				return c.BeginSendItems(r, SendSync, false, &x, 1, 0)
			}, false, 0},
			"dense":     {func(c *Comm, r *Request) error { return c.BeginSend(r, SlotUser, SendSync, dense, 1, 0) }, true, 0},
			"copied":    {func(c *Comm, r *Request) error { return c.BeginSend(r, SlotUser, SendSync, dense[:10], 1, 0) }, false, 0},
			"announced": {func(c *Comm, r *Request) error { return c.BeginSend(r, SlotUser, SendSync, make([]byte, 5000), 1, 0) }, false, 1},
			"announced, of no bytes": {func(c *Comm, r *Request) error {
				r.Engine.Peers[1].Credit.Store(0)
				return c.BeginSend(r, SlotUser, SendSync, nil, 1, 0)
			}, false, 1},
		} {
			t.Run(what+"/"+name, func(t *testing.T) {
				c, p := newTestEngine(t)
				p.Credit.Store(1 << 30)
				l := &keeper{runsSink: runsSink{min: 100}}
				p.Link = l
				r := GetRequest(c.Engine)
				if err := tt.start(c, r); err != nil {
					t.Fatal(err)
				}
				if got := p.Announced.Load(); got != tt.announced || r.Finished.Load() || (len(l.owners) > 0) != tt.referred {
					t.Fatalf("%d announced, done %v, the link refers to %d buffers", got, r.Finished.Load(), len(l.owners))
				}
				end(c, p)
				if r.Finished.Load() == tt.referred {
					t.Errorf("done %v while the link reads its buffer %v", r.Finished.Load(), tt.referred)
				}
				for _, own := range l.owners {
					own.Released(nil)
				}
				if !r.Finished.Load() || !errors.Is(r.Err, mpierr.ErrRevoked) {
					t.Errorf("done %v, error %v", r.Finished.Load(), r.Err)
				}
				if got := p.Announced.Load(); what == "revoked" && got != 0 {
					t.Errorf("%d sends wait for a receive", got)
				}
				if n := c.Engine.IDs.Len(); n != 0 {
					t.Errorf("%d requests have ids", n)
				}
			})
		}
	}
}

// A send may be interrupted while it begins, without a race.
func TestSyncSendIsInterruptedWhileItBegins(t *testing.T) {
	for _, n := range []int{120, 40} { // by runs, and packed
		for i := range 200 {
			c, p := newTestEngine(t)
			h := c.Engine.DefaultHints()
			h.Eager = 64 << 10
			c.SetHints(h)
			p.Credit.Store(1 << 30)
			l := &keeper{runsSink: runsSink{min: 100}}
			p.Link = l
			x, _ := vector(t, 2*maxPrompt/n, n)
			over := make(chan bool)
			go func() {
				time.Sleep(time.Duration(i) * time.Microsecond)
				c.Revoke()
				close(over)
			}()
			r := GetRequest(c.Engine)
			err := c.BeginSendItems(r, SendSync, false, &x, 1, 0)
			<-over
			for _, own := range l.owners {
				own.Released(nil)
			}
			if err == nil && (!r.Finished.Load() || !errors.Is(r.Err, mpierr.ErrRevoked)) {
				t.Errorf("done %v, error %v", r.Finished.Load(), r.Err)
			}
			if got := p.Announced.Load(); got != 0 || c.Engine.IDs.Len() != 0 {
				t.Fatalf("%d sends wait for a receive, %d requests have ids", got, c.Engine.IDs.Len())
			}
		}
	}
}

// SyncAck is believed for a synchronous send that was not announced only.
func TestSyncAckOfAnother(t *testing.T) {
	c, p := newTestEngine(t)
	p.Credit.Store(1 << 30)
	send, recv := GetRequest(c.Engine), GetRequest(c.Engine)
	if err := c.BeginSend(send, SlotUser, SendSync, make([]byte, 5000), 1, 0); err != nil {
		t.Fatal(err)
	}
	recv.Context, recv.Peer = c.Contexts[SlotUser], p
	for name, id := range map[string]uint64{"announced send": send.id, "receive": c.Engine.IDs.Add(recv, p)} {
		f := Parser{Peer: p, Envelope: envelope.Header{Kind: envelope.SyncAck, ID: id}}
		if _, err := c.Engine.begin(&f, nil); !errors.Is(err, mpierr.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !send.Finished.Load() || !recv.Finished.Load() {
		t.Errorf("done: send %v, receive %v", send.Finished.Load(), recv.Finished.Load())
	}
	if err := c.Engine.onSyncAck(p, 1<<40|1); err != nil {
		t.Errorf("of a send that has ended: %v", err)
	}
}
