package interop

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
)

// Limits of what the siw tests wait for. The guest is emulated, and the machine
// may be busy.
const (
	siwBuildTime = 10 * time.Minute
	siwPatience  = 4 * time.Minute
)

// siwPoll has the peer wait for a completion.
const siwPoll = "poll 120000" // milliseconds

// Addresses of the guest, seen from inside, and of this machine.
const (
	siwGuest = "10.0.2.15"
	siwHost  = "10.0.2.2"
)

// siwPorts is how many TCP ports of the guest can be reached: a port is used
// once, so that no connection of another row is in its way.
const siwPorts = 32

// siw is a guest with soft-iWARP, the Linux kernel's iWARP over TCP.
type siw struct {
	version     string
	shell, peer int // ports on this machine
	ports       [siwPorts]int
	used        int
}

// siwImage returns the directory of the guest that siw_guest/build.sh makes.
func siwImage(t testing.TB) string {
	t.Helper()
	guest := guestImage(t)
	for _, name := range []string{"make", "xz", "ldd", "rdma"} {
		if _, err := exec.LookPath(name); err != nil {
			testenv.Lacking(t, "%s not found: install Debian's make, xz-utils, libc-bin and iproute2", name)
		}
	}
	files := []string{"siw_guest/build.sh", "siw_guest/init", "siw_guest/peer.c"}
	dir := filepath.Join(filepath.Dir(guest), "siw-guest-"+filepath.Base(guest)+"-"+digestOf(t, files))
	if _, err := os.Stat(filepath.Join(dir, "version")); err == nil {
		return dir
	}
	ctx, cancel := context.WithTimeout(within(t), siwBuildTime)
	defer cancel()
	cmd := commandIn(ctx, "siw_guest/build.sh", dir, guest)
	if said, err := cmd.CombinedOutput(); err != nil {
		testenv.Lacking(t, "the guest with siw cannot be made here: %v\n%s", err, said)
	}
	return dir
}

// bootSiw boots the guest, which lives as long as the test, with one of the
// builds of siw: "siw", "siw-p2p" or "siw-rev1".
func bootSiw(t *testing.T, module string) *siw {
	dir := siwImage(t)
	g := &siw{shell: testenv.FreePort(t), peer: testenv.FreePort(t)}
	forward := fmt.Sprintf("user,id=n0,hostfwd=tcp:127.0.0.1:%d-:7100,hostfwd=tcp:127.0.0.1:%d-:7101", g.shell, g.peer)
	for i := range g.ports {
		g.ports[i] = testenv.FreePort(t)
		forward += fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%d-:%d", g.ports[i], siwPort(i))
	}
	g.version = bootImage(t, dir, nil, "-netdev", forward, "-device", guestDevice("n0"), "-append", guestCommandLine+" siw="+module).version
	return g
}

func siwPort(i int) int { return 7200 + i }

// port returns a TCP port of the guest, and that of this machine through which
// it is reached.
func (g *siw) port(t testing.TB) (inside int, outside string) {
	t.Helper()
	if g.used == siwPorts {
		t.Fatal("no port is left: raise siwPorts")
	}
	g.used++
	return siwPort(g.used - 1), fmt.Sprintf("127.0.0.1:%d", g.ports[g.used-1])
}

// siwCommand is a shell command that runs in the guest.
type siwCommand struct {
	t    testing.TB
	conn net.Conn
}

// start runs a shell command in the guest.
func (g *siw) start(t testing.TB, command string) *siwCommand {
	t.Helper()
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", g.shell), siwPatience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "(%s) </dev/null 2>/tmp/$$; s=$?; cat /tmp/$$; echo \"status: $s\"; exit\n", command)
	return &siwCommand{t, conn}
}

// wait returns the output and the exit status.
func (c *siwCommand) wait() (said, status string) {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(siwPatience))
	b, err := io.ReadAll(c.conn)
	said, status, ok := strings.Cut(string(b), "status: ")
	if !ok {
		c.t.Fatalf("the command in the guest does not end: %v, %q", err, b)
	}
	return said, strings.TrimSpace(status)
}

// row runs f as a subtest. When that fails, t ends unless the guest still runs a command: in a
// guest that stands still each of the rows that follow would wait for its limit.
func (g *siw) row(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	if !t.Run(name, f) {
		g.start(t, "true").wait()
	}
}

// awaitListener waits until a port of the guest is listened on.
func (g *siw) awaitListener(t testing.TB, port int) {
	t.Helper()
	said, status := g.start(t, fmt.Sprintf("for i in $(seq 2400); do netstat -ltn | grep -q :%d && exit; usleep 50000; done; exit 1", port)).wait()
	if status != "0" {
		t.Fatalf("nothing listens on port %d of the guest: %s", port, said)
	}
}

// siwPeer is a process of siw_guest/peer.c in the guest.
type siwPeer struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

func (g *siw) newPeer(t testing.TB) *siwPeer {
	t.Helper()
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", g.peer), siwPatience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &siwPeer{t, conn, bufio.NewReader(conn)}
}

// listen has the peer listen, and returns where it is reached from this machine.
func (p *siwPeer) listen(g *siw) (outside string) {
	p.t.Helper()
	inside, outside := g.port(p.t)
	p.do("listen %s %d", siwGuest, inside)
	return outside
}

// try has the peer do something, and returns its answer.
func (p *siwPeer) try(format string, args ...any) (answer string, ok bool) {
	p.t.Helper()
	p.begin(format, args...)
	return p.end()
}

// begin sends a command whose answer end returns.
func (p *siwPeer) begin(format string, args ...any) {
	p.t.Helper()
	p.conn.SetDeadline(time.Now().Add(2 * siwPatience))
	if _, err := fmt.Fprintf(p.conn, format+"\n", args...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *siwPeer) end() (answer string, ok bool) {
	p.t.Helper()
	line, err := p.r.ReadString('\n')
	if err != nil {
		p.t.Fatalf("the peer in the guest: %v", err)
	}
	line = strings.TrimSpace(line)
	if line == "ok" {
		return "", true
	}
	return strings.CutPrefix(line, "ok ")
}

// do has the peer do something that must succeed.
func (p *siwPeer) do(format string, args ...any) string {
	p.t.Helper()
	answer, ok := p.try(format, args...)
	if !ok {
		p.t.Fatalf("peer: %s: %s", fmt.Sprintf(format, args...), answer)
	}
	return answer
}

// fields is do for answers of the given number of words.
func (p *siwPeer) fields(n int, format string, args ...any) []string {
	p.t.Helper()
	f := strings.Fields(p.do(format, args...))
	if len(f) != n {
		p.t.Fatalf("peer: %s: %q", fmt.Sprintf(format, args...), f)
	}
	return f
}

// sum is the peer's checksum, and fill its pattern.
func fnv(b []byte) string {
	h := uint64(0xcbf29ce484222325)
	for _, c := range b {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	return fmt.Sprintf("%016x", h)
}

func fillLikePeer(b []byte, seed int) {
	for i := range b {
		b[i] = byte(seed + i*7 + (i>>8)*13)
	}
}

func hexed(s string) string {
	if s == "" {
		return "-"
	}
	return hex.EncodeToString([]byte(s))
}

// TestSiw has our stack talk to soft-iWARP of the Linux kernel in a guest.
func TestSiw(t *testing.T) {
	bounded(t)
	testenv.Slow(t, "boots a guest")
	t.Run("plain", func(t *testing.T) {
		g := bootSiw(t, "siw")
		for _, r := range []struct {
			name string
			run  func(t *testing.T, g *siw)
		}{
			{"rping", siwRping},
			{"perftest", siwPerftest},
			{"traffic", siwTraffic},
			{"startup", siwStartup},
			{"faults we provoke", siwOurFaults},
			{"faults the peer provokes", siwTheirFaults},
		} {
			g.row(t, r.name, func(t *testing.T) { r.run(t, g) })
		}
	})
	t.Run("peer-to-peer and CRC", siwPeerToPeer)
	t.Run("revision 1", siwRevision1)
}
