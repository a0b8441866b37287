//go:build linux

package interop

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
)

// patience is how long a peer may take for anything that is not a bulk
// transfer. A guest on a busy machine is slow, and such a machine may stand still
// for a minute.
const patience = 4 * time.Minute

// A peer is a program of testdata/peer, which speaks SCTP through a stack that
// is not ours. It takes commands as lines and answers in lines.
type peer struct {
	t     testing.TB
	in    io.WriteCloser
	lines chan string
	ended func()   // waits for the end of the process, nil if it is not ours
	said  []string // all lines so far
	at    int      // the first line of said that want has not looked at
}

func newPeer(t testing.TB, in io.WriteCloser, out io.Reader) *peer {
	p := &peer{t: t, in: in, lines: make(chan string, 1000)}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	p.want("ready")
	return p
}

// do gives a command.
func (p *peer) do(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.t.Fatalf("peer does not take %q: %v", fmt.Sprintf(format, args...), err)
	}
}

// want waits for a line with a prefix and returns the rest of it. Other lines
// in front of it are dropped, but a complaint of the peer ends the test.
func (p *peer) want(prefix string) string { p.t.Helper(); return p.wantIn(patience, prefix) }

func (p *peer) wantIn(limit time.Duration, prefix string) string {
	p.t.Helper()
	p.at = p.find(limit, p.at, prefix) + 1
	return strings.TrimSpace(strings.TrimPrefix(p.said[p.at-1], prefix))
}

// find waits for the first line with one of the prefixes, among those said from
// the given one on, and returns its number.
func (p *peer) find(limit time.Duration, from int, prefixes ...string) int {
	p.t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for i := from; ; i++ {
		if i == len(p.said) {
			select {
			case line, ok := <-p.lines:
				if !ok {
					p.t.Fatalf("peer ended while it was to say %q; it said:\n%s", prefixes, p.last())
				}
				p.said = append(p.said, line)
			case <-timer.C:
				p.t.Fatalf("peer does not say %q in %v; it said:\n%s", prefixes, limit, p.last())
			}
		}
		for _, prefix := range prefixes {
			if strings.HasPrefix(p.said[i], prefix) {
				return i
			}
		}
		if word, _, _ := strings.Cut(p.said[i], " "); word == "error" || word == "bad" || word == "fatal" {
			p.t.Fatalf("peer: %s; it said:\n%s", p.said[i], p.last())
		}
	}
}

// ever waits for a line with a prefix that may have come already, among the
// lines from the given number on. It returns the number of the next one.
func (p *peer) ever(from int, prefix string) int {
	p.t.Helper()
	return p.find(patience, from, prefix) + 1
}

// last returns the last lines that the peer said.
func (p *peer) last() string {
	return "\t" + strings.Join(p.said[max(0, len(p.said)-12):], "\n\t")
}

// ok gives a command that is answered with ok. What the command brings about
// may be told before the answer, by another thread, and is still there for want.
func (p *peer) ok(format string, args ...any) {
	p.t.Helper()
	if answer := p.ask(format, args...); answer != "ok" {
		p.t.Fatalf("peer: %s; it said:\n%s", answer, p.last())
	}
}

// ask gives a command that is answered with ok or an error, and returns which.
func (p *peer) ask(format string, args ...any) string {
	p.t.Helper()
	p.do(format, args...)
	i := p.find(patience, p.at, "ok", "error")
	answer := p.said[i]
	p.said[i] = "answer: " + answer
	return answer
}

// quit ends the peer.
func (p *peer) quit() {
	p.t.Helper()
	p.do("quit")
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case _, ok := <-p.lines:
			if !ok {
				if p.ended != nil {
					p.ended() // its sockets are closed after its output
				}
				return
			}
		case <-timer.C:
			p.t.Fatalf("peer does not quit in %v", patience)
		}
	}
}

// counts are what a peer has received.
type counts struct{ msgs, bytes, bad, gaps, unordered int64 }

func (p *peer) counts(line string) counts {
	p.t.Helper()
	var c counts
	if _, err := fmt.Sscanf(line, "msgs=%d bytes=%d bad=%d gaps=%d unordered=%d", &c.msgs, &c.bytes, &c.bad, &c.gaps, &c.unordered); err != nil {
		p.t.Fatalf("peer counts %q: %v", line, err)
	}
	return c
}

// await waits until the peer has received n messages, and checks that their
// content was right.
func (p *peer) await(limit time.Duration, n int) counts {
	p.t.Helper()
	p.do("await %d", n)
	c := p.counts(p.wantIn(limit, "got"))
	if c.msgs != int64(n) || c.bad != 0 {
		p.t.Errorf("peer got %+v, want %d messages", c, n)
	}
	return c
}

// A stack is an SCTP implementation that is not ours.
type stack struct {
	name, version string
	// start starts a peer that lives as long as the test; in the place of one
	// that has ended, if former is not nil.
	start func(t testing.TB, former *peer) *peer
	// udp is where the peer is reached from here, ours is our address, and
	// host how the peer reaches it.
	udp        func(*peer) string
	ours, host string
	// kernel tells that all peers share a stack, which outlives them.
	kernel bool
	// mtu is that of the path, 0 if the route knows it.
	mtu int
	// bulk is how many bytes a bulk transfer has here.
	bulk int
}

// sources are the files that a peer is made from.
func peerSources(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/peer/*.[ch]")
	if err != nil || len(files) == 0 {
		t.Fatal("no sources of the peer", err)
	}
	return files
}

var usrsctp struct {
	once   sync.Once
	path   string
	reason string
}

// usrsctpPeer compiles the peer on usrsctp once per test run.
func usrsctpPeer(t testing.TB) string {
	t.Helper()
	usrsctp.once.Do(func() {
		if _, err := exec.LookPath("gcc"); err != nil {
			usrsctp.reason = "gcc not found: install Debian's gcc and libc6-dev"
			return
		}
		if _, err := os.Stat("/usr/include/usrsctp.h"); err != nil {
			usrsctp.reason = "usrsctp.h not found: install Debian's libusrsctp-dev"
			return
		}
		path := filepath.Join(tools.dir, "peer-usrsctp")
		args := []string{"-O2", "-Wall", "-DPEER_USRSCTP", "-o", path}
		for _, f := range peerSources(t) {
			if strings.HasSuffix(f, ".c") {
				args = append(args, f)
			}
		}
		said, err := command(t, "gcc", append(args, "-lusrsctp", "-lpthread")...).CombinedOutput()
		if err != nil {
			usrsctp.reason = fmt.Sprintf("the peer does not compile: %v\n%s", err, said)
			return
		}
		usrsctp.path = path
	})
	if usrsctp.path == "" {
		testenv.Lacking(t, "%s", usrsctp.reason)
	}
	return usrsctp.path
}

// usrsctpMulti is usrsctp in the namespace of the peer.
func usrsctpMulti(t testing.TB, m *multinet) *stack {
	path := usrsctpPeer(t)
	s := &stack{name: "usrsctp", version: "usrsctp " + packageVersion(t, "libusrsctp2")}
	s.start = func(t testing.TB, _ *peer) *peer {
		return startPeer(t, command(t, "ip", "netns", "exec", m.peer, path, "udp", strconv.Itoa(int(m.port()))))
	}
	return s
}

// usrsctpStack is usrsctp: FreeBSD's stack in user space, one process per
// peer.
func usrsctpStack(t testing.TB) *stack {
	path := usrsctpPeer(t)
	var mu sync.Mutex // rows may run at the same time
	ports := make(map[*peer]int)
	s := &stack{name: "usrsctp", version: "usrsctp " + packageVersion(t, "libusrsctp2"), ours: "127.0.0.1:0", host: "127.0.0.1", bulk: 100 << 20}
	s.start = func(t testing.TB, former *peer) *peer {
		mu.Lock()
		port := ports[former]
		mu.Unlock()
		if former == nil {
			port = testenv.FreePort(t)
		}
		p := startPeer(t, command(t, path, "udp", strconv.Itoa(port)))
		mu.Lock()
		defer mu.Unlock()
		ports[p] = port
		return p
	}
	s.udp = func(p *peer) string {
		mu.Lock()
		defer mu.Unlock()
		return "127.0.0.1:" + strconv.Itoa(ports[p])
	}
	return s
}

// startPeer starts a peer as a process, which is killed with the test.
func startPeer(t testing.TB, cmd *exec.Cmd) *peer {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs lockedBuffer
	cmd.Stderr = &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := sync.OnceValue(cmd.Wait)
	t.Cleanup(func() {
		cmd.Process.Kill()
		if err := ended(); err != nil && err.Error() != "signal: killed" {
			t.Errorf("peer: %v", err)
		}
		if s := errs.String(); s != "" {
			t.Errorf("peer complains:\n%s", s)
		}
	})
	p := newPeer(t, in, out)
	p.ended = func() { ended() }
	return p
}

// packageVersion returns the version of an installed Debian package.
func packageVersion(t testing.TB, name string) string {
	out, err := command(t, "dpkg-query", "-W", "-f", "${Version}", name).Output()
	if err != nil {
		return "of unknown version"
	}
	return string(out)
}
