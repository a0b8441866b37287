package sockets_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/sctp/sockets"
)

// Notifications come between the messages: the beginning for who subscribed before, the
// shutdown behind the last message, and then the end.
func TestNotificationsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond})
		p.server.Events = sockets.SCTP_EVENT_ASSOCIATION | sockets.SCTP_EVENT_SHUTDOWN
		p.server.InitMsg.NumOstreams = 7
		c, s := p.connect()
		up := wantNotification[*sockets.AssocChange](t, s)
		if up.State != sockets.SCTP_COMM_UP || up.OutStreams != 7 || up.InStreams != 10 || up.AssocID == 0 {
			t.Errorf("%+v", up)
		}
		for _, m := range []string{"one", "two", "three"} {
			c.Write([]byte(m))
		}
		c.Close()
		time.Sleep(time.Minute)
		wantMessage(t, s, "one")
		wantMessage(t, s, "two")
		wantMessage(t, s, "three")
		if n := wantNotification[*sockets.ShutdownEvent](t, s); n.AssocID != up.AssocID {
			t.Errorf("%+v", n)
		}
		if n := wantNotification[*sockets.AssocChange](t, s); n.State != sockets.SCTP_SHUTDOWN_COMP {
			t.Errorf("%+v", n)
		}
		if _, err := s.Read(make([]byte, 10)); err != io.EOF {
			t.Error(err)
		}
	})
}

// A NotificationHandler gets them instead of the caller of SCTPRead, and can end the read.
func TestNotificationHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{})
		var seen []string
		stop := errors.New("stop")
		p.server.NotificationHandler = func(b []byte) error {
			n, err := sockets.ParseNotification(b)
			if err != nil {
				return err
			}
			seen = append(seen, strings.TrimPrefix(reflect.TypeOf(n).String(), "*sockets."))
			if _, ok := n.(*sockets.ShutdownEvent); ok {
				return stop
			}
			return nil
		}
		p.server.Events = sockets.SCTP_EVENT_ALL
		c, s := p.connect()
		c.Write([]byte("m"))
		buf := make([]byte, 1000)
		n, info, err := s.SCTPRead(buf)
		if err != nil || string(buf[:n]) != "m" || info == nil {
			t.Fatal(string(buf[:n]), info, err)
		}
		c.Close()
		if _, _, err := s.SCTPRead(buf); err != stop {
			t.Errorf("error %v, want that of the handler", err)
		}
		if got := strings.Join(seen, " "); !strings.HasPrefix(got, "AssocChange") || !strings.HasSuffix(got, "ShutdownEvent") {
			t.Errorf("notifications: %s", got)
		}
	})
}

// Paths that fail and come back, and everything acknowledged.
func TestPathAndDryNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond})
		p.client.HeartbeatInterval, p.client.PathMaxRetransmits = time.Second, 1
		c, s := p.connect()
		time.Sleep(time.Minute) // all paths are confirmed
		if err := c.SubscribeEvents(sockets.SCTP_EVENT_ADDRESS | sockets.SCTP_EVENT_SENDER_DRY); err != nil {
			t.Fatal(err)
		}
		wantNotification[*sockets.SenderDry](t, c) // nothing is outstanding
		c.Write([]byte("m"))
		wantNotification[*sockets.SenderDry](t, c)
		wantMessage(t, s, "m")
		second := netip.MustParseAddr("10.0.1.1")
		p.net.Cut("10.0.1.2", "10.0.1.1")
		states := map[sockets.PeerAddrState]bool{}
		for !states[sockets.SCTP_ADDR_UNREACHABLE] {
			n := wantNotification[*sockets.PeerAddrChange](t, c)
			if n.Addr != second || n.Port != 38412 {
				t.Fatalf("%+v, want %v", n, second)
			}
			states[n.State] = true
		}
		if !states[sockets.SCTP_ADDR_POTENTIALLY_FAILED] {
			t.Error("the path was never potentially failed")
		}
		p.net.Restore("10.0.1.2", "10.0.1.1")
		for !states[sockets.SCTP_ADDR_AVAILABLE] {
			states[wantNotification[*sockets.PeerAddrChange](t, c).State] = true
		}
		if err := c.SetPrimaryPeerAddr(0, addr(t, "10.0.1.1:0")); err != nil {
			t.Fatal(err)
		}
		for !states[sockets.SCTP_ADDR_MADE_PRIM] {
			states[wantNotification[*sockets.PeerAddrChange](t, c).State] = true
		}
		if prim, _ := c.SCTPGetPrimaryPeerAddr(); prim.String() != "10.0.1.1:38412" {
			t.Errorf("primary address %v", prim)
		}
		if err := c.SetPrimaryPeerAddr(0, addr(t, "10.9.9.9:0")); err == nil {
			t.Error("an address that is not the peer's became the primary one")
		}
	})
}

// What was written and is not known to have arrived comes back, whole, with its SndRcvInfo.
func TestSendFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond})
		c, s := p.connect()
		synctest.Wait() // the notification of the beginning is over
		c.SubscribeEvents(sockets.SCTP_EVENT_SEND_FAILURE | sockets.SCTP_EVENT_ASSOCIATION)
		c.Write([]byte("arrives"))
		wantMessage(t, s, "arrives")
		time.Sleep(time.Second)
		for _, a := range []string{"10.0.0.2", "10.0.1.2"} {
			p.net.Cut(a, "10.0.0.1")
			p.net.Cut(a, "10.0.1.1")
		}
		sent := []string{"lost", strings.Repeat("longer ", 1000)}
		for i, m := range sent {
			if _, err := c.SCTPWrite([]byte(m), &sockets.SndRcvInfo{Stream: uint16(i), PPID: 60, Context: uint32(100 + i)}); err != nil {
				t.Fatal(err)
			}
		}
		c.SCTPWrite(nil, &sockets.SndRcvInfo{Flags: sockets.SCTP_ABORT})
		got := map[uint32]*sockets.SendFailed{}
		for range sent {
			n := wantNotification[*sockets.SendFailed](t, c)
			got[n.Info.Context] = n
		}
		for i, m := range sent {
			n := got[uint32(100+i)]
			if n == nil || !bytes.Equal(n.Data, []byte(m)) || n.Flags != sockets.SCTP_DATA_SENT || n.Info.PPID != 60 || n.Info.Stream != uint16(i) {
				t.Errorf("message %d came back as %+v", i, n)
			}
		}
	})
}

// Notifications that are not read are lost beyond a bound, and counted; messages are not.
func TestQueuedNotificationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{})
		c, s := p.connect()
		s.SubscribeEvents(sockets.SCTP_EVENT_SENDER_DRY)
		buf := make([]byte, 100)
		const rounds = 1000
		for range rounds { // each has s tell that all it sent was acknowledged
			s.Write([]byte("x"))
			if n, err := c.Read(buf); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			time.Sleep(time.Second)
		}
		c.Write([]byte("behind"))
		notes := 0
		for {
			n, flags, err := s.ReadMsg(buf, nil)
			if err != nil {
				t.Fatal(err)
			}
			if flags&sockets.MSG_NOTIFICATION == 0 {
				if string(buf[:n]) != "behind" {
					t.Errorf("read %q", buf[:n])
				}
				break
			}
			notes++
		}
		if lost := s.LostNotifications(); lost == 0 || uint64(notes)+lost != rounds+1 || notes*(400+12) > 64<<10 {
			t.Errorf("%d notifications read and %d lost of %d", notes, lost, rounds+1)
		}
	})
}

// Each notification survives its layout, and what is none is refused.
func TestParseNotification(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty": {}, "short": make([]byte, 7), "zero": make([]byte, 64),
		"unknown": {0xff, 0xff, 0, 0, 0, 0, 0, 0},
	} {
		if n, err := sockets.ParseNotification(b); err == nil {
			t.Errorf("%s: %+v", name, n)
		}
	}
}

// A failed attempt of a one-to-many socket is a notification as well as an error.
func TestCannotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{})
		p.client.Events = sockets.SCTP_EVENT_ASSOCIATION
		c, err := p.client.ListenOneToMany("sctp", addr(t, "10.0.0.2:7000"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := c.Connect(ctx, addr(t, serverAddr)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("connect to nobody: %v", err)
		}
		if n := wantNotification[*sockets.AssocChange](t, c); n.State != sockets.SCTP_CANT_STR_ASSOC {
			t.Errorf("%+v", n)
		}
	})
}
