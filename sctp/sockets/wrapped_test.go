package sockets_test

import (
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/sctp/sockets"
)

// Messages with their SndRcvInfo in front: what is read can be written back as it is.
func TestWrappedConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{})
		c, s := p.connect()
		w := sockets.NewSCTPSndRcvInfoWrappedConn(s)
		if _, err := c.SCTPWrite([]byte("message"), &sockets.SndRcvInfo{Stream: 5, PPID: 60}); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1000)
		n, err := w.Read(buf)
		if err != nil || n != 32+7 || string(buf[32:n]) != "message" {
			t.Fatalf("read %d bytes, error %v", n, err)
		}
		if m, err := w.Write(buf[:n]); m != n || err != nil {
			t.Fatal(m, err)
		}
		if info := wantMessage(t, c, "message"); info.Stream != 5 || info.PPID != 60 {
			t.Errorf("%+v", info)
		}
		_, err = w.Write(buf[:31])
		wantError(t, "short write", err, syscall.EINVAL)
		_, err = w.Read(buf[:32])
		wantError(t, "short read", err, syscall.EINVAL)
		if w.LocalAddr().String() != s.LocalAddr().String() || w.String() != s.String() {
			t.Errorf("%v of %v", w, s)
		}
	})
}
