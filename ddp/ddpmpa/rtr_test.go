package ddpmpa

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/ddp"
)

func TestIndication(t *testing.T) {
	// RFC 6581, Section 9.2: "the initiator MUST generate one of the
	// negotiated RTR indications".
	all := ddp.Enhanced{PeerToPeer: true, RTRSend: true, RTRWrite: true, RTRRead: true}
	for _, tt := range []struct {
		name         string
		reply, asked ddp.Enhanced
		want         Indication
	}{
		{"all", all, all, IndicationWrite},
		{"write", ddp.Enhanced{PeerToPeer: true, RTRWrite: true}, ddp.Enhanced{PeerToPeer: true}, IndicationWrite},
		{"read", ddp.Enhanced{PeerToPeer: true, RTRRead: true, RTRSend: true}, all, IndicationRead},
		{"send", ddp.Enhanced{PeerToPeer: true, RTRSend: true}, all, IndicationSend},
		{"read not offered", ddp.Enhanced{PeerToPeer: true, RTRRead: true}, ddp.Enhanced{PeerToPeer: true}, IndicationNone},
		{"none named", ddp.Enhanced{PeerToPeer: true}, all, IndicationNone},
		{"client-server", ddp.Enhanced{RTRWrite: true}, ddp.Enhanced{}, IndicationNotAsked},
		{"reply of client-server", ddp.Enhanced{RTRWrite: true}, all, IndicationNotAsked},
	} {
		f := Frame{Reply: true, IsEnhanced: true, Enhanced: tt.reply}
		if got := f.Indication(tt.asked); got != tt.want {
			t.Errorf("%s: indication %d, want %d", tt.name, got, tt.want)
		}
	}
	if got := (&Frame{Reply: true}).Indication(all); got != IndicationNotAsked {
		t.Errorf("unenhanced reply: indication %d", got)
	}
}

// TestSilentResponderIsNudged has a responder that takes what comes and says
// nothing: it gets zero-length Writes, few of them, and none after it has sent
// something.
func TestSilentResponderIsNudged(t *testing.T) {
	ca, cb := tcpPair(t)
	ch := newChannel(ca, &Frame{CRC: true}, &Frame{CRC: true}, false)
	ch.rtr, ch.initiator = true, true
	e := newEar(t)
	ch.Run(e)
	d, u := NewDeframer(false, true), NewFramer(false, true)
	cb.SetReadDeadline(time.Now().Add(testTimeout))
	next := func() {
		t.Helper()
		b := make([]byte, lengthLen+14+crcLen)
		if _, err := io.ReadFull(cb, b); err != nil {
			t.Fatal(err)
		}
		if seg, _, err := d.Next(b); err != nil || string(seg) != string(rtrWrite) {
			t.Fatalf("segment % x, %v", seg, err)
		}
	}
	for range 3 {
		next() // the indication, and repetitions
	}
	if _, err := cb.Write(u.Append(nil, []byte("awake"), nil)); err != nil {
		t.Fatal(err)
	}
	e.want("awake")
	ch.mu.Lock()
	nudge := ch.nudge
	ch.mu.Unlock()
	if nudge {
		t.Error("a peer that speaks is nudged")
	}
	heard, _ := send(t, ch, []byte("on"))
	b := make([]byte, 256)
	for got := ""; got != heard[0]; {
		// At most one more that was under way.
		n, err := cb.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < n; {
			seg, k, err := d.Next(b[at:n])
			if err != nil || k == 0 {
				t.Fatalf("% x: %v", b[at:n], err)
			}
			got, at = string(seg), at+k
		}
	}
	ch.Kill()
	e.want("lost")
	<-ch.Done()
}

func TestNudgesStayOutOfMessages(t *testing.T) {
	// A tagged message of which only a part was sent must not be interrupted
	// by another tagged one.
	ca, cb := tcpPair(t)
	ch := newChannel(ca, &Frame{}, &Frame{}, false)
	ch.initiator = true
	e := newEar(t)
	ch.Run(e)
	r := receipts{make(chan error, 100)}
	m := ddp.Message{Header: ddp.Header{Tagged: true, Ctrl: 0x40}, SGL: []ddp.Mem{{B: make([]byte, 300)}}, Len: 300, Owner: r, Credit: r}
	segs := make([]ddp.Segment, 1)
	m.Next(128, &segs[0])
	if _, err := ch.Send(segs); err != nil {
		t.Fatal(err)
	}
	for at := 0; at < 2; at++ { // two nudges that are due
		<-r.c
		ch.mu.Lock()
		ch.nudge = true
		ch.wake.Signal()
		ch.mu.Unlock()
		m.Next(128, &segs[0])
		if _, err := ch.Send(segs); err != nil {
			t.Fatal(err)
		}
	}
	<-r.c
	ch.Kill()
	<-ch.Done()
	stream, _ := io.ReadAll(cb)
	d := NewDeframer(false, false)
	for i := range 3 {
		seg, n, err := d.Next(stream)
		if err != nil || n == 0 || len(seg) <= 14 {
			t.Fatalf("segment %d is % x, %v", i, seg, err)
		}
		stream = stream[n:]
	}
}

// A responder may take long to turn to full operation: an initiator goes on repeating itself, a few
// times a minute, until it hears something.
func TestSlowResponderIsNudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		ch := newChannel(pipeConn{near}, &Frame{CRC: true}, &Frame{CRC: true}, false)
		ch.rtr, ch.initiator = true, true
		e := newEar(t)
		ch.Run(e)
		var octets atomic.Int64
		go func() {
			b := make([]byte, 4096)
			for {
				n, err := far.Read(b)
				if octets.Add(int64(n)); err != nil {
					return
				}
			}
		}()
		const write = lengthLen + 14 + crcLen
		during := func(d time.Duration) int64 {
			before := octets.Load()
			time.Sleep(d)
			return (octets.Load() - before) / write
		}
		during(10 * time.Second)
		if n := during(time.Minute); n < 10 || n > 15 {
			t.Errorf("%d zero-length Writes in a minute, want one every %v", n, lastNudge)
		}
		if _, err := far.Write(NewFramer(false, true).Append(nil, []byte("awake"), nil)); err != nil {
			t.Fatal(err)
		}
		e.want("awake")
		if n := during(time.Minute); n > 0 {
			t.Errorf("%d zero-length Writes to a responder that has spoken", n)
		}
		ch.Kill()
		<-ch.Done()
	})
}
