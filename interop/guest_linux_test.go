package interop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
)

const (
	bootTime  = 5 * time.Minute
	buildTime = 10 * time.Minute
)

// guestImage returns the directory of the guest that guest/build.sh makes. It
// is kept in the user's cache under a name that changes with its sources.
func guestImage(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"qemu-system-x86_64", "busybox", "cpio", "kmod", "gcc", "dpkg", "apt-get"} {
		if _, err := exec.LookPath(name); err != nil {
			testenv.Lacking(t, "%s not found: install Debian's qemu-system-x86, busybox-static, cpio, kmod, gcc and libc6-dev", name)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		testenv.Lacking(t, "no cache directory: %v", err)
	}
	dir := filepath.Join(cache, "weft-interop", "guest-"+digestOf(t, slices.Concat([]string{"guest/build.sh", "guest/init"}, peerSources(t))))
	if _, err := os.Stat(filepath.Join(dir, "version")); err == nil {
		return dir
	}
	ctx, cancel := context.WithTimeout(within(t), buildTime)
	defer cancel()
	cmd := commandIn(ctx, "guest/build.sh", dir)
	if said, err := cmd.CombinedOutput(); err != nil {
		testenv.Lacking(t, "the guest cannot be made here: %v\n%s", err, said)
	}
	return dir
}

// digestOf makes a name of the contents of files.
func digestOf(t testing.TB, files []string) string {
	t.Helper()
	h := sha256.New()
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		h.Write(data)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
}

// kernelStack boots a guest, which lives as long as the test. Its peers use
// the stack of the Linux kernel.
func kernelStack(t testing.TB) *stack {
	sctpPort, controlPort := testenv.FreePort(t), testenv.FreePort(t)
	s := bootGuest(t, nil,
		"-netdev", fmt.Sprintf("user,id=n0,hostfwd=udp:127.0.0.1:%d-:9899,hostfwd=tcp:127.0.0.1:%d-:7174", sctpPort, controlPort),
		"-device", guestDevice("n0"), "-append", guestCommandLine+" eth0=10.0.2.15/24")
	s.ours, s.host, s.bulk = "127.0.0.1:0", "10.0.2.2", 8<<20
	s.udp = func(*peer) string { return fmt.Sprintf("127.0.0.1:%d", sctpPort) }
	s.start = func(t testing.TB, _ *peer) *peer {
		t.Helper()
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", controlPort), patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return newPeer(t, conn, conn)
	}
	return s
}

// kernelMulti boots a guest with two devices at the ends of the links of m, and
// a third one for commands.
func kernelMulti(t testing.TB, m *multinet) *stack {
	s := bootGuest(t, []string{"ip", "netns", "exec", m.ours},
		"-netdev", "tap,id=n0,ifname=port0,script=no,downscript=no", "-device", guestDevice("n0")+",mac=02:00:00:78:00:02",
		"-netdev", "tap,id=n1,ifname=port1,script=no,downscript=no", "-device", guestDevice("n1")+",mac=02:00:00:78:01:02",
		"-netdev", "user,id=n2,hostfwd=tcp:127.0.0.1:7174-:7174", "-device", guestDevice("n2"),
		"-append", guestCommandLine+" eth0=10.78.0.2/24 eth1=10.78.1.2/24 eth0=fd78::2/64 eth1=fd78:0:0:1::2/64 eth2=10.0.2.15/24")
	s.start = func(t testing.TB, _ *peer) *peer {
		t.Helper()
		var conn net.Conn
		m.inside(func() (err error) {
			conn, err = net.DialTimeout("tcp", "127.0.0.1:7174", patience)
			return err
		})
		t.Cleanup(func() { conn.Close() })
		return newPeer(t, conn, conn)
	}
	return s
}

const guestCommandLine = "console=ttyS0 quiet panic=-1 mitigations=off"

// guestProcessors is one processor, in a machine that has room for two. In a machine for one, QEMU
// before 8.1 leaves out the guest's memory barriers. The driver of a virtio device then misses, once
// in many thousand packets, that the device wants to be told of the next one: nothing is sent any
// more, while the guest goes on.
const guestProcessors = "1,maxcpus=2"

// guestDevice is a network device without offloads: with UDP encapsulation,
// large sends of the kernel are lost when the device claims to cut them.
func guestDevice(id string) string { return "virtio-net-pci,netdev=" + id + ",csum=off,gso=off" }

// bootGuest boots a guest with the given arguments of qemu, which may be run
// through another command.
func bootGuest(t testing.TB, through []string, args ...string) *stack {
	t.Helper()
	return bootImage(t, guestImage(t), through, args...)
}

// bootImage is bootGuest for another image.
func bootImage(t testing.TB, dir string, through []string, args ...string) *stack {
	t.Helper()
	version, _ := os.ReadFile(filepath.Join(dir, "version"))
	s := &stack{name: "linux", version: strings.TrimSuffix(string(bytes.TrimSpace(version)), "_amd64.deb"), kernel: true, mtu: 1500}

	all := slices.Concat(through, []string{"qemu-system-x86_64", "-M", "q35", "-accel", "tcg", "-cpu", "max", "-smp", guestProcessors,
		"-m", "768", "-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio",
		"-kernel", filepath.Join(dir, "vmlinuz"), "-initrd", filepath.Join(dir, "initrd")}, args)
	cmd := command(t, all[0], all[1:]...)
	var console lockedBuffer
	shows(t, "the console of the guest", &console)
	cmd.Stdout, cmd.Stderr = &console, &console
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		testenv.Lacking(t, "qemu does not start: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		_, trouble, found := strings.Cut(console.String(), guestReady)
		if t.Failed() {
			t.Logf("console of the guest:\n%s", console.String())
		} else if found && len(trouble) > 80 {
			t.Logf("console of the guest:%s", trouble)
		}
	})
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(console.String(), guestReady) {
		select {
		case <-tick.C:
		case err := <-ended:
			ended <- err
			t.Fatalf("the guest ended: %v\n%s", err, console.String())
		}
		if time.Since(start) > bootTime {
			t.Fatalf("the guest does not boot in %v:\n%s", bootTime, console.String())
		}
	}
	t.Logf("%s booted in %v", s.version, time.Since(start).Round(time.Millisecond))
	return s
}

// guestReady is what the peer in the guest says when it takes commands.
const guestReady = "control ready"
