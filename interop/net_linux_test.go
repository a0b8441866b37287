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
	"testing"
	"time"
)

// needRoot skips a test that makes network namespaces.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		lacking(t, "not root: network namespaces cannot be made")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		lacking(t, "no /dev/net/tun: hosts cannot be joined")
	}
}

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

// echo sends n datagrams from host 0 to host 1 and prints how many came back,
// and the median round trip.
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
	back := 0
	var total time.Duration
	for i := range n {
		start := time.Now()
		c.Write(fmt.Appendf(buf[:0], "%d", i))
		c.SetReadDeadline(start.Add(50 * time.Millisecond))
		if _, err := c.Read(buf); err == nil {
			back++
			total += time.Since(start)
		}
	}
	fmt.Printf("back=%d mean=%v\n", back, total/time.Duration(max(back, 1)))
	return nil
}

// echoOver runs the echo over an emulated network.
func echoOver(t *testing.T, n int, flags ...string) (back int, mean time.Duration) {
	t.Helper()
	args := append([]string{"net", "-hosts", "2", "-main", "0", "-x", envEcho + "=" + strconv.Itoa(n)}, flags...)
	out, errs, status := weft(t, append(args, "--", os.Args[0])...)
	var d string
	if _, err := fmt.Sscanf(out, "back=%d mean=%s", &back, &d); err != nil || status != 0 {
		t.Fatalf("status %d, %v: %s%s", status, err, out, errs)
	}
	mean, _ = time.ParseDuration(d)
	return back, mean
}

func TestNetDelaysPackets(t *testing.T) {
	needRoot(t)
	back, mean := echoOver(t, 50, "-delay", "5ms")
	if back < 49 || mean < 10*time.Millisecond || mean > 15*time.Millisecond {
		t.Errorf("%d of 50 came back, mean round trip %v; want all and 10 ms", back, mean)
	}
}

func TestNetLosesPackets(t *testing.T) {
	needRoot(t)
	back, _ := echoOver(t, 200, "-loss", "20%")
	if back < 100 || back > 156 {
		t.Errorf("%d of 200 came back both ways at 20 %% loss, want about 128", back)
	}
	again, _ := echoOver(t, 200, "-loss", "20%")
	t.Logf("%d, then %d with the same seed", back, again)
}

func TestNetCutsByPlan(t *testing.T) {
	needRoot(t)
	back, _ := echoOver(t, 40, "-delay", "5ms", "-at", "100ms cut net 0 host 1", "-at", "400ms restore")
	if back < 10 || back > 36 {
		t.Errorf("%d of 40 came back, want some lost while the network was cut", back)
	}
}

func TestNetTakesLiveChanges(t *testing.T) {
	needRoot(t)
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
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
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
	needRoot(t)
	before, _ := os.ReadDir("/run/netns")
	echoOver(t, 1)
	if after, _ := os.ReadDir("/run/netns"); len(after) != len(before) {
		t.Errorf("%d namespaces before, %d after", len(before), len(after))
	}
}
