package interop

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
)

// envEcho has this test binary play one end of a UDP echo between hosts.
const envEcho = "WEFT_INTEROP_ECHO"

func init() {
	if n, err := strconv.Atoi(os.Getenv(envEcho)); err == nil {
		if err := echo(os.Getenv("WEFT_NET_HOST"), n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// echo sends n datagrams from host 0 to host 1, one every 5 ms, and prints how
// many came back, and the shortest round trip. Before that it waits for host 1.
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
	for deadline := time.Now().Add(20 * time.Second); ; {
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
	go func() {
		for i := range n {
			mu.Lock()
			sent[i] = time.Now()
			mu.Unlock()
			fmt.Fprint(c, i)
			time.Sleep(5 * time.Millisecond)
		}
		c.SetReadDeadline(time.Now().Add(time.Second))
	}()
	c.SetReadDeadline(time.Time{})
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

func TestNetDelaysPackets(t *testing.T) {
	testenv.Networks(t)
	back, best := echoOver(t, 100, "-delay", "5ms")
	if back != 100 || best < 10*time.Millisecond || best > 15*time.Millisecond {
		t.Errorf("%d of 100 came back, the fastest in %v; want all and 10 ms", back, best)
	}
}

func TestNetLosesPackets(t *testing.T) {
	testenv.Networks(t)
	back, _ := echoOver(t, 200, "-loss", "20%")
	if back < 100 || back > 156 {
		t.Errorf("%d of 200 came back both ways at 20 %% loss, want about 128", back)
	}
	again, _ := echoOver(t, 200, "-loss", "20%")
	t.Logf("%d, then %d with the same seed", back, again)
}

// A plan counts from when the network is there, and a busy machine starts the
// programs in it late.
func TestNetDelaysOneDirection(t *testing.T) {
	testenv.Networks(t)
	back, best := echoOver(t, 100, "-at", "0s set host 0 to 1 delay 20ms")
	if back != 100 || best < 20*time.Millisecond || best > 35*time.Millisecond {
		t.Errorf("%d of 100 came back, the fastest in %v; want all and 20 ms", back, best)
	}
}

func TestNetLosesByState(t *testing.T) {
	testenv.Networks(t)
	// A fifth of the packets of each direction.
	if back, _ := echoOver(t, 200, "-gemodel", "10%,40%"); back < 80 || back > 176 {
		t.Errorf("%d of 200 came back, want about 128", back)
	}
}

func TestNetCutsByPlan(t *testing.T) {
	testenv.Networks(t)
	back := 0
	for _, at := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 6 * time.Second} {
		n := int(2 * at / (5 * time.Millisecond))
		back, _ = echoOver(t, n, "-delay", "5ms", "-at", fmt.Sprintf("%v cut net 0 host 1", at), "-at", fmt.Sprintf("%v restore", at*3/2))
		if back > n/5 && back < n*19/20 {
			return
		}
		t.Logf("%d of %d came back", back, n)
	}
	t.Errorf("%d came back, want some lost while the network was cut", back)
}

func TestNetTakesLiveChanges(t *testing.T) {
	testenv.Networks(t)
	dir := t.TempDir()
	socket, capture := filepath.Join(dir, "ctl"), filepath.Join(dir, "net.pcap")
	cmd := exec.Command(tool(t, "weft"), "net", "-control", socket, "-stats", "-pcap", capture, "-main", "0", "-x", envEcho+"=1000", "-delay", "1ms", "--", os.Args[0])
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
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "peak_queue") {
		t.Errorf("%v: %s", err, out.String())
	}
	if info, err := os.Stat(capture); err != nil || info.Size() < 1000*28 {
		t.Errorf("capture: %v", err)
	}
}

func TestNetLeavesNothingBehind(t *testing.T) {
	testenv.Networks(t)
	before, _ := os.ReadDir("/run/netns")
	echoOver(t, 1)
	if after, _ := os.ReadDir("/run/netns"); len(after) != len(before) {
		t.Errorf("%d namespaces before, %d after", len(before), len(after))
	}
}
