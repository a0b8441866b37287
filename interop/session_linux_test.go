package interop

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
)

// Ports of SCTP in these tests: a guest sees those of earlier tests go away
// slowly, so each session takes new ones.
var lastPort atomic.Uint32

func newPorts() (ours, theirs uint16) {
	n := lastPort.Add(2)
	return uint16(20000 + n%20000), uint16(20001 + n%20000)
}

// setup is how to open an association with a peer.
type setup struct {
	stack *stack
	// accept has the peer connect to us instead of us to it.
	accept bool
	cfg    sctp.Config
	opts   []string  // of the peer
	mode   string    // of the peer: echo or sink
	relay  *relay    // the path, nil for the direct one
	net    *multinet // where both ends have several addresses
	// at are the addresses of the ends in net, by default the IPv4 ones.
	at [2]addrList
	// discover looks for the path MTU.
	discover bool
}

// session is an association with a peer.
type session struct {
	*setup
	t      testing.TB
	ctx    context.Context
	tr     *sctp.Transport
	ep     *sctp.Endpoint
	a      *sctp.Association
	peer   *peer
	udp    []netip.AddrPort // of the peer, as we see it
	ours   uint16           // our SCTP port
	theirs uint16

	notes chan sctp.Notification
	round uint16            // calls of bothWays
	next  map[uint16]uint32 // number expected next, by stream
	mu    sync.Mutex
	sent  [256]int // chunks by type; guarded by mu
	got   [256]int // chunks by type; guarded by mu
	// ssnSent and ssnGot are the last sequence numbers by stream of DATA chunks
	// that begin a message; guarded by mu
	ssnSent, ssnGot map[uint16]uint16
	// bare counts DATA and I-DATA chunks sent and received without an AUTH chunk
	// in front of them; guarded by mu
	bare [2]int
	// dataFrom counts the packets with data that came by each link of a
	// multinet; guarded by mu
	dataFrom [2]int
}

// sessionTime bounds a whole session.
const sessionTime = 5 * time.Minute

// open opens an association; it ends with the test.
func (o setup) open(t testing.TB) *session {
	t.Helper()
	s := o.prepare(t)
	s.connect()
	return s
}

// prepare starts both ends and no association yet.
func (o setup) prepare(t testing.TB) *session {
	t.Helper()
	s := &session{setup: &o, t: t, notes: make(chan sctp.Notification, 10000),
		ssnSent: make(map[uint16]uint16), ssnGot: make(map[uint16]uint16)}
	s.ours, s.theirs = newPorts()
	if s.cfg.MTU == 0 && !s.discover {
		s.cfg.MTU = o.stack.mtu
	}
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(within(t), sessionTime)
	t.Cleanup(cancel)
	s.peer = o.stack.start(t, nil)
	if o.net != nil {
		if !s.discover {
			s.cfg.MTU = 1500
		}
		for i := range s.at {
			if s.at[i] == nil {
				s.at[i] = addrList{linkAddr(0, i), linkAddr(1, i)}
			}
		}
		s.udp = s.at[theirs].at(o.net.port())
		s.startTransport(sctp.TransportConfig{Conns: o.net.conns(s.at[ours])})
	} else {
		s.udp = []netip.AddrPort{netip.MustParseAddrPort(o.stack.udp(s.peer))}
		s.startTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort(o.stack.ours)}})
	}
	t.Cleanup(func() {
		s.tr.Close()
		if st := s.tr.Stats(); o.relay == nil && st.BadPackets > 0 {
			t.Errorf("%d packets of the peer were bad", st.BadPackets)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Logf("chunks sent: %s; received: %s", chunkCounts(&s.sent), chunkCounts(&s.got))
	})
	if o.relay != nil {
		o.relay.between(s.tr.LocalAddrs()[0], s.udp[0])
		s.udp[0] = o.relay.near.LocalAddr().(interface{ AddrPort() netip.AddrPort }).AddrPort()
	}
	s.configurePeer()
	return s
}

// configurePeer gives a new peer the options of the session.
func (s *session) configurePeer() {
	s.t.Helper()
	for _, opt := range s.opts {
		s.peer.do("opt %s", opt)
	}
	if s.mode != "" {
		s.peer.ok("mode %s", s.mode)
	}
}

// startTransport starts our end.
func (s *session) startTransport(cfg sctp.TransportConfig) {
	s.t.Helper()
	cfg.Tap = s.tap
	var err error
	if s.tr, err = sctp.NewTransport(cfg); err != nil {
		s.t.Fatal(err)
	}
	acfg := s.cfg
	acfg.OnNotify = func(a *sctp.Association, n sctp.Notification) {
		select {
		case s.notes <- n:
		default:
		}
	}
	if s.ep, err = s.tr.Listen(s.ours, &acfg); err != nil {
		s.t.Fatal(err)
	}
}

// connect opens the association.
func (s *session) connect() {
	s.t.Helper()
	if s.accept {
		s.peerConnects()
	} else {
		s.peerListens()
		s.peer.want("listening")
		s.weConnect()
	}
	s.peer.want("up")
}

func (s *session) weConnect() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	a, err := s.ep.Connect(ctx, s.peerAddr())
	if err != nil {
		s.t.Fatalf("connecting to the peer: %v", err)
	}
	s.a = a
}

// peerAddr is how we reach the peer.
func (s *session) peerAddr() sctp.Addr {
	return sctp.Addr{Addrs: s.udp, Port: s.theirs}
}

// peerListens has the peer listen.
func (s *session) peerListens() {
	s.t.Helper()
	if s.net != nil {
		s.peer.do("listen %d %v", s.theirs, s.at[theirs])
	} else {
		s.peer.do("listen %d", s.theirs)
	}
}

func (s *session) peerConnects() {
	s.t.Helper()
	s.peerDials()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	a, err := s.ep.Accept(ctx)
	if err != nil {
		s.t.Fatalf("accepting the peer: %v; it said:\n%s", err, s.peer.last())
	}
	s.a = a
}

// peerDials has the peer begin to connect.
func (s *session) peerDials() {
	s.t.Helper()
	if s.net != nil {
		s.peer.do("connect %d@%v %d %d %v", s.theirs, s.at[theirs], s.ours, s.net.port(), s.at[ours])
		return
	}
	port := s.tr.LocalAddrs()[0].Port()
	if s.relay != nil {
		port = s.relay.far.LocalAddr().(interface{ AddrPort() netip.AddrPort }).AddrPort().Port()
	}
	s.peer.do("connect %d %d %d %s", s.theirs, s.ours, port, s.stack.host)
}

// trace shows the packets of all sessions.
var trace = os.Getenv("WEFT_INTEROP_TRACE") != ""

// tap counts the chunks of both directions.
func (s *session) tap(e sctp.TapEvent) {
	if len(e.Data) <= wire.HeaderLen {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if trace {
		arrow := "<"
		if e.Sent {
			arrow = ">"
		}
		fmt.Fprintf(os.Stderr, "%s %v %s %v %s\n", time.Now().Format("05.000000"), e.Local, arrow, e.Remote, wire.Describe(e.Data))
	}
	if typ := wire.ChunkType(e.Data[wire.HeaderLen]); s.net != nil && !e.Sent && (typ == wire.ChunkData || typ == wire.ChunkIData) {
		s.dataFrom[linkOf(e.Remote)]++
	}
	authed := false
	for it := wire.NewChunks(e.Data[wire.HeaderLen:]); it.Next(); {
		c := it.Chunk()
		counts, ssns, bare := &s.got, s.ssnGot, &s.bare[1]
		if e.Sent {
			counts, ssns, bare = &s.sent, s.ssnSent, &s.bare[0]
		}
		counts[c.Type]++
		authed = authed || c.Type == wire.ChunkAuth
		if !authed && (c.Type == wire.ChunkData || c.Type == wire.ChunkIData) {
			*bare++
		}
		if c.Type != wire.ChunkData {
			continue
		}
		if d, err := wire.ParseData(c); err == nil && d.Begin && !d.Unordered {
			ssns[d.SID] = d.SSN
		}
	}
}

// chunks returns how many chunks of a type were sent and received.
func (s *session) chunks(typ wire.ChunkType) (sent, got int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[typ], s.got[typ]
}

// until waits until ok says so.
func (s *session) until(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %+v", what, s.a.Stats())
		}
	}
}

// wantChunks checks that both sides sent chunks of a type, or that none did.
func (s *session) wantChunks(typ wire.ChunkType, some bool) {
	s.t.Helper()
	if sent, got := s.chunks(typ); (sent > 0) != some || (got > 0) != some {
		s.t.Errorf("%d chunks of type %v sent, %d received; want some: %v", sent, typ, got, some)
	}
}

func chunkCounts(n *[256]int) string {
	var parts []string
	for typ, n := range n {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%v %d", wire.ChunkType(typ), n))
		}
	}
	return strings.Join(parts, ", ")
}

// wantNote waits for a notification.
func (s *session) wantNote(kind sctp.NotificationKind) sctp.Notification {
	s.t.Helper()
	return s.wantNoteWith(kind, func(sctp.Notification) bool { return true })
}

// wantNoteWith waits for a notification that ok says yes to.
func (s *session) wantNoteWith(kind sctp.NotificationKind, ok func(sctp.Notification) bool) sctp.Notification {
	s.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var seen []string
	for {
		select {
		case n := <-s.notes:
			if n.Kind == kind && ok(n) {
				return n
			}
			seen = append(seen, fmt.Sprint(n.Kind, " ", n.Addr))
		case <-timer.C:
			s.t.Fatalf("the notification %q is missing after %v; there were %q", kind, patience, seen)
		}
	}
}

// wantEnd waits until the association has ended, and returns why.
func (s *session) wantEnd(limit time.Duration) error {
	s.t.Helper()
	select {
	case <-s.a.Done():
		return s.a.Err()
	case <-time.After(limit):
		s.t.Fatalf("the association goes on after %v: %+v", limit, s.a.Stats())
		return nil
	}
}

// shutdown ends the association gracefully from our side.
func (s *session) shutdown() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	if err := s.a.Shutdown(ctx); err != nil {
		s.t.Errorf("shutdown: %v", err)
	}
	s.peer.want("end")
}

// traffic describes messages as the peer's send command does.
type traffic struct {
	count, size, streams int
	opts                 sctp.SendOptions
	peerOpts             string
}

func (tr traffic) bytes() int64 { return int64(tr.count) * int64(tr.size) }

// send sends messages that the peer can check.
func (s *session) send(tr traffic) {
	s.t.Helper()
	if err := s.trySend(tr); err != nil {
		s.t.Fatalf("send: %v; %+v", err, s.a.Stats())
	}
}

func (s *session) trySend(tr traffic) error {
	buf := make([]byte, tr.size)
	seqs := make([]uint32, max(tr.streams, 1))
	for i := range tr.count {
		k := i % len(seqs)
		o := tr.opts
		o.Stream += uint16(k)
		fillMessage(buf, seqs[k])
		if err := s.a.Send(s.ctx, buf, o); err != nil {
			return fmt.Errorf("message %d of %d: %w", i, tr.count, err)
		}
		seqs[k]++
	}
	return nil
}

// peerSends has the peer send messages.
func (s *session) peerSends(tr traffic) {
	s.t.Helper()
	s.peer.do("send %d %d streams=%d %s", tr.count, tr.size, max(tr.streams, 1), tr.peerOpts)
}

// receipt is what was received.
type receipt struct {
	msgs, gaps, unordered int
	bytes                 int64
	order                 []uint16 // streams in the order of arrival
}

// receive receives n messages of peerSends and checks order and content.
func (s *session) receive(n int) receipt {
	s.t.Helper()
	var got receipt
	if s.next == nil {
		s.next = make(map[uint16]uint32)
	}
	next := s.next
	parts := make(map[uint64][]byte)
	buf := make([]byte, 256<<10)
	for got.msgs < n {
		k, info, err := s.a.Recv(s.ctx, buf)
		if err != nil {
			s.t.Fatalf("receive after %d of %d messages: %v; %+v", got.msgs, n, err, s.a.Stats())
		}
		if info.Aborted {
			delete(parts, info.Message)
			continue
		}
		msg := buf[:k]
		if part, ok := parts[info.Message]; ok || !info.EOR {
			msg = append(part, msg...)
			parts[info.Message] = msg
			if !info.EOR {
				continue
			}
			delete(parts, info.Message)
		}
		seq, err := checkMessage(msg)
		if err != nil {
			s.t.Fatalf("message %d, stream %d: %v", got.msgs, info.Stream, err)
		}
		if !info.Unordered {
			if seq < next[info.Stream] {
				s.t.Fatalf("message %d, stream %d: number %d after %d", got.msgs, info.Stream, seq, next[info.Stream]-1)
			}
			if seq > next[info.Stream] {
				got.gaps++
			}
			next[info.Stream] = seq + 1
		} else {
			got.unordered++
		}
		got.msgs++
		got.bytes += int64(len(msg))
		if len(got.order) < 10000 {
			got.order = append(got.order, info.Stream)
		}
	}
	return got
}

// wantEOF checks that the peer sends no more.
func (s *session) wantEOF() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	buf := make([]byte, 1000)
	if n, info, err := s.a.Recv(ctx, buf); err != io.EOF {
		s.t.Errorf("receive after the end: %d bytes, %+v, %v; want EOF", n, info, err)
	}
}

// The messages of testdata/peer: number in the stream, length, then bytes with
// a period of 251.
var pattern = func() []byte {
	p := make([]byte, 251)
	x := uint32(1)
	for i := range p {
		x = x*1664525 + 1013904223
		p[i] = byte(x >> 24)
	}
	return slices.Repeat(p, 300)
}()

func fillMessage(b []byte, seq uint32) {
	binary.BigEndian.PutUint32(b, seq)
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)))
	for at := 8; at < len(b); {
		at += copy(b[at:], pattern[(int(seq)+at)%251:])
	}
}

func checkMessage(b []byte) (seq uint32, err error) {
	if len(b) < 8 || int(binary.BigEndian.Uint32(b[4:])) != len(b) {
		return 0, fmt.Errorf("%d bytes: %.16x", len(b), b)
	}
	seq = binary.BigEndian.Uint32(b)
	for at := 8; at < len(b); {
		want := pattern[(int(seq)+at)%251:]
		n := min(len(want), len(b)-at)
		if !bytes.Equal(b[at:at+n], want[:n]) {
			return 0, fmt.Errorf("%d bytes, number %d: wrong bytes after %d", len(b), seq, at)
		}
		at += n
	}
	return seq, nil
}
