package sctp_test

import (
	"net"
	"testing"
	"time"

	"github.com/ishidawataru/sctp"
)

// A program of the binding, as it is: NGAP with its PPID in host byte order.
func TestProgram(t *testing.T) {
	laddr, err := sctp.ResolveSCTPAddr("sctp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := sctp.ListenSCTPExt("sctp", laddr, sctp.InitMsg{NumOstreams: 3, MaxInstreams: 5, MaxAttempts: 4, MaxInitTimeout: 8000})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		conn, err := ln.AcceptSCTP()
		if err != nil {
			return
		}
		defer conn.Close()
		conn.SubscribeEvents(sctp.SCTP_EVENT_DATA_IO | sctp.SCTP_EVENT_SHUTDOWN)
		buf := make([]byte, 65536)
		for {
			n, info, err := conn.SCTPRead(buf)
			if err != nil {
				return
			}
			conn.SCTPWrite(buf[:n], info)
		}
	}()
	var conn net.Conn
	c, err := sctp.DialSCTP("sctp", nil, ln.Addr().(*sctp.SCTPAddr))
	if err != nil {
		t.Fatal(err)
	}
	conn = c
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	info, err := c.GetDefaultSentParam()
	if err != nil {
		t.Fatal(err)
	}
	info.PPID = 60
	if err := c.SetDefaultSentParam(info); err != nil {
		t.Fatal(err)
	}
	c.SubscribeEvents(sctp.SCTP_EVENT_DATA_IO)
	if st, err := c.GetStatus(); err != nil || st.State != sctp.SCTP_ESTABLISHED || st.Ostreams != 5 {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := conn.Write([]byte("NGSetupRequest")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 65536)
	n, info, err := c.SCTPRead(buf)
	if err != nil || string(buf[:n]) != "NGSetupRequest" || info.PPID != 60 {
		t.Fatalf("%q, %+v, %v", buf[:n], info, err)
	}
}
