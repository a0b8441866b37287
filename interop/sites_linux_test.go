package interop

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/internal/testenv"
	"golang.org/x/sys/unix"
)

// envSites has this test binary, on a host of a network with sites, check what its value names.
// It opens sockets in the namespaces of all hosts and gateways.
const envSites = "WEFT_INTEROP_SITES"

func init() {
	playRole(envSites, func(what string) error {
		check, ok := siteChecks[what]
		if !ok {
			return fmt.Errorf("no check %q", what)
		}
		return check(new(siteHost))
	})
}

// overSites runs a check on the first host of two sites.
func overSites(t *testing.T, check string, flags ...string) {
	t.Helper()
	overSitesWith(t, "no", check, flags...)
}

// overSitesWith is overSites with gateways, or without.
func overSitesWith(t *testing.T, daemons, check string, flags ...string) {
	t.Helper()
	testenv.Networks(t)
	socket := filepath.Join(t.TempDir(), "ctl")
	args := append([]string{"net", "-sites", "2", "-on", "0", "-daemons", daemons, "-control", socket, "-x", envControl + "=" + socket, "-x", envSites + "=" + check}, flags...)
	out, errs, status := weft(t, append(args, "--", os.Args[0], "@", tool(t, "weft"))...)
	if status != 0 {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	t.Logf("%s", out)
}

const envControl = "WEFT_INTEROP_CONTROL"

// siteHost is the process that checks.
type siteHost struct {
	conn    net.Conn
	answers *bufio.Scanner
}

// in runs f on a thread of its own in the namespace of a node, such as s1h2 or s2g1.
func (*siteHost) in(node string, f func() error) error {
	first, _, _ := strings.Cut(os.Getenv("WEFT_NET_NAMES"), ",")
	ns, err := os.Open("/run/netns/" + strings.TrimSuffix(first, "s1h1") + node)
	if err != nil {
		return err
	}
	defer ns.Close()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// udp opens a socket of a node, at an address if that is given.
func (h *siteHost) udp(node, addr string) (c *net.UDPConn, err error) {
	at := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	if addr != "" {
		at = netip.MustParseAddrPort(addr)
	}
	err = h.in(node, func() error {
		c, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
		return err
	})
	return c, err
}

// control has the emulator do something.
func (h *siteHost) control(line string) (string, error) {
	if h.conn == nil {
		var err error
		if h.conn, err = net.Dial("unix", os.Getenv(envControl)); err != nil {
			return "", err
		}
		h.answers = bufio.NewScanner(h.conn)
		h.answers.Buffer(nil, 1<<20)
	}
	h.conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintln(h.conn, line)
	if !h.answers.Scan() {
		return "", fmt.Errorf("%q is not answered: %v", line, h.answers.Err())
	}
	if answer := h.answers.Text(); strings.HasPrefix(answer, "error") {
		return "", fmt.Errorf("%q: %s", line, answer)
	}
	return h.answers.Text(), nil
}

// sitePort is one port of the counters.
type sitePort struct {
	Name      string
	SentBytes uint64 `json:"sent_bytes"`
	Sent      uint64
	Delivered uint64
}

// stats returns the counters by the names of ports.
func (h *siteHost) stats() (map[string]sitePort, error) {
	text, err := h.control("stats")
	if err != nil {
		return nil, err
	}
	var list []sitePort
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	all := make(map[string]sitePort)
	for _, p := range list {
		all[p.Name] = p
	}
	return all, nil
}

// A siteEcho is two ends of an echo.
type siteEcho struct {
	c  *net.UDPConn
	to netip.AddrPort
}

// echo opens an echo from one node to another, at an address.
func (h *siteHost) echo(from, to, addr string) (*siteEcho, error) {
	addr += ":7777"
	server, err := h.udp(to, addr)
	if err != nil {
		return nil, err
	}
	go func() {
		buf := make([]byte, 2000)
		for {
			k, from, err := server.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			server.WriteToUDPAddrPort(buf[:k], from)
		}
	}()
	c, err := h.udp(from, "")
	return &siteEcho{c, netip.MustParseAddrPort(addr)}, err
}

// run sends n datagrams, one every 5 ms, and returns how many come back, and the shortest
// round trip.
func (e *siteEcho) run(n int) (back int, best time.Duration) {
	id := time.Now().UnixNano()
	sent := make([]time.Time, n)
	best = time.Hour
	buf := make([]byte, 2000)
	take := func(until time.Time) bool {
		e.c.SetReadDeadline(until)
		k, err := e.c.Read(buf)
		var at int64
		var i int
		if err == nil {
			if _, err := fmt.Sscanf(string(buf[:k]), "%d %d", &at, &i); err == nil && at == id && i < n {
				back++
				best = min(best, time.Since(sent[i]))
			}
		}
		return err == nil
	}
	for i := range n {
		sent[i] = time.Now()
		e.c.WriteToUDPAddrPort(fmt.Appendf(nil, "%d %d", id, i), e.to)
		for until := sent[i].Add(5 * time.Millisecond); take(until); {
		}
	}
	for until := time.Now().Add(time.Second); back < n && take(until); {
	}
	return back, best
}

// within checks that round trips take so long, and not much longer: on a busy machine it is
// tried again.
func (e *siteEcho) within(want time.Duration) error {
	const tries = 10
	var back int
	var best time.Duration
	for range tries {
		back, best = e.run(50)
		if best < want {
			return fmt.Errorf("%v back in %v, want %v", e.to, best, want)
		}
		if back == 50 && best < want+want/4 {
			fmt.Printf("%v back in %v\n", e.to, best)
			return nil
		}
	}
	return fmt.Errorf("%v: %d of 50 come back, the fastest in %v; want %v", e.to, back, best, want)
}

// siteDelay is a host that another one reaches at an address, and the round trip that this takes.
type siteDelay struct {
	from, to, addr string
	want           time.Duration
}

// delays checks round trips one after the other.
func (h *siteHost) delays(list []siteDelay) error {
	for _, d := range list {
		e, err := h.echo(d.from, d.to, d.addr)
		if err != nil {
			return err
		}
		if err := e.within(d.want); err != nil {
			return err
		}
	}
	return nil
}

var siteChecks = map[string]func(*siteHost) error{
	"delays": func(h *siteHost) error {
		return h.delays([]siteDelay{
			{"s1h1", "s1h2", "10.77.1.2", 2 * time.Millisecond},
			{"s1h1", "s1g2", "10.77.1.253", 2 * time.Millisecond},
			{"s1h1", "s2h2", "10.77.2.2", 22 * time.Millisecond},
			{"s1g1", "s2g2", "198.18.1.34", 18 * time.Millisecond},
			{"s1g1", "s2g2", "198.18.2.34", 18 * time.Millisecond},
		})
	},

	// Both sites have the same addresses; each host reaches the one in its site, and
	// gateways reach each other.
	"overlap": func(h *siteHost) error {
		return h.delays([]siteDelay{
			{"s1h1", "s1h2", "10.77.1.2", 2 * time.Millisecond},
			{"s2h1", "s2h2", "10.77.1.2", 2 * time.Millisecond},
			{"s2g1", "s2h1", "10.77.1.1", 2 * time.Millisecond},
			{"s1g1", "s2g1", "198.18.1.33", 18 * time.Millisecond},
		})
	},

	"loss": func(h *siteHost) error {
		e, err := h.echo("s1g1", "s2g1", "198.18.1.33")
		if err != nil {
			return err
		}
		back, _ := e.run(200) // the limits are seven standard deviations away
		fmt.Printf("%d of 200 come back\n", back)
		if back < 80 || back > 176 {
			return fmt.Errorf("%d of 200 come back both ways at 20 %% loss, want about 128", back)
		}
		if e, err = h.echo("s1h1", "s1g1", "10.77.1.254"); err != nil {
			return err
		}
		if back, _ := e.run(50); back != 50 {
			return fmt.Errorf("%d of 50 come back in a LAN without loss", back)
		}
		return nil
	},

	// What two hosts of a site send leaves it at the rate of their common link.
	"rate": func(h *siteHost) error {
		const packets, size = 100, 1250 // 1 ms each at 10 Mb/s
		const tries = 10
		server, err := h.udp("s2h1", "10.77.2.1:7777")
		if err != nil {
			return err
		}
		server.SetReadBuffer(1 << 20)
		to := netip.MustParseAddrPort("10.77.2.1:7777")
		var got int
		var took time.Duration
		for range tries {
			for _, from := range []string{"s1h1", "s1h2"} {
				c, err := h.udp(from, "")
				if err != nil {
					return err
				}
				for range packets {
					c.WriteToUDPAddrPort(make([]byte, size-28), to)
				}
			}
			var first time.Time
			buf := make([]byte, 2000)
			for got = 0; got < 2*packets; got++ {
				server.SetReadDeadline(time.Now().Add(2 * time.Second))
				if _, err := server.Read(buf); err != nil {
					break
				}
				if got == 0 {
					first = time.Now()
				}
			}
			took = time.Since(first)
			// A busy reader may see the first packets late, together with others.
			if want := time.Duration(got) * time.Millisecond; got == 2*packets && took > want-want/5 && took < want+want/5 {
				fmt.Printf("%d packets of two hosts in %v\n", got, took)
				return nil
			}
		}
		return fmt.Errorf("%d of %d packets in %v, want all in %v", got, 2*packets, took, 2*packets*time.Millisecond)
	},

	"cuts": func(h *siteHost) error {
		host, err := h.echo("s1h1", "s2h1", "10.77.2.1")
		if err != nil {
			return err
		}
		gateway, err := h.echo("s1g1", "s2g2", "198.18.1.34")
		if err != nil {
			return err
		}
		lan, err := h.echo("s2h1", "s2g2", "10.77.2.253")
		if err != nil {
			return err
		}
		for _, tt := range []struct {
			command                           string
			hostWorks, gatewayWorks, lanWorks bool
		}{
			{"restore", true, true, true}, {"cut wan", false, false, true}, {"restore wan", true, true, true},
			{"cut wan 2", true, true, true}, {"cut wan 1 site 2", false, false, true}, {"restore", true, true, true},
			{"cut site 2 gateway 2", true, false, false}, {"restore site 2 gateway 2", true, true, true},
			{"cut wan site 2 gateway 2", true, false, true}, {"restore", true, true, true},
			{"cut lan site 1 host 1", false, true, true}, {"restore site 1 host 1", true, true, true},
			{"set wan site 2 to 1 loss 100%", false, false, true}, {"set wan loss 0", true, true, true},
		} {
			if _, err := h.control(tt.command); err != nil {
				return err
			}
			for _, e := range []struct {
				name  string
				echo  *siteEcho
				works bool
			}{{"host", host, tt.hostWorks}, {"gateway", gateway, tt.gatewayWorks}, {"LAN", lan, tt.lanWorks}} {
				if back, _ := e.echo.run(20); (back == 20) != e.works || (back == 0) == e.works {
					return fmt.Errorf("%s: %d of 20 come back after %q, want all: %v", e.name, back, tt.command, e.works)
				}
			}
		}
		if answer, err := h.control("kill gateway 1"); err == nil {
			return fmt.Errorf("a gateway that is not there was killed: %s", answer)
		}
		return nil
	},

	// What the command line says happens, and what it does not say does not: hosts do not
	// reach other sites, and their gateway gets what they send there.
	"planned": func(h *siteHost) error {
		e, err := h.echo("s1g1", "s2g1", "198.18.1.33")
		if err != nil {
			return err
		}
		host, err := h.echo("s1h1", "s2h1", "10.77.2.1")
		if err != nil {
			return err
		}
		for deadline := time.Now().Add(patience); ; {
			back, _ := e.run(1)
			if back == 1 {
				break
			}
			if time.Now().After(deadline) {
				return errors.New("the WAN is not restored")
			}
		}
		if took := time.Since(siteStart); took < 500*time.Millisecond {
			return fmt.Errorf("the WAN was restored within %v of the start of this process", took)
		}
		if back, _ := host.run(20); back != 0 {
			return fmt.Errorf("%d of 20 come back between sites without a route", back)
		}
		stats, err := h.stats()
		if err != nil {
			return err
		}
		if got := stats["lan site 1 host 1"].Delivered; got < 20 {
			return fmt.Errorf("%d packets of the host were delivered, want the gateway to get 20", got)
		}
		return nil
	},

	// Gateways have their legs when the commands start; they are killed and started by
	// commands, and by the plan of the command line.
	"gateways": func(h *siteHost) error {
		file, tool := os.Args[1], os.Args[2]
		f, err := sites.Read(file)
		if err != nil {
			return err
		}
		status := func(gateway string, g *sites.Gateway, wait string) error {
			return h.in(gateway, func() error {
				said, err := exec.Command(tool, "gateway", "status", "-wait", wait, g.Status.String()).CombinedOutput()
				if err != nil {
					return fmt.Errorf("%s: %w: %s", gateway, err, said)
				}
				return nil
			})
		}
		down := func(gateway string, g *sites.Gateway) error {
			for deadline := time.Now().Add(patience); status(gateway, g, "1ms") == nil; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					return fmt.Errorf("%s is not killed", gateway)
				}
			}
			return nil
		}
		a, b := f.Sites[0].Gateways[0], f.Sites[1].Gateways[1]
		for _, g := range []struct {
			name string
			of   *sites.Gateway
		}{{"s1g1", a}, {"s1g2", f.Sites[0].Gateways[1]}, {"s2g1", f.Sites[1].Gateways[0]}} {
			if err := status(g.name, g.of, "1ms"); err != nil {
				return fmt.Errorf("at the start: %w", err)
			}
		}
		if _, err := h.control("kill site 1 gateway 1"); err != nil {
			return err
		}
		if status("s1g1", a, "1ms") == nil {
			return errors.New("a gateway answers that was killed")
		}
		if err := down("s2g2", b); err != nil { // by plan
			return err
		}
		if _, err := h.control("start"); err != nil {
			return err
		}
		return errors.Join(status("s1g1", a, "10s"), status("s2g2", b, "10s"))
	},

	"cross": func(h *siteHost) error {
		var last map[string]sitePort
		const bytes = 250_000 // at 20 Mb/s in 0.1 s
		for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			stats, err := h.stats()
			if err != nil {
				return err
			}
			if last == nil {
				last = stats
			}
			done := true
			for _, port := range []string{"wan 1 site 1", "wan 1 site 2", "wan 2 site 1", "wan 2 site 2"} {
				done = done && stats[port].SentBytes > last[port].SentBytes+bytes
			}
			if done {
				return nil
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("counters %v, before %v; want the sites to have sent", stats, last)
			}
		}
	},
}

// siteStart is about when this process began.
var siteStart = time.Now()

func TestSitesDelayPackets(t *testing.T) {
	bounded(t)
	overSites(t, "delays", "-lan", "1gbit 1ms", "-wan", "1gbit 9ms", "-wans", "2", "-gateways", "2", "-routed", "yes")
}

func TestSitesWithTheSameAddresses(t *testing.T) {
	bounded(t)
	overSites(t, "overlap", "-lan", "1ms", "-wan", "9ms", "-overlap", "yes")
}

func TestSitesLosePackets(t *testing.T) {
	bounded(t)
	overSites(t, "loss", "-wan", "1gbit loss 20%")
}

func TestSitesShareALink(t *testing.T) {
	bounded(t)
	overSites(t, "rate", "-lan", "1gbit", "-wan", "10mbit 1ms queue 1MiB", "-routed", "yes")
}

func TestSitesTakeLiveChanges(t *testing.T) {
	bounded(t)
	overSites(t, "cuts", "-wan", "1gbit 1ms", "-wans", "2", "-gateways", "2", "-routed", "yes")
}

func TestSitesFollowAPlan(t *testing.T) {
	bounded(t)
	overSites(t, "planned", "-wan", "1ms", "-at", "0s cut wan", "-at", "2s restore wan")
}

func TestSitesRunGateways(t *testing.T) {
	bounded(t)
	overSitesWith(t, "yes", "gateways", "-wan", "1ms", "-gateways", "2", "-wans", "2", "-overlap", "yes", "-at", "3s kill site 2 gateway 2")
}

func TestSitesHaveCrossTraffic(t *testing.T) {
	bounded(t)
	overSites(t, "cross", "-wan", "20mbit 9ms", "-wans", "2", "-cross", "2")
}
