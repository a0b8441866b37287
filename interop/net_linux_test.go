package interop

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
)

// envEcho has this test binary play one end of a UDP echo between hosts.
const (
	envEcho      = "WEFT_INTEROP_ECHO"
	envEchoUntil = "WEFT_INTEROP_ECHO_UNTIL"
)

func init() {
	playRole(envEcho, func(count string) error {
		n, err := strconv.Atoi(count)
		if err != nil {
			return err
		}
		return echo(os.Getenv("WEFT_NET_HOST"), n)
	})
}

// lastEcho is how long the last datagrams may be under way, where all machines are
// one, and that one may be busy.
const lastEcho = 2 * time.Second

// echo sends n datagrams from host 0 to host 1, one every 5 ms, and prints how
// many came back, and the shortest round trip. Before that it waits for host 1, and
// after it for the file that envEchoUntil names, if any.
func echo(host string, n int) error {
	if host == "1" {
		c, err := net.ListenPacket("udp4", "10.77.0.2:7777")
		if err != nil {
			return err
		}
		buf := make([]byte, 2000)
		for {
			k, from, err := c.ReadFrom(buf)
			if err != nil {
				return err
			}
			c.WriteTo(buf[:k], from)
		}
	}
	c, err := net.Dial("udp4", "10.77.0.2:7777")
	if err != nil {
		return err
	}
	buf := make([]byte, 2000)
	for deadline := time.Now().Add(patience); ; {
		fmt.Fprint(c, n)
		c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := c.Read(buf); err == nil {
			break
		} else if time.Now().After(deadline) {
			return err
		}
	}
	sent := make([]time.Time, n)
	var mu sync.Mutex
	c.SetReadDeadline(time.Time{})
	go func() {
		for i := range n {
			mu.Lock()
			sent[i] = time.Now()
			mu.Unlock()
			fmt.Fprint(c, i)
			time.Sleep(5 * time.Millisecond)
		}
		c.SetReadDeadline(time.Now().Add(lastEcho))
	}()
	seen := make(map[int]bool)
	best := time.Hour
	for len(seen) < n {
		k, err := c.Read(buf)
		if err != nil {
			break
		}
		i, err := strconv.Atoi(string(buf[:k]))
		if err != nil || i < 0 || i >= n {
			continue // of before
		}
		seen[i] = true
		mu.Lock()
		best = min(best, time.Since(sent[i]))
		mu.Unlock()
	}
	fmt.Printf("back=%d best=%v\n", len(seen), best)
	for path := os.Getenv(envEchoUntil); path != ""; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			break
		}
	}
	return nil
}

// echoOver runs the echo over an emulated network.
func echoOver(t *testing.T, n int, flags ...string) (back int, best time.Duration) {
	t.Helper()
	args := append([]string{"net", "-hosts", "2", "-main", "0", "-x", envEcho + "=" + strconv.Itoa(n)}, flags...)
	out, errs, status := weft(t, append(args, "--", os.Args[0])...)
	var d string
	if _, err := fmt.Sscanf(out, "back=%d best=%s", &back, &d); err != nil || status != 0 {
		t.Fatalf("status %d, %v: %s%s", status, err, out, errs)
	}
	best, _ = time.ParseDuration(d)
	return back, best
}

// echoWithin sends a hundred datagrams over an emulated network, of which the
// fastest must take at least want, and not much more: that is tried again, since a
// busy machine may delay all of them, or for longer than is waited for.
func echoWithin(t *testing.T, want time.Duration, flags ...string) {
	t.Helper()
	const tries = 10
	for try := 1; ; try++ {
		back, best := echoOver(t, 100, flags...)
		if best < want {
			t.Fatalf("the fastest came back in %v, want %v", best, want)
		}
		if back == 100 && best <= want+want/2 {
			return
		}
		if t.Logf("%d of 100 came back, the fastest in %v; want all and %v", back, best, want); try == tries {
			t.FailNow()
		}
	}
}

func TestNetDelaysPackets(t *testing.T) {
	bounded(t)
	testenv.Networks(t)
	echoWithin(t, 10*time.Millisecond, "-delay", "5ms")
}

// The limits of these tests are seven standard deviations away.
func TestNetLosesPackets(t *testing.T) {
	bounded(t)
	testenv.Networks(t)
	back, _ := echoOver(t, 200, "-loss", "20%")
	if back < 80 || back > 176 {
		t.Errorf("%d of 200 came back both ways at 20 %% loss, want about 128", back)
	}
	again, _ := echoOver(t, 200, "-loss", "20%")
	t.Logf("%d, then %d with the same seed", back, again)
}

// A plan counts from when the network is there, and a busy machine starts the
// programs in it late.
func TestNetDelaysOneDirection(t *testing.T) {
	bounded(t)
	testenv.Networks(t)
	echoWithin(t, 20*time.Millisecond, "-at", "0s set host 0 to 1 delay 20ms")
}

func TestNetLosesByState(t *testing.T) {
	bounded(t)
	testenv.Networks(t)
	// A fifth of the packets of each direction, several in a row.
	if back, _ := echoOver(t, 400, "-gemodel", "10%,40%"); back < 130 || back > 370 {
		t.Errorf("%d of 400 came back, want about 256", back)
	}
}

func TestNetCutsByPlan(t *testing.T) {
	bounded(t)
	testenv.Networks(t)
	back := 0
	for _, at := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 6 * time.Second} {
		n := int(2 * at / (5 * time.Millisecond))
		back, _ = echoOver(t, n, "-delay", "5ms", "-at", fmt.Sprintf("%v cut net 0 host 1", at), "-at", fmt.Sprintf("%v restore", at*3/2))
		if back > n/5 && back <= n-10 {
			return
		}
		t.Logf("%d of %d came back", back, n)
	}
	t.Errorf("%d came back, want some lost while the network was cut", back)
}

func TestNetTakesLiveChanges(t *testing.T) {
	bounded(t)
	testenv.Networks(t)
	dir := t.TempDir()
	socket, capture := filepath.Join(dir, "ctl"), filepath.Join(dir, "net.pcap")
	done := filepath.Join(dir, "done")
	cmd := command(t, tool(t, "weft"), "net", "-control", socket, "-stats", "-pcap", capture, "-main", "0", "-x", envEcho+"=300", "-x", envEchoUntil+"="+done,
		"-delay", "1ms", "--", os.Args[0])
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	var conn net.Conn
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var err error
		if conn, err = net.Dial("unix", socket); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	answers := bufio.NewScanner(conn)
	for _, tt := range []struct{ line, want string }{
		{"cut net 3", "error"}, {"dance", "error"}, {"set delay 2ms", "ok"}, {"set loss 100%", "ok"}, {"restore", "ok"}, {"set loss 0", "ok"},
		{"set host 0 to 1 loss 0.1% delay 1ms", "ok"}, {"set gemodel 1%,50%", "ok"}, {"set gemodel 0", "ok"}, {"stats", `[{"net":0,"host":0,"sent":`},
	} {
		fmt.Fprintln(conn, tt.line)
		if !answers.Scan() || !strings.HasPrefix(answers.Text(), tt.want) {
			t.Errorf("%q is answered %q, want %s", tt.line, answers.Text(), tt.want)
		}
	}
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "peak_queue") {
		t.Errorf("%v: %s", err, out.String())
	}
	if info, err := os.Stat(capture); err != nil || info.Size() < 300*28 {
		t.Errorf("capture: %v", err)
	}
}

func TestNetLeavesNothingBehind(t *testing.T) {
	bounded(t)
	testenv.Networks(t)
	out, errs, status := weft(t, "net", "-hosts", "2", "-main", "0", "--", "/bin/sh", "-c",
		`[ "$WEFT_NET_HOST" != 0 ] || for name in $(echo $WEFT_NET_NAMES | tr , ' '); do [ -e /run/netns/$name ] && echo $name; done`)
	names := strings.Fields(out)
	if status != 0 || len(names) != 2 {
		t.Fatalf("status %d, namespaces %q: %s", status, names, errs)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join("/run/netns", name)); !os.IsNotExist(err) {
			t.Errorf("namespace %s is left: %v", name, err)
		}
	}
}

// Processes that ranks on emulated hosts spawn run there too, on the hosts by turns.
func TestNetSpawns(t *testing.T) {
	bounded(t)
	testenv.Networks(t)
	out, errs, status := weft(t, "net", "-hosts", "3", "-delay", "100us", "-x", envProgram+"=spawn hosts", "--", os.Args[0])
	if want := "[4 9 16 25] on hosts [0 1 2 0] by hosts [0 1 2]\n"; status != 0 || out != want {
		t.Errorf("status %d, %q, want %q: %s", status, out, want, errs)
	}
}
