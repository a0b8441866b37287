package interop

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
)

// TestPathTakesLess has a router between two ends, whose second link begins to
// take less in the middle of a transfer. Told by ICMP (RFC 9260, Section 10), we
// find the path MTU before the retransmission timer expires; else by the packets
// that get lost (RFC 8899).
func TestPathTakesLess(t *testing.T) {
	bounded(t)
	for _, told := range []bool{true, false} {
		name := "told"
		if !told {
			name = "not told"
		}
		t.Run(name, func(t *testing.T) {
			const tries = 6 // the timer may expire on a busy machine
			for try := 1; ; try++ {
				timeouts := pathTakesLess(t, told)
				if (timeouts > 0) != told {
					return
				}
				if try == tries {
					t.Fatalf("%d timeouts; told by ICMP: %v", timeouts, told)
				}
			}
		})
	}
}

// pathTakesLess returns how often the retransmission timer expired.
func pathTakesLess(t *testing.T, told bool) (timeouts uint64) {
	m := newMultinet(t, false)
	router := m.ours + "-r"
	m.ip("netns", "add", router)
	t.Cleanup(func() { deleteNamespace(t, router) })
	end := [2]string{m.ours, m.peer}
	var at [2]netip.AddrPort
	for i, ns := range end {
		subnet := "10.79." + string('0'+rune(i))
		m.ip("-n", ns, "link", "add", "r0", "type", "veth", "peer", "name", "r"+string('1'+rune(i)), "netns", router)
		m.ip("-n", ns, "addr", "add", subnet+".1/24", "dev", "r0")
		m.ip("-n", ns, "link", "set", "r0", "up")
		m.ip("-n", router, "addr", "add", subnet+".254/24", "dev", "r"+string('1'+rune(i)))
		m.ip("-n", router, "link", "set", "r"+string('1'+rune(i)), "up")
		m.ip("-n", ns, "route", "add", "default", "via", subnet+".254")
		at[i] = netip.MustParseAddrPort(subnet + ".1:9899")
	}
	m.ip("netns", "exec", router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
	if !told {
		cmd := command(t, "ip", "netns", "exec", router, "nft", "-f", "-")
		cmd.Stdin = strings.NewReader("table ip quiet {\n\tchain output {\n\t\ttype filter hook output priority 0\n\t\tip protocol icmp drop\n\t}\n}\n")
		if said, err := cmd.CombinedOutput(); err != nil {
			testenv.Lacking(t, "ICMP messages cannot be dropped: %v: %s; install Debian's nftables", err, said)
		}
	}
	var tr [2]*sctp.Transport
	for i, ns := range end {
		var conn net.PacketConn
		(&multinet{t: t, ours: ns}).inside(func() (err error) {
			conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at[i]))
			return err
		})
		var err error
		if tr[i], err = sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{conn}}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr[i].Close() })
	}
	ctx, cancel := context.WithTimeout(within(t), patience)
	defer cancel()
	const rtoMin = 2 * time.Second // what it takes without ICMP, and no busy machine
	cfg := &sctp.Config{RTOMin: rtoMin, RTOInitial: rtoMin}
	server, err := tr[1].Listen(5000, cfg)
	if err != nil {
		t.Fatal(err)
	}
	client, err := tr[0].Listen(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	a, err := client.Connect(ctx, sctp.Addr{Addrs: at[1:], Port: 5000})
	if err != nil {
		t.Fatal(err)
	}
	b, err := server.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	msg, buf := bytes.Repeat([]byte("weft"), 20_000), make([]byte, 100_000)
	send := func() {
		t.Helper()
		if err := a.Send(ctx, msg, sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		n, info, err := b.Recv(ctx, buf)
		if err != nil || !info.EOR || !bytes.Equal(buf[:n], msg) {
			t.Fatalf("received %d bytes, %+v, %v", n, info, err)
		}
	}
	found := func(ok func(mtu int) bool) int {
		t.Helper()
		for {
			if mtu := a.Stats().Paths[0].MTU; ok(mtu) {
				return mtu
			}
			if ctx.Err() != nil {
				t.Fatalf("the path MTU is not found: %+v", a.Stats())
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	large := found(func(mtu int) bool { return mtu > 1300 })
	send()
	const limit = 1300
	m.ip("-n", router, "link", "set", "r2", "mtu", "1300")
	start := time.Now()
	send()
	took := time.Since(start)
	small := found(func(mtu int) bool { return mtu > 1200 && mtu <= limit-28 })
	st := a.Stats()
	t.Logf("MTU %d, then %d; %v, %d timeouts, %d black holes", large, small, took, st.Timeouts, st.Paths[0].BlackHoles)
	if st.Paths[0].BlackHoles == 0 {
		t.Error("no black hole was seen")
	}
	send()
	return st.Timeouts
}
