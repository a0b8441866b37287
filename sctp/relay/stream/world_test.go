package stream_test

import (
	"context"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/relaytest"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/stream"
	"github.com/weftstack/weft/sctp/sctptest"
)

// What tests use of package relaytest, by short names.
var lan, wan = relaytest.LAN, relaytest.WAN

// world has two sites with gateways on a network in memory.
type world struct {
	*relaytest.World
	t testing.TB
}

func newWorld(t testing.TB, seed uint64, gateways int, lan, wan sctptest.Link) *world {
	w := &world{relaytest.New(t, seed, 2, gateways), t}
	w.Net.SetDefault(lan)
	w.SetWAN(wan)
	time.Sleep(time.Second)
	return w
}

// end is a process with its endpoint.
type end struct {
	*stream.Endpoint
	w       *world
	site, p uint16
	node    *relaytest.Node
}

func (w *world) end(site, p uint16, set func(*relay.NodeConfig, *stream.Config)) *end {
	w.t.Helper()
	x := &end{w: w, site: site, p: p}
	sc := stream.Config{Log: relaytest.Log()}
	x.node = w.Node(site, p, func(nc *relay.NodeConfig) {
		nc.PeerTimeout = 5 * time.Second
		if set != nil {
			set(nc, &sc)
		}
	})
	sc.Node = x.node.Node
	var err error
	x.Endpoint, err = stream.New(sc)
	wantNil(w.t, err)
	return x
}

func (x *end) close() {
	_ = x.Endpoint.Close()
	x.node.Close()
}

// kill ends the process without a word.
func (x *end) kill() {
	x.w.CutNode(x.site, x.p)
	x.close()
	x.w.RestoreNode(x.site, x.p)
}

func wantNil(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pair has two processes in two sites, and a connection between them.
type pair struct {
	*world
	a, b *end
	c, d *stream.Conn
}

func newPair(t *testing.T, set func(*relay.NodeConfig, *stream.Config)) *pair {
	t.Helper()
	p := &pair{world: newWorld(t, 1, 1, lan, wan)}
	p.a, p.b = p.end(1, 1, set), p.end(2, 1, set)
	p.c, p.d = p.connect(p.a, p.b)
	return p
}

// connect opens a connection from a to b.
func (w *world) connect(a, b *end) (c, d *stream.Conn) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		r, err := b.Accept(ctx)
		if err == nil {
			d, err = r.Accept(ctx)
		}
		done <- err
	}()
	c, err := a.Dial(ctx, b.Address(), []byte("request"))
	wantNil(w.t, err)
	wantNil(w.t, <-done)
	return c, d
}

func (p *pair) close() {
	p.a.close()
	p.b.close()
	p.Close()
}
