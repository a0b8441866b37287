package interop

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
	"golang.org/x/sys/unix"
)

// A multinet is two network namespaces, ours and the peer's, that two links
// join: 10.78.0.1 – 10.78.0.2 and 10.78.1.1 – 10.78.1.2, or fd78::1 – fd78::2 and
// fd78:0:0:1::1 – fd78:0:0:1::2. With taps the links end at devices of a guest,
// and the second namespace stays empty.
type multinet struct {
	t          testing.TB
	ours, peer string
	direct     bool // packets are directly on IP, not in UDP
}

var multinets atomic.Int32

func newMultinet(t testing.TB, taps bool) *multinet {
	t.Helper()
	if os.Geteuid() != 0 {
		testenv.Lacking(t, "not root: network namespaces cannot be made")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		testenv.Lacking(t, "ip not found: install Debian's iproute2")
	}
	if _, err := os.Stat("/dev/net/tun"); taps && err != nil {
		testenv.Lacking(t, "no /dev/net/tun: the guest cannot have taps")
	}
	name := fmt.Sprintf("weft-%d-%d", os.Getpid(), multinets.Add(1))
	m := &multinet{t: t, ours: name + "-a", peer: name + "-b"}
	for _, ns := range []string{m.ours, m.peer} {
		if said, err := command(t, "ip", "netns", "add", ns).CombinedOutput(); err != nil {
			testenv.Lacking(t, "network namespaces cannot be made here: %v: %s", err, said)
		}
		t.Cleanup(func() { deleteNamespace(t, ns) })
		m.ip("-n", ns, "link", "set", "lo", "up")
	}
	for i := range 2 {
		bridge, port := fmt.Sprintf("bridge%d", i), fmt.Sprintf("port%d", i)
		m.ip("-n", m.ours, "link", "add", bridge, "type", "bridge")
		if taps {
			m.ip("-n", m.ours, "tuntap", "add", port, "mode", "tap")
		} else {
			far := fmt.Sprintf("link%d", i)
			m.ip("-n", m.ours, "link", "add", port, "type", "veth", "peer", "name", far, "netns", m.peer)
			m.ip("-n", m.peer, "addr", "add", linkAddr(i, theirs).String()+"/24", "dev", far)
			m.ip("-n", m.peer, "addr", "add", linkAddr6(i, theirs).String()+"/64", "dev", far, "nodad")
			m.ip("-n", m.peer, "link", "set", far, "up")
		}
		m.ip("-n", m.ours, "link", "set", port, "master", bridge, "up")
		m.ip("-n", m.ours, "addr", "add", linkAddr(i, ours).String()+"/24", "dev", bridge)
		m.ip("-n", m.ours, "addr", "add", linkAddr6(i, ours).String()+"/64", "dev", bridge, "nodad")
		m.ip("-n", m.ours, "link", "set", bridge, "up")
	}
	return m
}

func (m *multinet) ip(args ...string) {
	m.t.Helper()
	if said, err := command(m.t, "ip", args...).CombinedOutput(); err != nil {
		m.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, said)
	}
}

// deleteNamespace deletes a network namespace at the end of a test, whether its deadline has
// passed or not.
func deleteNamespace(t testing.TB, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if said, err := commandIn(ctx, "ip", "netns", "del", name).CombinedOutput(); err != nil {
		t.Logf("namespace %s is left behind: %v: %s", name, err, said)
	}
}

// cut takes link i away: neither side learns of it but by silence.
func (m *multinet) cut(i int) {
	m.t.Helper()
	m.ip("-n", m.ours, "link", "set", fmt.Sprintf("port%d", i), "nomaster")
}

// mend brings link i back.
func (m *multinet) mend(i int) {
	m.t.Helper()
	m.ip("-n", m.ours, "link", "set", fmt.Sprintf("port%d", i), "master", fmt.Sprintf("bridge%d", i))
}

// mark has every fifth large packet of both directions, of those that may be,
// marked with congestion, until the function that it returns is called.
func (m *multinet) mark() (stop func()) {
	m.t.Helper()
	cmd := command(m.t, "ip", "netns", "exec", m.ours, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(`table ip marks {
	chain output {
		type filter hook output priority 0
		ip ecn ect0 udp length > 500 numgen inc mod 5 == 0 ip ecn set ce
	}
	chain input {
		type filter hook input priority 0
		ip ecn ect0 udp length > 500 numgen inc mod 5 == 0 ip ecn set ce
	}
}
`)
	if said, err := cmd.CombinedOutput(); err != nil {
		testenv.Lacking(m.t, "packets cannot be marked: %v: %s; install Debian's nftables", err, said)
	}
	return func() { m.ip("netns", "exec", m.ours, "nft", "flush", "ruleset") }
}

// inside runs f on a thread whose network is ours. The thread comes back: peers
// that it started would die with it.
func (m *multinet) inside(f func() error) {
	m.t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		m.t.Fatal(err)
	}
	defer home.Close()
	away, err := os.Open("/run/netns/" + m.ours)
	if err != nil {
		m.t.Fatal(err)
	}
	defer away.Close()
	if err := unix.Setns(int(away.Fd()), unix.CLONE_NEWNET); err != nil {
		m.t.Fatal(err)
	}
	err = f()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		panic(err) // no thread may stay there
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// conns opens sockets of ours.
func (m *multinet) conns(at addrList) (list []net.PacketConn) {
	m.t.Helper()
	m.inside(func() error {
		for _, ap := range at.at(m.port()) {
			c, err := m.listen(ap)
			if err != nil {
				return err
			}
			list = append(list, c)
		}
		return nil
	})
	return list
}

func (m *multinet) listen(ap netip.AddrPort) (net.PacketConn, error) {
	if !m.direct {
		return net.ListenUDP("udp", net.UDPAddrFromAddrPort(ap))
	}
	network := "ip4:132"
	if ap.Addr().Is6() {
		network = "ip6:132"
	}
	return net.ListenIP(network, &net.IPAddr{IP: ap.Addr().AsSlice()})
}

// multiPort is the UDP port of both ends in a multinet, unless packets are directly
// on IP.
const multiPort = 9899

// port returns the UDP port of both ends, 0 if there is no UDP.
func (m *multinet) port() uint16 {
	if m.direct {
		return 0
	}
	return multiPort
}

// The ends of a link.
const (
	ours = iota
	theirs
)

// linkAddr and linkAddr6 return the addresses of an end of a link.
func linkAddr(link, end int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 78, byte(link), byte(end + 1)})
}

func linkAddr6(link, end int) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfd, 0x78, 7: byte(link), 15: byte(end + 1)})
}

// linkOf returns which link of a multinet an address is on.
func linkOf(a netip.AddrPort) int {
	if ip := a.Addr().Unmap(); ip.Is4() {
		return int(ip.As4()[2])
	}
	return int(a.Addr().As16()[7])
}

// addrList are addresses of one end. Its text separates them by commas.
type addrList []netip.Addr

func (l addrList) String() string {
	var words []string
	for _, a := range l {
		words = append(words, a.String())
	}
	return strings.Join(words, ",")
}

// udp returns the UDP addresses.
func (l addrList) udp() []netip.AddrPort { return l.at(multiPort) }

// at returns the addresses with a port.
func (l addrList) at(port uint16) (list []netip.AddrPort) {
	for _, a := range l {
		list = append(list, netip.AddrPortFrom(a, port))
	}
	return list
}
