package sockets_test

import (
	"context"
	"errors"
	"fmt"
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

// One socket for many associations: messages name theirs, answers go to it, one that is peeled
// off takes what was not read along and lives on without the first socket.
func TestOneToManyAndPeelOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond})
		p.server.Events = sockets.SCTP_EVENT_ASSOCIATION | sockets.SCTP_EVENT_DATA_IO
		hub, err := p.server.ListenOneToMany("sctp", addr(t, serverAddr))
		if err != nil {
			t.Fatal(err)
		}
		var clients []*sockets.SCTPConn
		ids := map[sockets.SCTPAssocID]int{}
		for i := range 3 {
			c := p.dial()
			clients = append(clients, c)
			up := wantNotification[*sockets.AssocChange](t, hub)
			if up.State != sockets.SCTP_COMM_UP {
				t.Fatalf("%+v", up)
			}
			ids[up.AssocID] = i
			c.Write(fmt.Appendf(nil, "from %d", i))
			info := wantMessage(t, hub, fmt.Sprintf("from %d", i))
			if sockets.SCTPAssocID(info.AssocID) != up.AssocID {
				t.Fatalf("%+v, want association %d", info, up.AssocID)
			}
			info.PPID = 7
			if _, err := hub.SCTPWrite(fmt.Appendf(nil, "to %d", i), &info); err != nil {
				t.Fatal(err)
			}
			if got := wantMessage(t, c, fmt.Sprintf("to %d", i)); got.PPID != 7 {
				t.Errorf("%+v", got)
			}
		}
		if got := hub.AssocIDs(); len(got) != 3 {
			t.Errorf("associations %v, want 3", got)
		}
		if hub.RemoteAddr() != nil || hub.Association() != nil || hub.LocalAddr().String() != serverAddr {
			t.Errorf("the socket is %v, peer %v", hub.LocalAddr(), hub.RemoteAddr())
		}

		// Two messages of each wait; one association leaves with its own.
		for range 2 {
			for i, c := range clients {
				c.Write(fmt.Appendf(nil, "waits %d", i))
				time.Sleep(time.Second)
			}
		}
		var peeled *sockets.SCTPConn
		for id, i := range ids {
			if i == 1 {
				if a, err := hub.SCTPRemoteAddr(int(id)); err != nil || len(a.IPAddrs) != 2 {
					t.Errorf("peer %v, error %v", a, err)
				}
				if peeled, err = hub.PeelOff(int(id)); err != nil {
					t.Fatal(err)
				}
				_, err := hub.PeelOff(int(id))
				wantError(t, "peel off again", err, syscall.EINVAL)
				_, err = hub.SCTPWrite([]byte("x"), &sockets.SndRcvInfo{AssocID: int32(id)})
				wantError(t, "write to an association that left", err, syscall.EINVAL)
			}
		}
		wantMessage(t, hub, "waits 0")
		wantMessage(t, peeled, "waits 1")
		wantMessage(t, hub, "waits 2")
		wantMessage(t, peeled, "waits 1")
		clients[1].Write([]byte("later"))
		wantMessage(t, peeled, "later")
		if err := hub.Close(); err != nil {
			t.Fatal(err)
		}
		peeled.Write([]byte("still here"))
		wantMessage(t, clients[1], "still here")
		if _, err := clients[0].Read(make([]byte, 10)); err != io.EOF {
			t.Errorf("peer of a closed socket: %v", err)
		}
		_, err = p.client.Dial("sctp", nil, addr(t, serverAddr))
		wantError(t, "dial to a closed socket", err, sctp.ErrRefused)
		peeled.Close()
		if _, err := clients[1].Read(make([]byte, 10)); err != io.EOF {
			t.Errorf("peer of a closed socket: %v", err)
		}
	})
}

// A one-to-many socket opens associations, too, several at once, and with itself refused.
func TestOneToManyConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond})
		hub, err := p.server.ListenOneToMany("sctp", addr(t, serverAddr))
		if err != nil {
			t.Fatal(err)
		}
		defer hub.Close()
		l, err := p.client.Listen("sctp", addr(t, "10.0.0.2/10.0.1.2:36412"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		id, err := hub.Connect(context.Background(), addr(t, "10.0.0.2/10.0.1.2:36412"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.AcceptSCTP()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		hub.SCTPWrite([]byte("m"), &sockets.SndRcvInfo{AssocID: int32(id)})
		wantMessage(t, s, "m")
		_, err = hub.Connect(context.Background(), addr(t, "10.0.0.2:36412"))
		wantError(t, "connect again", err, sctp.ErrExists)
		_, err = s.Connect(context.Background(), addr(t, serverAddr))
		wantError(t, "connect of a one-to-one socket", err, errors.ErrUnsupported)
		_, err = hub.Write([]byte("to nobody"))
		wantError(t, "write without association", err, syscall.EINVAL)
		if st, err := hub.StatusOf(id); err != nil || st.AssocID != id {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

// Accept has a backlog, a deadline and an end; what is not accepted is aborted.
func TestListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond})
		p.server.Backlog = 2
		l := p.listen()
		if l.Addr().String() != serverAddr {
			t.Errorf("listens on %v, want %v", l.Addr(), serverAddr)
		}
		l.SetDeadline(time.Now().Add(time.Second))
		_, err := l.Accept()
		wantError(t, "accept", err, os.ErrDeadlineExceeded)
		l.SetDeadline(time.Time{})
		var clients []*sockets.SCTPConn
		for range 3 {
			clients = append(clients, p.dial())
			time.Sleep(time.Second)
		}
		if _, err := clients[2].Read(make([]byte, 10)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("beyond the backlog: %v, want an ABORT", err)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := l.Accept()
			waiting <- err
		}()
		wantError(t, "accept after close", <-waiting, net.ErrClosed)
		wantError(t, "second close", l.Close(), syscall.EBADF)
		if _, err := clients[1].Read(make([]byte, 10)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("not accepted: %v, want an ABORT", err)
		}
		c.Write([]byte("accepted"))
		wantMessage(t, clients[0], "accepted")
		_, err = p.client.Dial("sctp", nil, addr(t, serverAddr))
		wantError(t, "dial to a closed listener", err, sctp.ErrRefused)
		c.Close()
	})
}
