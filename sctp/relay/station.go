package relay

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay/frame"
)

const (
	// DefaultLegTimeout is after how long without a frame from the other end a leg is dead.
	DefaultLegTimeout = 500 * time.Millisecond
	// MinLegTimeout is the shortest leg timeout.
	MinLegTimeout = 40 * time.Millisecond

	// authTimeout bounds the authentication of a leg, and unproven the associations in it. Each has
	// sctp.DefaultProbationBuffer bytes at most.
	authTimeout = 5 * time.Second
	unproven    = 256

	redialMin, redialMax = 50 * time.Millisecond, time.Second
	// redialNote is how often a failure to connect is logged that goes on for the same reason.
	redialNote = time.Minute

	// lanStreams are the streams of a leg between process and gateway, wanStreams of one
	// between gateways.
	lanStreams, wanStreams = 1024, 65535
)

// station is what nodes and gateways have in common.
type station struct {
	notebook
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

func (s *station) init(log *slog.Logger) {
	s.log = log
	s.ctx, s.cancel = context.WithCancel(context.Background())
}

// listen opens the endpoint for legs.
func (s *station) listen(h host, t *sctp.Transport, port uint16, base sctp.Config, streams uint16) (*sctp.Endpoint, error) {
	base.OutStreams, base.InStreams = streams, streams
	base.OneToMany = true
	base.Probation = &sctp.Probation{Timeout: authTimeout, Max: unproven}
	base.OnAssociation = nil
	base.OnPiece = func(a *sctp.Association, p *sctp.Piece) {
		c, _ := a.Value().(*conn)
		if c == nil {
			c = accept(h, a)
		}
		c.onPiece(p)
	}
	base.OnNotify = func(a *sctp.Association, n sctp.Notification) {
		switch n.Kind {
		case sctp.NotifyRestart:
			a.Abort("relay: the peer restarted the association")
		case sctp.NotifyDown:
			if c, _ := a.Value().(*conn); c != nil {
				c.onDown(n.Err)
			}
		}
	}
	return t.Listen(port, &base)
}

// keepConnected connects to a gateway, again and again, until the station is closed.
func (s *station) keepConnected(h host, ep *sctp.Endpoint, to sctp.Addr, key []byte, greeting frame.Greeting) {
	s.tasks.Go(func() {
		wait := redialMin
		var said time.Time // when a failure was logged last
		var why string     // which one
		for s.ctx.Err() == nil {
			began := time.Now()
			err := s.connectOnce(h, ep, to, key, greeting)
			if time.Since(began) > redialMax {
				wait = redialMin // it was up
			}
			if s.ctx.Err() != nil {
				return
			}
			if now := time.Now(); why != fmt.Sprint(err) || now.Sub(said) >= redialNote {
				said, why = now, fmt.Sprint(err)
				s.note(slog.LevelInfo, "no leg to gateway", slog.String("addr", to.String()), slog.Any("error", err))
			}
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-s.ctx.Done():
				timer.Stop()
			}
			wait = min(2*wait, redialMax)
		}
	})
}

// connectOnce connects, and returns why the connection ended.
func (s *station) connectOnce(h host, ep *sctp.Endpoint, to sctp.Addr, key []byte, greeting frame.Greeting) error {
	ctx, cancel := context.WithTimeout(s.ctx, authTimeout)
	a, err := ep.Connect(ctx, to)
	cancel()
	if err != nil {
		return err
	}
	c, err := dial(h, a, key, greeting)
	if err != nil {
		a.Abort(err.Error())
		return err
	}
	timer := time.AfterFunc(authTimeout, func() {
		if !c.proven.Load() {
			a.Abort("relay: no answer to the greeting")
		}
	})
	defer timer.Stop()
	<-a.Done()
	return a.Err()
}

var lastIncarnation atomic.Uint32

// newIncarnation returns a number that is greater than that of a former life, in serial number
// arithmetic: milliseconds, of which 2^31 are 24 days.
func newIncarnation() uint32 {
	for {
		last, now := lastIncarnation.Load(), uint32(time.Now().UnixMilli())
		if last != 0 && int32(now-last) <= 0 {
			now = last + 1
		}
		if now != 0 && lastIncarnation.CompareAndSwap(last, now) {
			return now
		}
	}
}

// flowHash mixes what names a flow.
func flowHash(job uint32, from, to Address, stream uint16) uint32 {
	h := uint64(14695981039346656037)
	for _, v := range [...]uint64{
		uint64(job)<<16 | uint64(stream),
		uint64(from.Site)<<32 | uint64(from.Node)<<16 | uint64(from.Process),
		uint64(to.Site)<<32 | uint64(to.Node)<<16 | uint64(to.Process),
	} {
		h = (h ^ v) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return uint32(h>>32) ^ uint32(h)
}

// choose returns the connection for a flow: the one of highest random weight (Thaler and Ravishankar,
// IEEE/ACM ToN 6(1), 1998). Others' flows stay where they are when one comes or goes.
func choose(conns []*conn, hash uint32) (best *conn) {
	var top uint32
	for _, c := range conns {
		w := hash ^ (uint32(c.peer.Site)<<16|uint32(c.peer.Node))*0x9e3779b1 ^ uint32(c.index)*0x7feb352d
		w *= 0x85ebca6b
		w ^= w >> 15
		w *= 0xc2b2ae35
		if w ^= w >> 13; best == nil || w > top {
			best, top = c, w
		}
	}
	return best
}
