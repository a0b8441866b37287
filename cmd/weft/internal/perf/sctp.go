package perf

import (
	"context"
	"net/netip"
	"sync"

	"github.com/weftstack/weft/sctp"
)

// sctpEnd is either end of mode sctp.
type sctpEnd struct {
	tally
	spec      *spec
	transport *sctp.Transport
	endpoint  *sctp.Endpoint
	mu        sync.Mutex
	assocs    []*sctp.Association
	buf       []byte
}

func newSCTPEnd(s *spec) (*sctpEnd, error) {
	tc := sctp.TransportConfig{BusyPoll: s.BusyPoll}
	if local := s.localPort0(); s.Direct {
		tc.IPAddrs = []netip.Addr{local.Addr()}
	} else {
		tc.LocalAddrs = []netip.AddrPort{local}
	}
	tr, err := sctp.NewTransport(tc)
	if err != nil {
		return nil, err
	}
	e := &sctpEnd{spec: s, transport: tr, buf: make([]byte, s.Size)}
	if e.endpoint, err = tr.Listen(0, s.sctpConfig()); err != nil {
		tr.Close()
		return nil, err
	}
	return e, nil
}

// sctpConfig returns the parameters of the associations.
func (s *spec) sctpConfig() *sctp.Config {
	streams := uint16(max(s.Streams, 10))
	return &sctp.Config{OutStreams: streams, InStreams: streams, MTU: s.MTU, ZeroChecksumLocal: s.ZeroSum,
		NoInterleaving: s.Plain}
}

func openSCTPTarget(ctx context.Context, s *spec) (target, error) {
	e, err := newSCTPEnd(s)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			a, err := e.endpoint.Accept(ctx)
			if err != nil {
				return
			}
			e.mu.Lock()
			e.assocs = append(e.assocs, a)
			e.mu.Unlock()
			switch {
			case s.Latency:
				go e.echo(ctx, a)
			case s.Bidir:
				go e.send(ctx, a)
				fallthrough
			default:
				go e.drain(ctx, a)
			}
		}
	}()
	return e, nil
}

func (e *sctpEnd) addr() string { return e.endpoint.Addr().String() }
func (e *sctpEnd) close()       { e.transport.Close() }

func (e *sctpEnd) counts() counts {
	c := e.tally.counts()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.assocs {
		c.Retransmits += a.Stats().Retransmits
	}
	c.Drops = e.transport.Stats().SocketDrops
	return c
}

// echo sends messages back on the stream they came on.
func (e *sctpEnd) echo(ctx context.Context, a *sctp.Association) {
	buf := make([]byte, e.spec.Size)
	for {
		n, info, err := a.Recv(ctx, buf)
		if err != nil {
			return
		}
		if err := a.Send(ctx, buf[:n], sctp.SendOptions{Stream: info.Stream}); err != nil {
			return
		}
	}
}

// drain receives and counts.
func (e *sctpEnd) drain(ctx context.Context, a *sctp.Association) error {
	buf := make([]byte, e.spec.Size)
	for {
		n, info, err := a.Recv(ctx, buf)
		if err != nil {
			return err
		}
		e.bytes.Add(uint64(n))
		if info.EOR {
			e.msgs.Add(1)
		}
	}
}

// send sends on all streams in turn.
func (e *sctpEnd) send(ctx context.Context, a *sctp.Association) error {
	buf := make([]byte, e.spec.Size)
	pace := newPacer(e.spec, e.spec.Assocs)
	var opts sctp.SendOptions
	if e.spec.ZeroCopy {
		opts.Owner = unchanged{}
	}
	for i := 0; ctx.Err() == nil; i++ {
		pace.wait()
		opts.Stream = uint16(i % e.spec.Streams)
		if err := a.Send(ctx, buf, opts); err != nil {
			return err
		}
	}
	return nil
}

// unchanged owns a message that nobody changes and everybody may read.
type unchanged struct{}

// Released implements sctp.SendOwner.
func (unchanged) Released(error) {}

func openSCTPSource(ctx context.Context, s *spec, addr string) (source, error) {
	peer, err := sctp.ParseAddr(addr)
	if err != nil {
		return nil, err
	}
	e, err := newSCTPEnd(s)
	if err != nil {
		return nil, err
	}
	for range s.Assocs {
		// One endpoint has one association with a peer: further ones get
		// ports of their own.
		ep := e.endpoint
		if len(e.assocs) > 0 {
			if ep, err = e.transport.Listen(0, s.sctpConfig()); err != nil {
				break
			}
		}
		var a *sctp.Association
		if a, err = ep.Connect(ctx, peer); err != nil {
			break
		}
		e.assocs = append(e.assocs, a)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *sctpEnd) load(ctx context.Context) error {
	return each(len(e.assocs), func(i int) error {
		if e.spec.Bidir {
			go e.drain(ctx, e.assocs[i])
		}
		return e.send(ctx, e.assocs[i])
	})
}

func (e *sctpEnd) trip(ctx context.Context) error {
	if err := e.assocs[0].Send(ctx, e.buf, sctp.SendOptions{}); err != nil {
		return err
	}
	for {
		_, info, err := e.assocs[0].Recv(ctx, e.buf)
		if err != nil || info.EOR {
			return err
		}
	}
}
