package interop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/sctp"
	relaying "github.com/weftstack/weft/sctp/relay"
)

// envFlow has this test binary, on the first host of two sites, be one end of a flow through
// gateways ("relay FILE …", with the sites file) or of an association ("direct - …") without
// package mpi: "pingpong TRIPS SIZE" or "bulk MESSAGES SIZE".
const envFlow = "WEFT_INTEROP_FLOW"

// envFlowPeer is where the other end of an association is, if not on such a host.
const envFlowPeer = "WEFT_INTEROP_FLOW_PEER"

func init() {
	playRole(envFlow, func(words string) error {
		var f siteFlow
		var way, file, what string
		if _, err := fmt.Sscan(words, &way, &file, &what, &f.count, &f.size); err != nil {
			return err
		}
		f.first, f.echo = os.Getenv("WEFT_NET_SITE") == "1", what == "pingpong"
		f.done = make(chan error, 1)
		ctx, cancel := context.WithTimeout(context.Background(), patternTime)
		defer cancel()
		open := f.direct
		if way == "relay" {
			open = func(ctx context.Context) (func([]byte) error, func(), error) { return f.relay(ctx, file) }
		}
		send, end, err := open(ctx)
		if err != nil {
			return err
		}
		defer end()
		return f.run(ctx, send)
	})
}

// siteFlow is one end.
type siteFlow struct {
	first, echo bool
	count, size int
	done        chan error
	send        atomic.Pointer[func([]byte) error] // that does not block, in upcalls

	sent  time.Time // of the present round trip
	trips []time.Duration
	got   int // bytes
}

const (
	flowJob      = 7
	flowPort     = 9899
	flowMessages = 100 // round trips before those that count
)

// relay connects to the gateway of the site.
func (f *siteFlow) relay(ctx context.Context, file string) (func([]byte) error, func(), error) {
	sf, err := sites.Read(file)
	if err != nil {
		return nil, nil, err
	}
	key, err := sf.JobsKey()
	if err != nil {
		return nil, nil, err
	}
	own, other := sf.Sites[0], sf.Sites[len(sf.Sites)-1]
	if !f.first {
		own, other = other, own
	}
	t, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort(os.Getenv("WEFT_NET_ADDRS") + ":0")}})
	if err != nil {
		return nil, nil, err
	}
	at := func(s *sites.Site) relaying.Address { return relaying.Address{Site: s.Number, Node: 1, Process: 1} }
	n, err := relaying.NewNode(ctx, relaying.NodeConfig{
		Address: at(own), Job: flowJob, Key: sites.JobKey(key, flowJob), Gateways: []sctp.Addr{own.Gateways[0].LANAddr()}, Transport: t,
		OnFragment: func(_ *relaying.Receiver, fr *relaying.Fragment) {
			if fr.Err != nil {
				f.end(fr.Err)
				return
			}
			f.take(len(fr.Data))
		},
	})
	if err != nil {
		t.Close()
		return nil, nil, err
	}
	s, err := n.Sender(at(other), 1)
	if err != nil {
		return nil, nil, err
	}
	try := func(b []byte) error { return s.TrySend(b, relaying.SendOptions{}) }
	f.send.Store(&try)
	return func(b []byte) error { return s.Send(ctx, b, relaying.SendOptions{}) }, func() {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		n.Shutdown(ctx)
		t.Close()
	}, nil
}

// direct connects to the other end.
func (f *siteFlow) direct(ctx context.Context) (func([]byte) error, func(), error) {
	t, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(os.Getenv("WEFT_NET_ADDRS")), flowPort)}})
	if err != nil {
		return nil, nil, err
	}
	up := make(chan *sctp.Association, 1)
	cfg := &sctp.Config{
		SendBuffer: 4 << 20, RecvBuffer: 4 << 20,
		OnAssociation: func(a *sctp.Association) {
			try := func(b []byte) error { return a.TrySend(b, sctp.SendOptions{Stream: 1}) }
			f.send.Store(&try)
			select {
			case up <- a:
			default:
			}
		},
		OnPiece: func(_ *sctp.Association, p *sctp.Piece) { f.take(len(p.Data)) },
	}
	e, err := t.Listen(flowPort, cfg)
	if err != nil {
		return nil, nil, err
	}
	if f.first {
		peer := sctp.Addr{Addrs: []netip.AddrPort{netip.MustParseAddrPort(cmp.Or(os.Getenv(envFlowPeer), "10.77.2.1:9899"))}, Port: flowPort}
		for {
			if _, err = e.Connect(ctx, peer); err == nil {
				break
			}
			select {
			case <-time.After(20 * time.Millisecond): // the other end is not there yet
			case <-ctx.Done():
				return nil, nil, errors.Join(err, context.Cause(ctx))
			}
		}
	}
	var a *sctp.Association
	select {
	case a = <-up:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	return func(b []byte) error { return a.Send(ctx, b, sctp.SendOptions{Stream: 1}) }, func() {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		a.Shutdown(ctx)
		t.Close()
	}, nil
}

func (f *siteFlow) end(err error) {
	select {
	case f.done <- err:
	default:
	}
}

// take is called with what arrives, by one goroutine at a time.
func (f *siteFlow) take(n int) {
	f.got += n
	switch {
	case !f.echo && !f.first:
		if f.got == f.count*f.size {
			f.end((*f.send.Load())([]byte{1})) // all is there
		}
	case !f.echo:
		f.end(nil)
	case f.got < f.size:
	default:
		f.got = 0
		if f.first {
			f.trips = append(f.trips, time.Since(f.sent))
			if len(f.trips) == f.count+flowMessages {
				f.end(nil)
				return
			}
			f.sent = time.Now()
		}
		if err := (*f.send.Load())(make([]byte, f.size)); err != nil {
			f.end(err)
		}
	}
}

func (f *siteFlow) run(ctx context.Context, send func([]byte) error) error {
	begun := time.Now()
	if f.first {
		f.sent = begun
		n := 1
		if !f.echo {
			n = f.count
		}
		msg := make([]byte, f.size)
		for range n {
			if err := send(msg); err != nil {
				return err
			}
		}
	} else if f.echo {
		<-ctx.Done() // ended with the first host
		return nil
	}
	select {
	case err := <-f.done:
		if err != nil || !f.first {
			return err
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r := patternResult{Seconds: time.Since(begun).Seconds()}
	if f.echo {
		trips := f.trips[flowMessages:]
		slices.Sort(trips)
		r.OneWay = float64(trips[len(trips)/2].Nanoseconds()) / 2e3
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
