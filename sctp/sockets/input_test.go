package sockets_test

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/sctp/sockets"
)

// Addresses as programs write them.
func TestResolve(t *testing.T) {
	for _, tt := range []struct{ network, in, want string }{
		{"sctp", "127.0.0.1:2905", "127.0.0.1:2905"},
		{"sctp4", "10.0.0.1/10.0.1.1:38412", "10.0.0.1/10.0.1.1:38412"},
		{"", "[::1]:9", "[::1]:9"},
		{"sctp6", "[::1]/[fe80::1%eth0]:9", "[::1]/[fe80::1%eth0]:9"},
		{"sctp", ":36412", ":36412"},
		{"sctp", "127.0.0.1:", "127.0.0.1:0"},
		{"tcp", "127.0.0.1:1", ""}, {"sctp", "", ":0"}, {"sctp", "127.0.0.1", ""}, {"sctp", "127.0.0.1:70000", ""},
		{"sctp", "10.0.0.1/:1", ""}, {"sctp", "/10.0.0.1:1", ""}, {"sctp", "1.2.3.4:5/1.2.3.4:5", ""},
		{"sctp6", "127.0.0.1:1", ""},
		{"sctp", strings.Repeat("10.0.0.1/", 64) + "10.0.0.1:1", ""},
	} {
		a, err := sockets.ResolveSCTPAddr(tt.network, tt.in)
		switch {
		case tt.want == "" && err == nil:
			t.Errorf("%s %q: %v, want an error", tt.network, tt.in, a)
		case tt.want != "" && (err != nil || a.String() != tt.want || a.Network() != "sctp"):
			t.Errorf("%s %q: %v, %v, want %s", tt.network, tt.in, a, err, tt.want)
		}
	}
	a := &sockets.SCTPAddr{IPAddrs: []net.IPAddr{{IP: net.IPv4(1, 2, 3, 4)}, {IP: net.ParseIP("::5")}}, Port: 0x1234}
	if b := a.ToRawSockAddrBuf(); len(b) != 16+28 || b[2] != 0x12 || b[3] != 0x34 || b[4] != 1 || b[7] != 4 || b[16+2] != 0x12 || b[16+8+15] != 5 {
		t.Errorf("socket addresses % x", b)
	}
	if b := new(sockets.SCTPAddr).ToRawSockAddrBuf(); len(b) != 16 {
		t.Errorf("socket address of no address: % x", b)
	}
}

// What cannot be is refused with an error that says so.
func TestBadConfig(t *testing.T) {
	good := addr(t, "127.0.0.1:0")
	many := &sockets.SCTPAddr{IPAddrs: make([]net.IPAddr, 65)}
	for _, tt := range []struct {
		name    string
		cfg     sockets.SocketConfig
		network string
		addr    *sockets.SCTPAddr
		want    error
	}{
		{"network", sockets.SocketConfig{}, "udp", good, net.UnknownNetworkError("udp")},
		{"family", sockets.SocketConfig{}, "sctp6", good, sctp.ErrAddress},
		{"port", sockets.SocketConfig{}, "sctp", &sockets.SCTPAddr{Port: 65536}, sctp.ErrAddress},
		{"negative port", sockets.SocketConfig{}, "sctp", &sockets.SCTPAddr{Port: -1}, sctp.ErrAddress},
		{"IP", sockets.SocketConfig{}, "sctp", &sockets.SCTPAddr{IPAddrs: []net.IPAddr{{IP: make(net.IP, 5)}}}, sctp.ErrAddress},
		{"too many", sockets.SocketConfig{}, "sctp", many, sctp.ErrAddress},
		{"encapsulation", sockets.SocketConfig{Encap: 65536}, "sctp", good, sctp.ErrConfig},
		{"encapsulation below", sockets.SocketConfig{Encap: -3}, "sctp", good, sctp.ErrConfig},
		{"PPID order", sockets.SocketConfig{PPID: 3}, "sctp", good, sctp.ErrConfig},
		{"events", sockets.SocketConfig{Events: 1 << 10}, "sctp", good, syscall.EINVAL},
		{"small buffer", sockets.SocketConfig{ReadBuffer: 4095}, "sctp", good, syscall.EINVAL},
		{"large buffer", sockets.SocketConfig{WriteBuffer: 1<<30 + 1}, "sctp", good, syscall.EINVAL},
		{"backlog", sockets.SocketConfig{Backlog: -1}, "sctp", good, syscall.EINVAL},
		{"path retransmits", sockets.SocketConfig{PathMaxRetransmits: -1}, "sctp", good, syscall.EINVAL},
		{"SACK delay", sockets.SocketConfig{SackTimer: &sockets.SackTimer{SackDelay: 501}}, "sctp", good, syscall.EINVAL},
		{"SACK frequency", sockets.SocketConfig{SackTimer: &sockets.SackTimer{SackFrequency: 1 << 31}}, "sctp", good, syscall.EINVAL},
		{"RTO", sockets.SocketConfig{RtoInfo: &sockets.RtoInfo{SrtoInitial: 100, StroMin: 200}}, "sctp", good, sctp.ErrConfig},
		{"RTO max", sockets.SocketConfig{RtoInfo: &sockets.RtoInfo{SrtoMax: 500}}, "sctp", good, sctp.ErrConfig},
		{"ListenPacket", sockets.SocketConfig{Encap: sockets.EncapIP, ListenPacket: newPair(t, 1, sctptest.Link{}).server.ListenPacket}, "sctp", good, sctp.ErrConfig},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.cfg.Listen(tt.network, tt.addr)
			wantError(t, "listen", err, tt.want)
			var op *net.OpError
			if !errors.As(err, &op) || op.Op != "listen" {
				t.Errorf("listen: %#v", err)
			}
			_, err = tt.cfg.ListenOneToMany(tt.network, tt.addr)
			wantError(t, "one-to-many", err, tt.want)
			_, err = tt.cfg.Dial(tt.network, tt.addr, addr(t, "127.0.0.1:1"))
			wantError(t, "dial", err, tt.want)
		})
	}
	for _, peer := range []*sockets.SCTPAddr{nil, {}, {Port: 1}, addr(t, "127.0.0.1:0"), {Port: 70000}, many} {
		_, err := sockets.DialSCTP("sctp", nil, peer)
		wantError(t, "dial to "+peerName(peer), err, sctp.ErrAddress)
	}
}

func peerName(a *sockets.SCTPAddr) string {
	if a == nil {
		return "nil"
	}
	return a.String()[:min(30, len(a.String()))]
}

// Control is called, before anything is bound, and can end the attempt; there is no file
// descriptor to control.
func TestControl(t *testing.T) {
	stop := errors.New("stop")
	cfg := sockets.SocketConfig{Control: func(network, address string, c syscall.RawConn) error {
		if network != "sctp4" || address != "127.0.0.1:0" {
			t.Errorf("control of %s %s", network, address)
		}
		for _, err := range []error{c.Control(nil), c.Read(nil), c.Write(nil)} {
			wantError(t, "raw connection", err, errors.ErrUnsupported)
		}
		return stop
	}}
	_, err := cfg.Listen("sctp4", addr(t, "127.0.0.1:0"))
	wantError(t, "listen", err, stop)
	_, err = cfg.Dial("sctp4", addr(t, "127.0.0.1:0"), addr(t, "127.0.0.1:1"))
	wantError(t, "dial", err, stop)
}

// Bad arguments of an association are errors that name them, and change nothing.
func TestBadCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{})
		p.client.InitMsg.NumOstreams = 4
		p.client.SackTimer = &sockets.SackTimer{SackDelay: 100, SackFrequency: 1}
		p.client.RtoInfo = &sockets.RtoInfo{SrtoInitial: 500, SrtoMax: 1500, StroMin: 100}
		p.client.AssocInfo = &sockets.AssocInfo{AsocMaxRxt: 4}
		c, s := p.connect()
		write := func(b string, i sockets.SndRcvInfo) error { _, err := c.SCTPWrite([]byte(b), &i); return err }
		for what, err := range map[string]error{
			"empty": write("", sockets.SndRcvInfo{}), "stream": write("x", sockets.SndRcvInfo{Stream: 4}),
			"flag": write("x", sockets.SndRcvInfo{Flags: 0x400}), "address": write("x", sockets.SndRcvInfo{Flags: sockets.SCTP_ADDR_OVER}),
			"EOF with data": write("x", sockets.SndRcvInfo{Flags: sockets.SCTP_EOF}), "association": write("x", sockets.SndRcvInfo{AssocID: 1 << 30}),
			"events": c.SubscribeEvents(1 << 20), "negative events": c.SubscribeEvents(-1), "nil defaults": c.SetDefaultSentParam(nil),
			"default flags": c.SetDefaultSentParam(&sockets.SndRcvInfo{Flags: sockets.SCTP_ABORT}),
			"InitMsg":       c.SetInitMsg(1, 65536, 0, 0), "negative InitMsg": c.SetInitMsg(-1, 0, 0, 0),
			"timeout": c.SetReadTimeout(syscall.NsecToTimeval(-int64(time.Hour))), "write timeout": c.SetWriteTimeout(syscall.NsecToTimeval(-int64(time.Hour))),
		} {
			wantError(t, what, err, syscall.EINVAL)
		}
		_, err := c.PeelOff(1)
		wantError(t, "peel off one-to-one", err, syscall.EINVAL)
		_, err = c.SCTPLocalAddr(1 << 30)
		wantError(t, "address of no association", err, syscall.EINVAL)
		_, errRaw := c.SyscallConn()
		for what, err := range map[string]error{
			"RTO": c.SetRtoInfo(sockets.RtoInfo{}), "AssocInfo": c.SetAssocInfo(sockets.AssocInfo{}), "raw": errRaw,
			"SACK": c.SetSackTimer(&sockets.SackTimer{SackDelay: 3}), "Nagle": c.SetNoDelay(0),
		} {
			wantError(t, what, err, errors.ErrUnsupported)
			wantError(t, what, err, syscall.EOPNOTSUPP)
		}
		timer, _ := c.GetSackTimer()
		if err := errors.Join(c.SetSackTimer(timer), c.SetNoDelay(1), c.SetInitMsg(1, 1, 1, 1)); err != nil || timer.SackDelay != 100 || timer.SackFrequency != 1 {
			t.Errorf("what is so already: %+v, %v", timer, err)
		}
		rto, _ := c.GetRtoInfo()
		info, err := c.GetAssocInfo()
		if rto.SrtoInitial != 500 || rto.SrtoMax != 1500 || rto.StroMin != 100 || err != nil || info.AsocMaxRxt != 4 || info.NumberPeerDestinations != 2 {
			t.Errorf("%+v, %+v, %v", rto, info, err)
		}
		if n, flags, err := c.ReadMsg(nil, nil); n != 0 || flags != 0 || err != nil {
			t.Error("read into no buffer", n, flags, err)
		}
		if err := write("x", sockets.SndRcvInfo{Stream: 3}); err != nil {
			t.Error(err)
		}
		wantMessage(t, s, "x")
	})
}

func TestHandlesPrintShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{})
		l := p.listen()
		c := p.dial()
		testenv.CheckHandles(t, []any{l, c, sockets.NewSCTPSndRcvInfoWrappedConn(c)}, "SndRcvInfo")
	})
}
