package sctp_test

import (
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// The log tells of an attempt that fails, with the reason, and of an abort, with its cause.
func TestLogTellsOfAttemptsAndAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		var mu sync.Mutex
		var lines []string
		pc, err := n.NewHost(addrA).ListenPacket(net.JoinHostPort(addrA, "9899"))
		if err != nil {
			t.Fatal(err)
		}
		p := &pair{t: t, net: n}
		p.ta = newTransport(t, sctp.TransportConfig{Conns: []net.PacketConn{pc}, Log: slog.New(records{mu: &mu, lines: &lines})})
		p.tb = memTransport(t, n.NewHost(addrB))
		wantLine := func(parts ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			for _, l := range lines {
				all := true
				for _, part := range append(parts, "local=", "peer=", addrB) {
					all = all && strings.Contains(l, part)
				}
				if all {
					return
				}
			}
			t.Errorf("no line has all of %q: %q", parts, lines)
		}
		p.connect(nil, nil)
		wantLine("DEBUG sctp: up")
		wantLine("DEBUG sctp: state", "from=COOKIE-ECHOED", "to=ESTABLISHED", "reason=")
		p.b.Abort("enough")
		<-p.a.Done()
		wantLine("DEBUG sctp: state", "from=ESTABLISHED", "to=CLOSED", "enough")
		wantLine("WARN sctp: down", `"enough"`, "cause=user", "by_peer=true")

		n.Cut(addrA, addrB)
		e, err := p.ta.Listen(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Connect(t.Context(), p.b.LocalAddr()); err == nil {
			t.Fatal("connected without a network")
		}
		wantLine("INFO sctp: association not established", "timed out")
	})
}
