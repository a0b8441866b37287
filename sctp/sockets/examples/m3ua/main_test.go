package main

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	sctp "github.com/weftstack/weft/sctp/sockets"
)

// The program as it is run without arguments.
func TestBoth(t *testing.T) {
	var out strings.Builder
	if err := run("", "", "", 100, &out); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); !strings.Contains(s, "9 streams") || !strings.Contains(s, "100 messages there and back") {
		t.Errorf("it said %q", s)
	}
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// startGateway returns the address of a gateway that lives as long as the test.
func startGateway(t *testing.T, at string) *sctp.SCTPAddr {
	t.Helper()
	laddr, err := sctp.ResolveSCTPAddr("sctp", at)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := sctp.ListenSCTPExt("sctp", laddr, initMsg)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- (&gateway{routingContext, quiet}).serve(ln) }()
	t.Cleanup(func() {
		ln.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().(*sctp.SCTPAddr)
}

// Several processes at a gateway with two addresses.
func TestSeveralAddresses(t *testing.T) {
	at, local := "127.0.0.1/127.0.0.2:0", "127.0.0.1/127.0.0.3:0"
	if runtime.GOOS == "darwin" || runtime.GOOS == "freebsd" {
		at, local = "127.0.0.1:0", "127.0.0.1:0" // the loopback interface has one address
	}
	addr := startGateway(t, at)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if err := traffic(addr.String(), local, 50, quiet, io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// The gateway answers by ERR, with the code of RFC 4666, what it does not take, and goes on.
func TestErrors(t *testing.T) {
	sc, err := sctp.DialSCTPExt("sctp", nil, startGateway(t, "127.0.0.1:0"), initMsg)
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	c, err := newConn(sc, quiet)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	rc := number(tagRoutingContext, routingContext)
	data := (&protocolData{opc: 1, dpc: 2, data: []byte("x")}).param()
	send := func(stream uint16, b []byte) {
		t.Helper()
		if _, err := c.SCTPWrite(b, &sctp.SndRcvInfo{Stream: stream, PPID: ppid}); err != nil {
			t.Fatal(err)
		}
	}
	wantCode := func(what string, code uint32) {
		t.Helper()
		m, err := c.expect(msgError)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got, err := m.number(tagErrorCode); err != nil || got != code {
			t.Errorf("%s: error code %#x, %v; want %#x", what, got, err, code)
		}
	}
	up := (&message{msgUp, nil}).marshal()
	for _, tt := range []struct {
		name   string
		stream uint16
		b      []byte
		code   uint32
	}{
		{"active before up", 0, (&message{msgActive, nil}).marshal(), errUnexpectedMessage},
		{"data before up", 1, (&message{msgData, []param{data}}).marshal(), errUnexpectedMessage},
		{"short", 0, []byte{1, 0, 3, 1, 0, 0, 0}, errProtocol},
		{"version", 0, append([]byte{2}, up[1:]...), errVersion},
		{"length", 0, append(up[:len(up):len(up)], 0, 0, 0, 0), errProtocol},
		{"class", 0, (&message{0x0901, nil}).marshal(), errMessageClass},
		{"type", 0, (&message{0x0309, nil}).marshal(), errMessageType},
		{"data on stream 0", 0, (&message{msgData, []param{rc, data}}).marshal(), errProtocol},
	} {
		send(tt.stream, tt.b)
		wantCode(tt.name, tt.code)
	}
	p := &process{c, routingContext}
	if err := p.activate(); err != nil {
		t.Fatal(err)
	}
	c.send(msgActive, number(tagRoutingContext, 8))
	wantCode("routing context", errRoutingContext)
	send(1, (&message{msgData, []param{{tagProtocolData, make([]byte, 11)}}}).marshal())
	wantCode("short data", errParameterField)
	if _, err := p.request(1, 2, 3, []byte("still here")); err != nil {
		t.Error(err)
	}
	// ASP Active again is acknowledged, and ASP Up takes the process out of service.
	c.send(msgActive)
	if _, err := c.expect(msgActiveAck); err != nil {
		t.Error(err)
	}
	c.send(msgUp)
	if _, err := c.expect(msgUpAck); err != nil {
		t.Error(err)
	}
	wantCode("up while active", errUnexpectedMessage)
	send(1, (&message{msgData, []param{rc, data}}).marshal())
	wantCode("data while inactive", errUnexpectedMessage)
	// What is no M3UA is not answered.
	c.SCTPWrite([]byte("NGAP"), &sctp.SndRcvInfo{PPID: 0x3c000000})
	if err := p.beat(); err != nil {
		t.Error(err)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
}

// Golden bytes of a DATA message, and messages that do not end where they say.
func TestMessages(t *testing.T) {
	d := &protocolData{opc: 1, dpc: 2, si: serviceSCCP, network: 2, prio: 0, link: 5, data: []byte("abcde")}
	b := (&message{msgData, []param{number(tagRoutingContext, 7), d.param()}}).marshal()
	want := []byte{1, 0, 1, 1, 0, 0, 0, 40, 0, 6, 0, 8, 0, 0, 0, 7, 2, 0x10, 0, 21, 0, 0, 0, 1, 0, 0, 0, 2, 3, 2, 0, 5, 'a', 'b', 'c', 'd', 'e', 0, 0, 0}
	if !bytes.Equal(b, want) {
		t.Errorf("DATA is % x, want % x", b, want)
	}
	m, err := parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.protocolData(); err != nil || string(got.data) != "abcde" || got.link != 5 || got.dpc != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range b {
		cut := append([]byte(nil), b[:n]...)
		if n >= headerLen {
			cut[7] = byte(n) // it says what it has
		}
		m, err := parse(cut)
		var coded *codedError
		if err != nil && !errors.As(err, &coded) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if err == nil && n != headerLen && n != 16 {
			t.Errorf("%d bytes are a message: %+v", n, m)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add((&message{msgData, []param{(&protocolData{data: []byte("x")}).param()}}).marshal())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parse(b)
		if err != nil {
			return
		}
		m.protocolData()
		if again, err := parse(m.marshal()); err != nil || len(again.params) != len(m.params) {
			t.Fatalf("%v, %v", again, err)
		}
	})
}
