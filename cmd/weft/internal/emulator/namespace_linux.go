package emulator

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// netnsDir is where `ip netns` looks for namespaces by name.
const netnsDir = "/run/netns"

// emHost is an emulated host: a network namespace, and a thread that lives in
// it to start processes there.
type emHost struct {
	name  string
	tuns  []int // by network
	udp   bool  // the interfaces take GSO batches of datagrams
	calls chan func()
}

// newHost makes a namespace with one TUN interface for each network that it is in.
func newHost(n *planNode, o *options) (*emHost, error) {
	h := &emHost{name: fmt.Sprintf("weft-%d-%s", os.Getpid(), n.name), calls: make(chan func())}
	made := make(chan error)
	go func() {
		// The thread ends with the goroutine: nothing else must run in this
		// namespace, and a parent-death signal waits for the thread's end.
		runtime.LockOSThread()
		err := h.enter(n, o)
		made <- err
		if err != nil {
			return
		}
		for call := range h.calls {
			call()
		}
	}()
	if err := <-made; err != nil {
		h.close()
		return nil, fmt.Errorf("host %s: %w", n.name, err)
	}
	return h, nil
}

// enter moves the calling thread into a new namespace and furnishes it.
func (h *emHost) enter(n *planNode, o *options) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := h.publish(); err != nil {
		return err
	}
	if err := setInterface("lo", netip.Prefix{}, 0); err != nil {
		return err
	}
	for i, f := range n.ifaces {
		name := "weft" + strconv.Itoa(i)
		fd, udp, err := openTUN(name, o.offload)
		if err != nil {
			return err
		}
		h.udp = udp
		h.tuns = append(h.tuns, fd)
		if err := setInterface(name, f.prefix(), f.mtu); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if o.cc != "" {
			if err := setCongestionControl(name, f.prefix(), o.cc); err != nil {
				return err
			}
		}
	}
	return nil
}

// publish gives the namespace a name for `ip netns exec`.
func (h *emHost) publish() error {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(netnsDir, h.name)
	if err := os.WriteFile(path, nil, 0o444); err != nil {
		return err
	}
	self := fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())
	return os.NewSyscallError("mount", unix.Mount(self, path, "none", unix.MS_BIND, ""))
}

// do runs f on the host's thread.
func (h *emHost) do(f func() error) error {
	done := make(chan error)
	h.calls <- func() { done <- f() }
	return <-done
}

// close takes the host down.
func (h *emHost) close() {
	close(h.calls)
	for _, fd := range h.tuns {
		unix.Close(fd)
	}
	path := filepath.Join(netnsDir, h.name)
	unix.Unmount(path, unix.MNT_DETACH)
	os.Remove(path)
}

// openTUN makes a TUN interface in this thread's namespace. Reads and writes of
// the descriptor move one frame each, as package netem describes them, and do not
// block. With offload the host leaves checksums and cutting batches up to its reader,
// as far as the kernel can: udp says whether GSO batches of datagrams as well, from Linux
// 6.2 on.
func openTUN(name string, offload bool) (fd int, udp bool, err error) {
	fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, false, &os.PathError{Op: "open", Path: "/dev/net/tun", Err: err}
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		unix.Close(fd)
		return -1, false, err
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		unix.Close(fd)
		return -1, false, os.NewSyscallError("TUNSETIFF", err)
	}
	if !offload {
		return fd, false, nil
	}
	const tcp = unix.TUN_F_CSUM | unix.TUN_F_TSO4
	if unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, tcp|unix.TUN_F_USO4|unix.TUN_F_USO6) == nil {
		return fd, true, nil
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, tcp); err != nil {
		unix.Close(fd)
		return -1, false, os.NewSyscallError("TUNSETOFFLOAD", err)
	}
	return fd, false, nil
}

// setInterface brings an interface up, with an address and an MTU where given.
func setInterface(name string, addr netip.Prefix, mtu int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	if addr.IsValid() {
		for _, set := range []struct {
			call string
			code uint
			ip   [4]byte
		}{{"SIOCSIFADDR", unix.SIOCSIFADDR, addr.Addr().As4()}, {"SIOCSIFNETMASK", unix.SIOCSIFNETMASK, [4]byte(net.CIDRMask(addr.Bits(), 32))}} {
			if err := ioctlAddr(fd, set.code, name, set.ip); err != nil {
				return os.NewSyscallError(set.call, err)
			}
		}
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if mtu > 0 {
		req.SetUint32(uint32(mtu))
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFMTU, req); err != nil {
			return os.NewSyscallError("SIOCSIFMTU", err)
		}
		req.SetUint32(txQueueLen)
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFTXQLEN, req); err != nil {
			return os.NewSyscallError("SIOCSIFTXQLEN", err)
		}
	}
	if req, err = unix.NewIfreq(name); err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return os.NewSyscallError("SIOCSIFFLAGS", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req))
}

// setCongestionControl has TCP use an algorithm on the route into a network: a
// namespace may not choose its default, but a route may name any.
func setCongestionControl(dev string, addr netip.Prefix, cc string) error {
	cmd := exec.Command("ip", "route", "replace", addr.Masked().String(), "dev", dev, "src", addr.Addr().String(), "congctl", cc)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("congestion control %q: %w: %s", cc, err, bytes.TrimSpace(said))
	}
	return nil
}

// txQueueLen is how many packets wait in the kernel for the emulator to read
// them: more than any queue of the model, so that only the model drops.
const txQueueLen = 20000

// ioctlAddr makes an ioctl whose argument holds an IPv4 address.
func ioctlAddr(fd int, code uint, name string, ip [4]byte) error {
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := req.SetInet4Addr(ip[:]); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, code, req)
}

// urgent asks for what a thread that keeps time needs: the smallest timer slack
// and, where allowed, precedence over the programs that it serves.
func urgent() error {
	err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	const schedFIFO = 1
	param := struct{ priority int32 }{10}
	if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, 0, schedFIFO,
		uintptr(unsafe.Pointer(&param))); errno != 0 {
		err = errors.Join(err, unix.Setpriority(unix.PRIO_PROCESS, 0, -20))
	}
	return err
}
