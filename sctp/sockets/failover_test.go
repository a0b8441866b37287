package sockets_test

import (
	"fmt"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/sctp/sockets"
)

// With two addresses at both ends an association outlives each of its paths, and loses nothing.
func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond})
		p.client.HeartbeatInterval, p.server.HeartbeatInterval = time.Second, time.Second
		c, s := p.connect()
		time.Sleep(10 * time.Second) // all paths are confirmed
		next := 0
		exchange := func() {
			t.Helper()
			for range 20 {
				msg := fmt.Sprintf("message %d", next)
				next++
				if _, err := c.Write([]byte(msg)); err != nil {
					t.Fatal(err)
				}
				wantMessage(t, s, msg)
				if _, err := s.Write([]byte(msg)); err != nil {
					t.Fatal(err)
				}
				wantMessage(t, c, msg)
			}
		}
		exchange()
		for _, path := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"10.0.1.1", "10.0.1.2"}} {
			p.net.Cut(path[0], path[1])
			exchange()
			p.net.Restore(path[0], path[1])
			time.Sleep(time.Minute)
			exchange()
		}
	})
}

// SCTPRead returns a notification like a message, without an SndRcvInfo, as the binding does.
func TestReadOfNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond})
		p.server.Events = sockets.SCTP_EVENT_DATA_IO | sockets.SCTP_EVENT_ASSOCIATION
		c, s := p.connect()
		c.Write([]byte("m"))
		buf := make([]byte, 100)
		n, info, err := s.SCTPRead(buf)
		if err != nil || info != nil {
			t.Fatal(n, info, err)
		}
		if note, err := sockets.ParseNotification(buf[:n]); err != nil || note.Type() != sockets.SCTP_ASSOC_CHANGE {
			t.Errorf("%+v, %v", note, err)
		}
		if n, info, err = s.SCTPRead(buf); err != nil || info == nil || string(buf[:n]) != "m" {
			t.Error(string(buf[:n]), info, err)
		}
	})
}

// BenchmarkRoundTrip sends a message there and back over the loopback interface.
func BenchmarkRoundTrip(b *testing.B) {
	for _, size := range []int{64, 1000, 60_000} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			l, err := sockets.ListenSCTP("sctp", addr(b, "127.0.0.1:0"))
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			c, err := sockets.DialSCTP("sctp", nil, l.Addr().(*sockets.SCTPAddr))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			s, err := l.AcceptSCTP()
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			go func() {
				buf := make([]byte, size)
				for {
					n, _, err := s.ReadMsg(buf, nil)
					if err != nil {
						return
					}
					s.Write(buf[:n])
				}
			}()
			msg, buf := make([]byte, size), make([]byte, size)
			b.SetBytes(int64(2 * size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Write(msg); err != nil {
					b.Fatal(err)
				}
				if _, _, err := c.ReadMsg(buf, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A peer that shuts down and vanishes: without anything on the way to it that is a graceful end,
// with a message that it did not take an error, and the message comes back.
func TestShutdownOfPeerThatVanishes(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprint("lost=", lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond})
				p.server.Events = sockets.SCTP_EVENT_SEND_FAILURE | sockets.SCTP_EVENT_SHUTDOWN
				p.server.AssocInfo = &sockets.AssocInfo{AsocMaxRxt: 3}
				c, s := p.connect()
				time.Sleep(time.Minute)
				// What the server sends does not arrive any more.
				for _, from := range []string{"10.0.0.1", "10.0.1.1"} {
					for _, to := range []string{"10.0.0.2", "10.0.1.2"} {
						p.net.SetLink(from, to, sctptest.Link{Loss: 1})
					}
				}
				if lost {
					s.Write([]byte("lost"))
				}
				c.SCTPWrite(nil, &sockets.SndRcvInfo{Flags: sockets.SCTP_EOF})
				if lost {
					if n := wantNotification[*sockets.SendFailed](t, s); string(n.Data) != "lost" {
						t.Errorf("%+v", n)
					}
				}
				wantNotification[*sockets.ShutdownEvent](t, s)
				_, err := s.Read(make([]byte, 10))
				if lost {
					wantError(t, "read", err, syscall.ETIMEDOUT)
				} else if err != io.EOF {
					t.Errorf("read: %v, want io.EOF", err)
				}
			})
		})
	}
}
