package relay

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/sctp/relay/frame"
)

// forwarder is a gateway without associations, with legs to a gateway of site 2 and to processes of its own site.
func forwarder(tb testing.TB, processes int) (g *Gateway, from *conn, to []*conn) {
	tb.Helper()
	const id = 7
	key := []byte("the key of job 7, for tests only")
	cfg := GatewayConfig{Site: 1, Number: 1, Peers: []Peer{{Site: 2, Gateway: 1, Key: key}}}
	def(&cfg.Memory, DefaultGatewayMemory)
	cfg.JobMemory, cfg.FlowMemory, cfg.MaxFlows, cfg.LegTimeout = cfg.Memory, cfg.Memory, DefaultMaxFlows, DefaultLegTimeout
	if err := cfg.checkClasses(); err != nil {
		tb.Fatal(err)
	}
	g = &Gateway{cfg: cfg, jobs: make(map[uint32]*job), peers: make(map[uint16][]*conn), flows: make(map[flowKey]*flow)}
	g.memory.limit = int64(cfg.Memory)
	if err := g.AddJob(id, key, JobOptions{}); err != nil {
		tb.Fatal(err)
	}
	from = &conn{host: g, role: roleGateway, peer: Address{Site: 2, Node: 1}, attached: true}
	from.streams = 1
	g.peers[2] = append(g.peers[2], from)
	for i := range uint16(processes) {
		c := &conn{host: g, role: frame.RoleNode, peer: Address{Site: 1, Node: 1, Process: i + 1}, job: id, attached: true}
		c.streams = 1
		g.jobs[id].local[localID(c.peer)] = c
		to = append(to, c)
	}
	return g, from, to
}

// forward passes a frame through the gateway, as far as its association.
func forward(c *conn, b []byte, to *conn) bool {
	if c.onMessage(b, nil) != nil {
		return false
	}
	c.touched = c.touched[:0]
	p := to.take()
	if p == nil {
		return false
	}
	p.release()
	return true
}

// BenchmarkForward is what a gateway does with a frame between two associations: parse, authorize, route, account, copy, queue.
func BenchmarkForward(b *testing.B) {
	for _, flows := range []int{1, 1000} {
		for _, size := range []int{8, 1400} {
			b.Run(fmt.Sprintf("flows=%d/size=%d", flows, size), func(b *testing.B) {
				_, from, to := forwarder(b, 1)
				frames := make([][]byte, flows)
				for i := range frames {
					frames[i] = frame.Append(nil, &frame.Frame{Header: frame.Header{
						Type: frame.Data, Hops: 7, Job: 7, Stream: uint16(i), From: Address{Site: 2, Node: 1, Process: 1}, To: to[0].peer, Incarnation: 1,
					}, Payload: make([]byte, size)})
					if !forward(from, frames[i], to[0]) {
						b.Fatal("not forwarded")
					}
				}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					if !forward(from, frames[i], to[0]) {
						b.Fatal("not forwarded")
					}
					if i++; i == flows {
						i = 0
					}
				}
			})
		}
	}
}

// A gateway has DefaultMaxFlows flows, refuses one more, and forgets them when they are idle.
func TestGatewayMaxFlows(t *testing.T) {
	g, from, to := forwarder(t, 2)
	var b []byte
	send := func(stream uint16, target *conn) bool {
		b = frame.Append(b[:0], &frame.Frame{Header: frame.Header{
			Type: frame.Data, Hops: 7, Job: 7, Stream: stream, From: Address{Site: 2, Node: 1, Process: 1}, To: target.peer, Incarnation: 1,
		}, Payload: []byte("x")})
		return forward(from, b, target)
	}
	for i := range DefaultMaxFlows {
		if !send(uint16(i), to[0]) {
			t.Fatalf("flow %d is not forwarded: %+v", i, g.counters)
		}
	}
	if send(0, to[1]) || g.counters.TooManyFlows != 1 || len(g.flows) != DefaultMaxFlows {
		t.Errorf("%d flows, %d refused; want %d, 1", len(g.flows), g.counters.TooManyFlows, DefaultMaxFlows)
	}
	if !send(0, to[0]) {
		t.Error("a flow that exists is refused")
	}
	g.mu.Lock()
	g.now = 2 * flowIdle
	from.control.frames.Pop().release()
	g.forget()
	g.mu.Unlock()
	if len(g.flows) != 0 || g.memory.held.Load() != 0 || !send(0, to[1]) {
		t.Errorf("%d flows, %d bytes are left", len(g.flows), g.memory.held.Load())
	}
}

// A node has DefaultMaxFlows flows in each direction.
func TestNodeMaxFlows(t *testing.T) {
	self, peer := Address{Site: 1, Node: 1, Process: 1}, Address{Site: 2, Node: 1, Process: 1}
	n := &Node{senders: make(map[flowID]*Sender), receivers: make(map[flowID]*Receiver)}
	n.cfg = NodeConfig{Address: self, Job: 7, MaxFlows: DefaultMaxFlows, FlowWindow: DefaultFlowWindow, RecvMemory: DefaultRecvMemory}
	n.upcalls = Handler{OnFragment: func(*Receiver, *Fragment) {}}
	leg := &conn{host: n, role: roleGateway, attached: true}
	leg.down = true // acks go nowhere
	n.conns = []*conn{leg}
	receive := func(stream uint16, from Address) {
		n.onData(leg, &frame.Frame{Header: frame.Header{
			Type: frame.Data, Flags: frame.First | frame.Last | frame.Fresh, Job: 7, Stream: stream, From: from, To: self, Incarnation: 1,
		}, Payload: []byte("x")})
	}
	for i := range DefaultMaxFlows {
		receive(uint16(i), peer)
		if _, err := n.Sender(peer, uint16(i)); err != nil {
			t.Fatal(err)
		}
	}
	receive(0, self)
	if len(n.receivers) != DefaultMaxFlows || n.counters.Refused != 1 {
		t.Errorf("%d flows, %d refused; want %d, 1", len(n.receivers), n.counters.Refused, DefaultMaxFlows)
	}
	if _, err := n.Sender(self, 0); !errors.Is(err, ErrLimit) {
		t.Errorf("one more sender: %v, want ErrLimit", err)
	}
	if s, err := n.Sender(peer, 9); err != nil || s.Stream() != 9 {
		t.Errorf("a sender that exists: %v", err)
	}
}
