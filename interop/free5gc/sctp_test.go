package sctp_test

import (
	"errors"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/free5gc/sctp"
)

// ngapPPID is 60 in network byte order on a little-endian machine.
const ngapPPID = 0x3c000000

// A program of the fork, as it is: an AMF that sets options of each association and reads with a
// timeout, and a gNB that connects, sends and leaves.
func TestProgram(t *testing.T) {
	cfg := &sctp.SocketConfig{
		InitMsg:   sctp.InitMsg{NumOstreams: 3, MaxInstreams: 5, MaxAttempts: 2, MaxInitTimeout: 2000},
		RtoInfo:   &sctp.RtoInfo{SrtoInitial: 500, SrtoMax: 1500, StroMin: 100},
		AssocInfo: &sctp.AssocInfo{AsocMaxRxt: 4},
	}
	laddr, err := sctp.ResolveSCTPAddr("sctp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := cfg.Listen("sctp", laddr)
	if err != nil {
		t.Fatal(err)
	}
	gnb, err := sctp.DialSCTPExt("sctp", nil, ln.Addr().(*sctp.SCTPAddr), sctp.InitMsg{NumOstreams: 2}, nil, nil, sctp.SCTP_DEFAULT_MAXSEG)
	if err != nil {
		t.Fatal(err)
	}
	amf, err := ln.AcceptSCTP(-1)
	if err != nil {
		t.Fatal(err)
	}
	info, err := amf.GetDefaultSentParam()
	if err != nil {
		t.Fatal(err)
	}
	info.PPID = ngapPPID
	for _, err := range []error{
		amf.SetDefaultSentParam(info), amf.SetReadBuffer(262144), amf.SetReadTimeout(syscall.NsecToTimeval(int64(20 * time.Millisecond))),
		amf.SubscribeEvents(sctp.SCTP_EVENT_DATA_IO | sctp.SCTP_EVENT_SHUTDOWN | sctp.SCTP_EVENT_ASSOCIATION),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	buf := make([]byte, 262144)
	if _, _, _, err := amf.SCTPRead(buf); err != syscall.EAGAIN {
		t.Errorf("read timeout: %v", err)
	}
	if _, err := gnb.SCTPWrite([]byte("NGSetupRequest"), &sctp.SndRcvInfo{PPID: ngapPPID, Stream: 1}); err != nil {
		t.Fatal(err)
	}
	read := func() (int, *sctp.SndRcvInfo, sctp.Notification, error) {
		for end := time.Now().Add(time.Minute); ; {
			n, info, note, err := amf.SCTPRead(buf)
			if err != syscall.EAGAIN || time.Now().After(end) {
				return n, info, note, err
			}
		}
	}
	n, info, note, err := read()
	if err != nil || note != nil || string(buf[:n]) != "NGSetupRequest" || info.PPID != ngapPPID || info.Stream != 1 {
		t.Fatalf("%q, %+v, %v, %v", buf[:n], info, note, err)
	}
	if _, err := amf.Write([]byte("NGSetupResponse")); err != nil {
		t.Fatal(err)
	}
	if n, err := gnb.Read(buf); err != nil || string(buf[:n]) != "NGSetupResponse" {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	if err := gnb.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gnb.Close(); err != syscall.EBADF {
		t.Errorf("second close: %v", err)
	}
	_, _, note, err = read()
	if _, ok := note.(*sctp.SCTPShutdownEvent); !ok || err != nil || note.Length() != 12 {
		t.Errorf("%T, %v, want the shutdown", note, err)
	}
	_, _, note, err = read()
	if e, ok := note.(*sctp.SCTPAssocChangeEvent); !ok || err != nil || e.State() != sctp.SCTP_SHUTDOWN_COMP || e.AssocID() == 0 {
		t.Errorf("%T, %v, want the end", note, err)
	}
	if _, _, _, err := read(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
	if err := amf.Close(); err != nil {
		t.Error(err)
	}
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
	if c, err := ln.AcceptSCTP(-1); c != nil || err != nil || !ln.IsStopped() {
		t.Errorf("accept after close: %v, %v", c, err)
	}
	if _, err := (&sctp.SocketConfig{MaxSeg: 1200}).Listen("sctp", laddr); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("MaxSeg: %v", err)
	}
}
