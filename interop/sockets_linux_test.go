package interop

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp/sockets"
)

// rowSocketNames has a program with the names of the kernel's socket talk to the peer: messages
// of many sizes with their labels, notifications, and the peer's shutdown behind all of them.
func rowSocketNames(t *testing.T, o setup) {
	o.mode = "echo"
	s := o.prepare(t)
	cfg := sockets.SocketConfig{
		Encap: sockets.Encap(s.udp[0].Port()), PPID: sockets.PPIDHost,
		InitMsg: sockets.InitMsg{NumOstreams: 300, MaxInstreams: 300},
		Events:  sockets.SCTP_EVENT_DATA_IO | sockets.SCTP_EVENT_ASSOCIATION | sockets.SCTP_EVENT_SHUTDOWN,
	}
	here := &sockets.SCTPAddr{IPAddrs: []net.IPAddr{{IP: net.IPv4(127, 0, 0, 1)}}}
	var c *sockets.SCTPConn
	if s.accept {
		port := testenv.FreePort(t)
		cfg.Encap = sockets.Encap(port)
		here.Port = int(s.ours)
		l, err := cfg.Listen("sctp", here)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		s.peer.do("connect %d %d %d %s", s.theirs, s.ours, port, s.stack.host)
		l.SetDeadline(time.Now().Add(patience))
		if c, err = l.AcceptSCTP(); err != nil {
			t.Fatalf("accepting the peer: %v; it said:\n%s", err, s.peer.last())
		}
	} else {
		s.peerListens()
		s.peer.want("listening")
		var err error
		at := &sockets.SCTPAddr{IPAddrs: here.IPAddrs, Port: int(s.theirs)}
		if c, err = cfg.DialContext(s.ctx, "sctp", here, at); err != nil {
			t.Fatal(err)
		}
	}
	defer c.Close()
	s.peer.want("up")
	c.SetDeadline(time.Now().Add(patience))
	buf := make([]byte, 1<<20)
	note := func(want sockets.Notification) sockets.Notification {
		t.Helper()
		n, flags, err := c.ReadMsg(buf, nil)
		if err != nil || flags&sockets.MSG_NOTIFICATION == 0 {
			t.Fatalf("read %d bytes, flags %#x, error %v; want a %T", n, flags, err, want)
		}
		got, err := sockets.ParseNotification(buf[:n])
		if err != nil || got.Type() != want.Type() {
			t.Fatalf("notification %+v, error %v; want a %T", got, err, want)
		}
		return got
	}
	change := &sockets.AssocChange{}
	if up := note(change).(*sockets.AssocChange); up.State != sockets.SCTP_COMM_UP || up.OutStreams != 300 {
		t.Errorf("%+v", up)
	}
	for i, size := range []int{1, 3, 999, 1452, 1453, 9000, 65536, 300_000} {
		msg := bytes.Repeat(pattern, size/len(pattern)+1)[:size]
		want := sockets.SndRcvInfo{Stream: uint16(37 * i), PPID: uint32(i)<<24 + 60}
		if i%3 == 2 {
			want.Flags = sockets.SCTP_UNORDERED
		}
		if _, err := c.SCTPWrite(msg, &want); err != nil {
			t.Fatal(err)
		}
		n, info, err := c.SCTPRead(buf)
		if err != nil || !bytes.Equal(buf[:n], msg) || info.Stream != want.Stream || info.PPID != want.PPID || info.Flags != want.Flags {
			t.Errorf("%d bytes as %+v: %d bytes back, %+v, %v", size, want, n, info, err)
		}
	}
	s.peer.ok("shutdown")
	note(&sockets.ShutdownEvent{})
	if down := note(change).(*sockets.AssocChange); down.State != sockets.SCTP_SHUTDOWN_COMP {
		t.Errorf("%+v", down)
	}
	if _, _, err := c.SCTPRead(buf); err != io.EOF {
		t.Errorf("after the peer's shutdown: %v", err)
	}
}
