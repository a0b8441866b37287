package sockets_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/sctp/sockets"
)

// Messages keep their boundaries, streams, PPIDs and flags; the addresses of both ends are
// told; a shutdown is io.EOF after what was sent before.
func TestMessagesAndTheirLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond})
		p.client.InitMsg = sockets.InitMsg{NumOstreams: 4, MaxInstreams: 3}
		c, s := p.connect()
		if s.LocalAddr().String() != serverAddr || c.RemoteAddr().String() != serverAddr {
			t.Errorf("server at %v, to the client %v, want %v", s.LocalAddr(), c.RemoteAddr(), serverAddr)
		}
		if got := s.RemoteAddr().(*sockets.SCTPAddr); len(got.IPAddrs) != 2 || got.Port == 0 {
			t.Errorf("client is %v, want two addresses and a port", got)
		}
		if st, err := c.GetStatus(); err != nil || st.Ostreams != 4 || st.Instreams != 3 || st.State != sockets.SCTP_ESTABLISHED {
			t.Errorf("status %+v, error %v", st, err)
		}
		if prim, err := c.SCTPGetPrimaryPeerAddr(); err != nil || prim.String() != "10.0.0.1:38412" {
			t.Errorf("primary address %v, error %v", prim, err)
		}
		send := &sockets.SndRcvInfo{Stream: 3, PPID: 60}
		if n, err := c.SCTPWrite([]byte("NGSetupRequest"), send); n != 14 || err != nil {
			t.Fatal(n, err)
		}
		got := wantMessage(t, s, "NGSetupRequest")
		if got.Stream != 3 || got.PPID != 60 || got.Flags != 0 || got.AssocID == 0 {
			t.Errorf("received as %+v", got)
		}
		send.Flags = sockets.SCTP_UNORDERED
		if _, err := c.SCTPWrite([]byte("whenever"), send); err != nil {
			t.Fatal(err)
		}
		if got := wantMessage(t, s, "whenever"); got.Flags != sockets.SCTP_UNORDERED {
			t.Errorf("received as %+v", got)
		}

		// Without SCTP_EVENT_DATA_IO there is no SndRcvInfo, as with the kernel.
		dflt, _ := s.GetDefaultSentParam()
		dflt.PPID, dflt.Stream = 3, 2
		if err := s.SetDefaultSentParam(dflt); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		for _, events := range []int{0, sockets.SCTP_EVENT_DATA_IO} {
			if err := c.SubscribeEvents(events); err != nil {
				t.Fatal(err)
			}
			s.Write([]byte("answer"))
			n, info, err := c.SCTPRead(buf)
			if err != nil || string(buf[:n]) != "answer" || (info != nil) != (events != 0) {
				t.Fatalf("%q, %+v, %v", buf[:n], info, err)
			}
			if info != nil && (info.PPID != 3 || info.Stream != 2) {
				t.Errorf("received as %+v", info)
			}
		}

		// A message longer than the buffer is read in parts.
		s.Write([]byte("0123456789"))
		for _, want := range []string{"0123", "4567", "89"} {
			n, flags, err := c.ReadMsg(buf[:4], nil)
			if err != nil || string(buf[:n]) != want || (flags == sockets.MSG_EOR) != (want == "89") {
				t.Fatalf("%q, flags %#x, %v; want %q", buf[:n], flags, err, want)
			}
		}

		s.Write([]byte("last"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wantMessage(t, c, "last")
		if _, _, err := c.SCTPRead(buf); err != io.EOF {
			t.Errorf("after the end: %v, want io.EOF", err)
		}
		_, err := c.Write([]byte("x"))
		wantError(t, "write after the end", err, syscall.EPIPE)
	})
}

// A closed socket says so, in all the ways that programs ask.
func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{})
		c, s := p.connect()
		blocked := make(chan error)
		go func() {
			_, err := c.Read(make([]byte, 10))
			blocked <- err
		}()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		_, errRead := c.Read(make([]byte, 10))
		_, errWrite := c.Write([]byte("x"))
		for what, err := range map[string]error{
			"blocked read": <-blocked, "read": errRead, "write": errWrite, "close": c.Close(), "deadline": c.SetDeadline(time.Time{}),
			"nil": (*sockets.SCTPConn)(nil).Close(), "events": c.SubscribeEvents(0), "buffer": c.SetReadBuffer(1000),
		} {
			wantError(t, what, err, net.ErrClosed)
			wantError(t, what, err, syscall.EBADF)
			var op *net.OpError
			if !errors.As(err, &op) || op.Timeout() {
				t.Errorf("%s: %#v, want a *net.OpError", what, err)
			}
		}
		if _, err := s.Read(make([]byte, 10)); err != io.EOF {
			t.Errorf("the peer reads %v", err)
		}
	})
}

// Aborts by either side, with a reason; the other one reads what came before.
func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond})
		c, s := p.connect()
		s.SubscribeEvents(sockets.SCTP_EVENT_ASSOCIATION)
		c.Write([]byte("first"))
		time.Sleep(time.Second)
		if _, err := c.SCTPWrite([]byte("no more"), &sockets.SndRcvInfo{Flags: sockets.SCTP_ABORT}); err != nil {
			t.Fatal(err)
		}
		wantMessage(t, s, "first")
		if n := wantNotification[*sockets.AssocChange](t, s); n.State != sockets.SCTP_COMM_LOST || n.Error != 12 {
			t.Errorf("%+v, want SCTP_COMM_LOST by cause 12, User-Initiated Abort", n)
		}
		_, err := s.Read(make([]byte, 10))
		wantError(t, "read after an ABORT", err, syscall.ECONNRESET)
		var abort *sctp.AbortError
		if !errors.As(err, &abort) || abort.Reason != "no more" || !abort.ByPeer {
			t.Errorf("%v, want an AbortError by the peer", err)
		}
	})
}

// SCTP_EOF shuts down and still reads.
func TestEOFFlag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond})
		c, s := p.connect()
		for _, m := range []string{"a", "b"} {
			s.Write([]byte(m))
		}
		time.Sleep(time.Second)
		if _, err := c.SCTPWrite(nil, &sockets.SndRcvInfo{Flags: sockets.SCTP_EOF}); err != nil {
			t.Fatal(err)
		}
		wantMessage(t, c, "a")
		wantMessage(t, c, "b")
		for _, c := range []*sockets.SCTPConn{c, s} {
			if _, err := c.Read(make([]byte, 10)); err != io.EOF {
				t.Errorf("%v, want io.EOF", err)
			}
		}
	})
}

// Deadlines and timeouts of reads and writes.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond})
		p.client.WriteBuffer, p.server.ReadBuffer = 16<<10, 16<<10
		c, s := p.connect()
		buf := make([]byte, 1000)
		fill := func() (err error) { // until a write does not return
			for err == nil {
				_, err = c.Write(buf)
			}
			return err
		}
		for _, tt := range []struct {
			name  string
			set   func(time.Duration)
			do    func() error
			want  error
			reset func()
		}{
			{"read deadline", func(d time.Duration) { s.SetReadDeadline(time.Now().Add(d)) },
				func() error { _, err := s.Read(buf); return err }, os.ErrDeadlineExceeded, func() { s.SetDeadline(time.Time{}) }},
			{"read timeout", func(d time.Duration) { s.SetReadTimeout(syscall.NsecToTimeval(int64(d))) },
				func() error { _, err := s.Read(buf); return err }, syscall.EAGAIN, func() { s.SetReadTimeout(syscall.Timeval{}) }},
			{"write deadline", func(d time.Duration) { c.SetWriteDeadline(time.Now().Add(d)) },
				fill, os.ErrDeadlineExceeded, func() { c.SetDeadline(time.Time{}) }},
			{"write timeout", func(d time.Duration) { c.SetWriteTimeout(syscall.NsecToTimeval(int64(d))) },
				fill, syscall.EAGAIN, func() { c.SetWriteTimeout(syscall.Timeval{}) }},
		} {
			tt.set(2 * time.Second)
			start := time.Now()
			err := tt.do()
			wantError(t, tt.name, err, tt.want)
			if d := time.Since(start); d != 2*time.Second {
				t.Errorf("%s: after %v, want 2s", tt.name, d)
			}
			if tt.want == syscall.EAGAIN && err != syscall.EAGAIN {
				t.Errorf("%s: %#v is not ==", tt.name, err)
			}
			if tt.want == os.ErrDeadlineExceeded {
				var ne net.Error
				if !errors.As(err, &ne) || !ne.Timeout() {
					t.Errorf("%s: %v is no timeout", tt.name, err)
				}
				wantError(t, tt.name+" again", tt.do(), tt.want)
			}
			tt.reset()
		}

		// A deadline ends calls that block already, and one that is moved does not.
		done := make(chan error)
		go func() { done <- fill() }()
		c.SetWriteDeadline(time.Now().Add(time.Second))
		time.Sleep(time.Second / 2)
		c.SetWriteDeadline(time.Now().Add(time.Second))
		start := time.Now()
		wantError(t, "moved", <-done, os.ErrDeadlineExceeded)
		if d := time.Since(start); d != time.Second {
			t.Errorf("moved deadline passed after %v", d)
		}

		s.SetNonBlock(true)
		for err := error(nil); err != syscall.EAGAIN; { // what was written
			if _, err = s.Read(buf); err != nil && err != syscall.EAGAIN {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		c.SetDeadline(time.Time{})
		c.SetNonBlock(true)
		if err := fill(); err != syscall.EAGAIN {
			t.Errorf("nonblocking write: %v", err)
		}
	})
}

// A message larger than the receive buffer is read in parts, those of others after it, and
// nothing is lost. The reader is slow.
func TestHugeMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 7, sctptest.Link{Delay: time.Millisecond, Loss: 0.02})
		p.server.ReadBuffer = 64 << 10
		c, s := p.connect()
		huge := make([]byte, 1<<20)
		for i := range huge {
			huge[i] = byte(i * i >> 8)
		}
		go func() {
			c.SCTPWrite(huge, &sockets.SndRcvInfo{Stream: 1})
			c.SCTPWrite([]byte("small"), &sockets.SndRcvInfo{Stream: 2})
			c.SCTPWrite(huge[:100_000], &sockets.SndRcvInfo{Stream: 3})
		}()
		var got []byte
		buf := make([]byte, 10_000)
		var messages [][]byte
		parts := 0
		for len(messages) < 3 {
			n, flags, err := s.ReadMsg(buf, nil)
			if err != nil {
				t.Fatal(err)
			}
			parts++
			got = append(got, buf[:n]...)
			if flags&sockets.MSG_EOR != 0 {
				messages = append(messages, got)
				got = nil
			}
			time.Sleep(10 * time.Millisecond)
		}
		if !bytes.Equal(messages[0], huge) || string(messages[1]) != "small" || !bytes.Equal(messages[2], huge[:100_000]) {
			t.Errorf("messages of %d, %d and %d bytes differ from those sent", len(messages[0]), len(messages[1]), len(messages[2]))
		}
		if st, _ := s.GetStatus(); st.Penddata != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// SocketConfig.ReadBuffer bounds what a socket holds for a reader that does not read, and all
// of it comes when it does. SetReadBuffer changes nothing and says so.
func TestReadBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond})
		const buffer = 64 << 10
		p.server.ReadBuffer, p.client.WriteBuffer = buffer, 1<<20
		c, s := p.connect()
		c.SetNonBlock(true)
		sent := 0
		for ; ; sent++ {
			if _, err := c.Write(make([]byte, 1000)); err != nil {
				break
			}
		}
		time.Sleep(time.Minute)
		if st, err := s.GetStatus(); err != nil || int(st.Penddata)*int(st.FragmentationPoint) > buffer+buffer/4 {
			t.Fatalf("%d chunks of %d bytes wait, error %v; the buffer is %d", st.Penddata, st.FragmentationPoint, err, buffer)
		}
		got := 0
		s.SetReadTimeout(syscall.Timeval{Sec: 90}) // a window probe takes a minute at most
		for buf := make([]byte, 2000); ; got++ {
			if _, err := s.Read(buf); err == syscall.EAGAIN {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if got != sent {
			t.Errorf("%d messages came of %d", got, sent)
		}
		for _, n := range []int{0, -1} {
			wantError(t, "read buffer", s.SetReadBuffer(n), syscall.EINVAL)
			wantError(t, "write buffer", s.SetWriteBuffer(n), syscall.EINVAL)
		}
		if err := s.SetReadBuffer(1 << 30); err != nil {
			t.Error(err)
		}
		if n, _ := s.GetReadBuffer(); n != buffer {
			t.Errorf("read buffer %d, want %d", n, buffer)
		}
	})
}
