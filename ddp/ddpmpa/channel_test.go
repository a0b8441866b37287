package ddpmpa

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/ddp"
)

const testTimeout = 5 * time.Minute

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// tcpPair returns both ends of a TCP connection over loopback.
func tcpPair(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

// ear is a Sink that takes notes.
type ear struct {
	t     *testing.T
	notes chan string
	rtr   chan struct{} // capacity 1: a zero-length Write was heard
	mu    sync.Mutex
	err   error
}

func newEar(t *testing.T) *ear {
	return &ear{t: t, notes: make(chan string, 4096), rtr: make(chan struct{}, 1)}
}

// Segment notes a segment. A slow machine has initiators repeat themselves, so
// zero-length Writes are noted apart.
func (e *ear) Segment(_ uint64, seg []byte) error {
	if string(seg) != string(rtrWrite) {
		e.notes <- string(seg)
		return nil
	}
	select {
	case e.rtr <- struct{}{}:
	default:
	}
	return nil
}
func (e *ear) Segments(uint64, [][]byte) error { e.t.Error("Segments"); return nil }
func (e *ear) Skip(uint64) error               { e.t.Error("Skip"); return nil }
func (e *ear) End(uint64) error                { e.notes <- "end"; return nil }
func (e *ear) Fail(f ddp.Fault)                { e.notes <- "fail " + f.String() }
func (e *ear) Lost(err error) {
	e.mu.Lock()
	e.err = err
	e.mu.Unlock()
	e.notes <- "lost"
}

func (e *ear) want(s string) {
	e.t.Helper()
	select {
	case got := <-e.notes:
		if got != s {
			e.t.Fatalf("heard %.60q, want %.60q (%v)", got, s, e.err)
		}
	case <-time.After(testTimeout):
		e.t.Fatalf("heard nothing, want %.60q", s)
	}
}

// quiet checks that nothing was heard.
func (e *ear) quiet() {
	e.t.Helper()
	select {
	case got := <-e.notes:
		e.t.Fatalf("heard %.60q", got)
	default:
	}
}

type receipts struct{ c chan error }

func (r receipts) Released(err error) { r.c <- err }

// segments cuts a write of data, and returns what the peer will hear.
func send(t *testing.T, c *Channel, data []byte) (heard []string, r receipts) {
	t.Helper()
	r = receipts{make(chan error, 1000)}
	m := ddp.Message{Header: ddp.Header{Tagged: true, Ctrl: 0x40}, SGL: []ddp.Mem{{B: data}}, Len: uint32(len(data)), Owner: r, Credit: r}
	for last := false; !last; {
		segs := make([]ddp.Segment, 1)
		last = m.Next(c.MULPDU(), &segs[0])
		heard = append(heard, string(segs[0].AppendTo(nil)))
		if _, err := c.Send(segs); err != nil {
			t.Fatal(err)
		}
	}
	return heard, r
}

type ends struct {
	a, b   *Channel
	ea, eb *ear
	reply  Frame
	req    *Request
}

// open connects two channels.
func open(t *testing.T, pa, pb Params, e ddp.Enhanced) *ends {
	t.Helper()
	ca, cb := tcpPair(t)
	w := &ends{ea: newEar(t), eb: newEar(t)}
	errc := make(chan error, 1)
	go func() {
		var err error
		if w.req, err = Respond(testContext(t), cb, pb); err == nil {
			err = w.req.Accept(w.eb, func(c *Channel) error { w.b = c; return nil }, e, []byte("welcome"))
		}
		errc <- err
	}()
	var err error
	if w.a, w.reply, err = Initiate(testContext(t), ca, pa); err != nil {
		t.Fatal(err)
	}
	if err := <-errc; err != nil {
		t.Fatal(err)
	}
	w.a.Run(w.ea)
	if string(w.reply.Private) != "welcome" || string(w.req.Private) != string(pa.Private) {
		t.Errorf("private data %q and %q", w.req.Private, w.reply.Private)
	}
	return w
}

func (w *ends) finish(t *testing.T) {
	t.Helper()
	for _, c := range []*Channel{w.a, w.b} {
		if err := c.Terminate(); err != nil {
			t.Error(err)
		}
	}
	w.ea.want("end")
	w.eb.want("end")
	for _, c := range []*Channel{w.a, w.b} {
		c.Release()
		<-c.Done()
	}
	w.ea.quiet()
	w.eb.quiet()
}

func TestChannels(t *testing.T) {
	// Markers and CRCs in every combination (RFC 5044, Section 7.1.1).
	data := bytes.Repeat([]byte("0123456789abcdef"), 40000)
	for i := range 16 {
		pa := Params{Markers: i&1 != 0, NoCRC: i&2 != 0, Private: []byte("hello")}
		pb := Params{Markers: i&4 != 0, NoCRC: i&8 != 0}
		w := open(t, pa, pb, ddp.Enhanced{})
		if got := w.a.tx.f.crc; got != !(pa.NoCRC && pb.NoCRC) || got != w.b.tx.f.crc || got != w.a.rx.f.crc {
			t.Errorf("%+v, %+v: CRC %v", pa, pb, got)
		}
		if w.req.Revision != Revision1 || w.reply.Revision != Revision1 {
			t.Errorf("revisions %d and %d", w.req.Revision, w.reply.Revision)
		}
		if w.a.tx.f.markers != pb.Markers || w.b.tx.f.markers != pa.Markers {
			t.Errorf("%+v, %+v: markers %v and %v", pa, pb, w.a.tx.f.markers, w.b.tx.f.markers)
		}
		for k := range 3 {
			heard, r := send(t, w.a, data[:len(data)>>(4*k)])
			for _, h := range heard {
				w.eb.want(h)
			}
			back, _ := send(t, w.b, data[:100])
			for _, h := range back {
				w.ea.want(h)
			}
			for range heard {
				if err := <-r.c; err != nil {
					t.Fatal(err)
				}
			}
		}
		w.finish(t)
	}
}

// pipeConn is a connection in memory.
type pipeConn struct{ net.Conn }

func (c pipeConn) CloseWrite() error { return c.Close() }

// A peer that connects and says nothing, or never ends, holds nobody up for longer than
// StartupTimeout.
func TestStartupTakesNotForEver(t *testing.T) {
	for _, begun := range [][]byte{nil, []byte("MPA ID")} {
		for _, initiate := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				ours, peer := net.Pipe()
				defer peer.Close()
				go io.Copy(io.Discard, peer)
				go peer.Write(begun)
				start := time.Now()
				var err error
				if initiate {
					_, _, err = Initiate(t.Context(), pipeConn{ours}, Params{})
				} else {
					_, err = Respond(t.Context(), pipeConn{ours}, Params{})
				}
				if d := time.Since(start); err == nil || d != StartupTimeout {
					t.Errorf("initiate %v, %d octets: %v after %v", initiate, len(begun), err, d)
				}
				ours.Close()
			})
		}
	}
}

func TestResponderWaitsForFirstFPDU(t *testing.T) {
	// RFC 5044, Section 7.1.2, rule 4: "MUST receive and validate at least one
	// FPDU before sending any FPDUs or Markers."
	synctest.Test(t, func(t *testing.T) {
		ours, peer := net.Pipe()
		var got bytes.Buffer
		go func() {
			peer.Write(AppendFrame(nil, &Frame{Revision: Revision1}))
			io.Copy(&got, peer)
		}()
		req, err := Respond(t.Context(), pipeConn{ours}, Params{NoCRC: true})
		if err != nil {
			t.Fatal(err)
		}
		e := newEar(t)
		var ch *Channel
		if err := req.Accept(e, func(c *Channel) error { ch = c; return nil }, ddp.Enhanced{}, nil); err != nil {
			t.Fatal(err)
		}
		heard, r := send(t, ch, []byte("early"))
		synctest.Wait()
		reply := got.Len()
		if sent, _ := ch.Counts(); reply != FrameHeaderLen || sent != 0 || len(r.c) != 0 {
			t.Errorf("the responder sent % x first", got.Bytes())
		}
		if _, err := peer.Write(NewFramer(false, false).Append(nil, []byte("first"), nil)); err != nil {
			t.Fatal(err)
		}
		e.want("first")
		synctest.Wait()
		if seg, n, err := NewDeframer(false, false).Next(got.Bytes()[reply:]); err != nil || n != got.Len()-reply || string(seg) != heard[0] {
			t.Errorf("after the first FPDU it sent % x", got.Bytes()[reply:])
		}
		ch.Kill()
		e.want("lost")
		<-ch.Done()
		peer.Close()
	})
}

func TestReadyToReceive(t *testing.T) {
	// RFC 6581, Section 9.2: with the peer-to-peer model the responder may
	// send as soon as it has the RTR indication, which the initiator sends by
	// itself.
	e := &ddp.Enhanced{PeerToPeer: true, IRD: 3, ORD: 4}
	w := open(t, Params{Enhanced: e, Private: []byte("x")}, Params{}, ddp.Enhanced{IRD: 4, ORD: 3})
	if q := w.req.Enhanced; !q.PeerToPeer || !q.RTRWrite || q.RTRSend || q.IRD != 3 || q.ORD != 4 || w.req.Revision != 2 {
		t.Errorf("request %+v", w.req.Frame)
	}
	if q := w.reply.Enhanced; !q.PeerToPeer || !q.RTRWrite || !q.RTRRead || q.RTRSend || q.IRD != 4 || q.ORD != 3 || w.reply.Revision != 2 {
		t.Errorf("reply %+v", w.reply)
	}
	select {
	case <-w.eb.rtr:
	case <-time.After(testTimeout):
		t.Fatal("no ready-to-receive indication")
	}
	heard, _ := send(t, w.b, []byte("server talks first"))
	w.ea.want(heard[0])
	w.finish(t)

	w = open(t, Params{Enhanced: &ddp.Enhanced{}}, Params{}, ddp.Enhanced{})
	if w.a.rtr || w.reply.Enhanced.PeerToPeer || !w.reply.IsEnhanced {
		t.Errorf("client-server model: reply %+v", w.reply)
	}
	w.finish(t)
}

func TestRejected(t *testing.T) {
	for _, e := range []*ddp.Enhanced{nil, {IRD: 1}} {
		ca, cb := tcpPair(t)
		go func() {
			r, err := Respond(testContext(t), cb, Params{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := r.Reject(ddp.Enhanced{ORD: 9}, make([]byte, 513)); !errors.Is(err, ErrPrivate) {
				t.Errorf("513 octets of private data: %v", err)
			}
			if err := r.Reject(ddp.Enhanced{ORD: 9}, []byte("busy")); err != nil {
				t.Error(err)
			}
			if err := r.Accept(newEar(t), nil, ddp.Enhanced{}, nil); err != ErrClosed {
				t.Errorf("second answer: %v", err)
			}
		}()
		c, f, err := Initiate(testContext(t), ca, Params{Enhanced: e})
		if c != nil || err != nil || !f.Rejected || string(f.Private) != "busy" || f.IsEnhanced != (e != nil) {
			t.Errorf("%v, %+v, %v", c, f, err)
		}
		// RFC 5044, Section 7.1.2, rule 3: the initiator leaves TCP open.
		if err := ca.SetDeadline(time.Time{}); err != nil {
			t.Errorf("after the rejection: %v", err)
		}
	}
}

func TestStartupErrors(t *testing.T) {
	// RFC 5044, Section 8, code 4: the connection is closed immediately.
	for _, tt := range []struct {
		name, send string
		want       error
	}{
		{"something else", "HTTP/1.1 400 Bad Request\r\n\r\n", ErrFrame},
		{"both initiate", string(AppendFrame(nil, &Frame{Revision: 1})), ErrSameMode},
		{"revision 9", string(AppendFrame(nil, &Frame{Reply: true, Revision: 9})), ErrRevision},
		{"half a frame", keyReply, ErrFrame},
		{"nothing", "", FaultLost},
		{"an end without a reply", "", ErrNoReply},
		{"enhanced reply to an unenhanced request", string(AppendFrame(nil, &Frame{Reply: true, Revision: 2, IsEnhanced: true})), ErrFrame},
	} {
		ca, cb := tcpPair(t)
		cb.Write([]byte(tt.send))
		cb.CloseWrite()
		if _, _, err := Initiate(testContext(t), ca, Params{}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if _, err := ca.Write(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: connection is open: %v", tt.name, err)
		}
	}
	ca, cb := tcpPair(t)
	cb.Write(AppendFrame(nil, &Frame{Reply: true, Revision: 1}))
	if _, err := Respond(testContext(t), ca, Params{}); !errors.Is(err, ErrSameMode) {
		t.Errorf("responder that gets a reply: %v", err)
	}
	ca, _ = tcpPair(t)
	if _, _, err := Initiate(testContext(t), ca, Params{Private: make([]byte, 513)}); !errors.Is(err, ErrPrivate) {
		t.Errorf("513 octets of private data: %v", err)
	}
	ca, _ = tcpPair(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Respond(ctx, ca, Params{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestInvalidFPDUIsReported(t *testing.T) {
	// RFC 5044, Section 8: nothing is delivered any more, and the other
	// direction still works: "This allows a diagnostic error message to be
	// sent."
	w := open(t, Params{}, Params{}, ddp.Enhanced{})
	first, _ := send(t, w.a, []byte("fine"))
	w.eb.want(first[0])
	bad := w.a.tx.Append(nil, []byte("0123456789"), nil)
	bad[5] ^= 1
	w.a.conn.Write(bad)
	send(t, w.a, []byte("after"))
	w.eb.want("fail " + FaultCRC.String())
	heard, _ := send(t, w.b, []byte("diagnosis"))
	w.ea.want(heard[0])
	w.finish(t)
}

func TestInvalidFirstFPDU(t *testing.T) {
	w := open(t, Params{}, Params{}, ddp.Enhanced{})
	w.a.conn.Write([]byte("\x00\x04datado not match"))
	w.eb.want("fail " + FaultCRC.String())
	segs := make([]ddp.Segment, 1)
	m := ddp.Message{Credit: receipts{make(chan error, 1)}}
	m.Next(1000, &segs[0])
	if _, err := w.b.Send(segs); !errors.Is(err, ErrClosed) {
		t.Errorf("Send without a valid FPDU: %v", err)
	}
	w.ea.want("end")
	w.a.Kill()
	w.b.Kill()
	<-w.a.Done()
	<-w.b.Done()
}

func TestTruncated(t *testing.T) {
	w := open(t, Params{}, Params{}, ddp.Enhanced{})
	_, r := send(t, w.b, []byte("held back")) // forever: there is no first FPDU
	w.a.conn.Write(w.a.tx.Append(nil, make([]byte, 100), nil)[:50])
	w.a.conn.CloseWrite()
	w.eb.want("lost")
	if !errors.Is(w.eb.err, ErrTruncated) || !errors.Is(w.eb.err, FaultLost) {
		t.Errorf("lost by %v", w.eb.err)
	}
	if err := <-r.c; err == nil {
		t.Error("a segment that was not sent was released without an error")
	}
	<-w.b.Done()
}

func TestLostConnection(t *testing.T) {
	w := open(t, Params{}, Params{}, ddp.Enhanced{})
	first, _ := send(t, w.a, []byte("x"))
	w.eb.want(first[0])
	w.a.conn.(*net.TCPConn).SetLinger(0) // RST
	w.a.conn.Close()
	w.eb.want("lost")
	w.ea.want("lost")
	if !errors.Is(w.eb.err, FaultLost) {
		t.Errorf("lost by %v", w.eb.err)
	}
	<-w.a.Done()
	<-w.b.Done()
	if _, err := w.b.Send(make([]ddp.Segment, 1)); err == nil {
		t.Error("Send on a lost connection succeeded")
	}
}

func TestStuckPeer(t *testing.T) {
	// What a peer that does not read leaves in memory is released when the
	// channel is killed.
	w := open(t, Params{}, Params{}, ddp.Enhanced{})
	ca, cb := tcpPair(t)
	ch := newChannel(ca, &Frame{}, &Frame{}, false)
	e := newEar(t)
	ch.Run(e)
	heard, r := send(t, ch, make([]byte, 16<<20))
	ch.Kill()
	e.want("lost")
	<-ch.Done()
	failed := 0
	for range heard {
		if err := <-r.c; err != nil {
			failed++
		}
	}
	if failed == 0 {
		t.Error("16 MB were sent to a peer that does not read")
	}
	cb.Close()
	w.finish(t)
}

func TestOversizedSegment(t *testing.T) {
	c, _ := tcpPair(t)
	ch := newChannel(c, &Frame{}, &Frame{}, false)
	if n, err := ch.Send([]ddp.Segment{{Body: make([]byte, MaxMULPDU+3)}}); n != 0 || !errors.Is(err, ErrSegment) {
		t.Errorf("Send: %v", err)
	}
	ch.Kill()
	<-ch.Done()
	if !strings.Contains(ErrTruncated.Error(), "connection lost") {
		t.Error(ErrTruncated)
	}
}
