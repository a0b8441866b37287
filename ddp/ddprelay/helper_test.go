package ddprelay

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/internal/relaytest"
	"github.com/weftstack/weft/sctp/relay"
)

// world runs a test in virtual time, with two sites of one gateway.
func world(t *testing.T, f func(t *testing.T, w *relaytest.World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := relaytest.New(t, 1, 2, 1)
		defer w.Close()
		time.Sleep(time.Second)
		f(t, w)
	})
}

// host is a process with an endpoint that accepts all requests.
type host struct {
	t *testing.T
	*Endpoint
	process *relaytest.Node

	mu     sync.Mutex
	sinks  []*sink // of accepted sessions
	events []string
}

func newHost(t *testing.T, w *relaytest.World, site, p uint16, set func(*relay.NodeConfig)) *host {
	t.Helper()
	h := &host{t: t, process: w.Node(site, p, set)}
	h.listen(nil)
	return h
}

func (h *host) listen(set func(*Config)) {
	h.t.Helper()
	cfg := Config{
		OnRequest: func(r *ddpsctp.Request) {
			s := new(sink)
			if err := r.Accept(s, s.bind, ddpsctp.Enhanced{}, nil); err != nil {
				h.t.Error(err)
			}
			h.mu.Lock()
			h.sinks = append(h.sinks, s)
			h.mu.Unlock()
		},
		OnNotify: func(peer relay.Address, up bool, err error) {
			e := "up " + peer.String()
			if !up {
				e = "down " + peer.String() + ": " + err.Error()
			}
			h.mu.Lock()
			h.events = append(h.events, e)
			h.mu.Unlock()
		},
	}
	if set != nil {
		set(&cfg)
	}
	var err error
	if h.Endpoint, err = Listen(h.process.Node, 0, cfg); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) accepted() []*sink {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sinks
}

func (h *host) close() {
	_ = h.Endpoint.Close()
	h.process.Close()
}

func (h *host) dial(to *host) *ddpsctp.Association {
	h.t.Helper()
	a, err := h.tryDial(to, 10*time.Second)
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

func (h *host) tryDial(to *host, limit time.Duration) (*ddpsctp.Association, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	return h.Dial(ctx, to.process.Address())
}

// sink is a ddp.Sink, and the initiator of a session, that notes what it gets.
type sink struct {
	mu      sync.Mutex
	session *ddpsctp.Session
	got     int // segments
	bytes   int
	answers int
	ended   int
	lost    error
}

func (s *sink) add(f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	return nil
}

func (s *sink) bind(x *ddpsctp.Session) error { return s.add(func() { s.session = x }) }
func (s *sink) Segment(_ uint64, seg []byte) error {
	return s.add(func() { s.got, s.bytes = s.got+1, s.bytes+len(seg) })
}
func (s *sink) Segments(first uint64, segs [][]byte) error {
	for i, seg := range segs {
		_ = s.Segment(first+uint64(i), seg)
	}
	return nil
}
func (s *sink) Skip(uint64) error       { return nil }
func (s *sink) End(uint64) error        { return s.add(func() { s.ended++ }) }
func (s *sink) Lost(err error)          { _ = s.add(func() { s.lost = err }) }
func (s *sink) Answered(ddpsctp.Answer) { _ = s.add(func() { s.answers++ }) }

func (s *sink) state() (got, answers, ended int, lost error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got, s.answers, s.ended, s.lost
}

// initiate opens a session.
func initiate(t *testing.T, a *ddpsctp.Association) *sink {
	t.Helper()
	s := new(sink)
	if _, err := a.Initiate(s, s.bind, nil, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// owner counts segments that were released.
type owner struct {
	mu   sync.Mutex
	n    int
	err  error
	when time.Time
}

func (o *owner) Released(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n++
	o.when = time.Now()
	if err != nil {
		o.err = err
	}
}

func (o *owner) state() (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n, o.err
}

// send sends n segments of size bytes of payload, all with one owner.
func (s *sink) send(t *testing.T, o *owner, n, size int) {
	t.Helper()
	for range n {
		m := ddp.Message{SGL: []ddp.Mem{{B: make([]byte, size)}}, Len: uint32(size), Owner: o, Credit: o}
		segs := make([]ddp.Segment, 1)
		if !m.Next(s.session.MULPDU(), &segs[0]) {
			t.Fatalf("%d bytes do not fit a segment of %d", size, s.session.MULPDU())
		}
		if _, err := s.session.Send(segs); err != nil {
			t.Fatal(err)
		}
	}
}

// speaker sends messages of its own making to an endpoint with service 0.
type speaker struct {
	t       *testing.T
	process *relaytest.Node
	to      relay.Address
	got     chan message
}

func newSpeaker(t *testing.T, w *relaytest.World, p uint16, to *host) *speaker {
	s := &speaker{t: t, process: w.Node(1, p, nil), to: to.process.Address(), got: make(chan message, 100)}
	err := s.process.Handle(FirstStream, FirstStream+lanes-1, relay.Handler{OnFragment: func(_ *relay.Receiver, f *relay.Fragment) {
		if m, err := parseMessage(f.Data); f.PPID == ppidAssociation && err == nil {
			select {
			case s.got <- m:
			default:
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *speaker) send(lane uint16, ppid uint32, b []byte) {
	s.t.Helper()
	f, err := s.process.Sender(s.to, FirstStream+lane)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := f.Send(s.t.Context(), b, relay.SendOptions{PPID: ppid, Unordered: true, AckNow: true}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *speaker) message(m message) {
	s.t.Helper()
	s.send(0, ppidAssociation, appendMessage(nil, &m))
}

// want waits for a message.
func (s *speaker) want(k kind) message {
	s.t.Helper()
	for {
		select {
		case m := <-s.got:
			if m.kind == k {
				return m
			}
		case <-time.After(time.Minute):
			s.t.Fatalf("no message of kind %d", k)
		}
	}
}

// session makes a message of a session.
func session(tag uint32, sid, ssn uint16, rest ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, tag)
	b = binary.BigEndian.AppendUint16(b, sid)
	return append(binary.BigEndian.AppendUint16(b, ssn), rest...)
}
