package udpio

import (
	"bytes"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weftstack/weft/internal/testenv"
)

// A kernel that refuses a batch gets single datagrams from then on.
func TestFallsBackWhenSegmentationIsRefused(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	c := a.Conn.(*conn)
	if !c.gso.Load() {
		t.Skip("no segmentation offload here")
	}
	// The kernel segments no datagrams that go without checksum: EINVAL.
	if err := unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
		t.Skipf("UDP checksums cannot be turned off: %v", err)
	}
	msg := pattern(4000)
	for range 2 {
		if err := a.Write(msg, &Meta{Remote: b.LocalAddr(), SegSize: 1000}); err != nil {
			t.Fatal(err)
		}
		got, _ := b.datagrams(4)
		if !bytes.Equal(bytes.Join(got, nil), msg) {
			t.Error("datagrams sent one by one came out different")
		}
		if a.Info().GSO {
			t.Error("still segmenting after a refusal")
		}
	}
}

// smallLoopback moves the test, from here on, to a network namespace with nothing
// but a loopback interface of that MTU. The usual one takes the largest datagram.
func smallLoopback(t *testing.T, mtu uint32) {
	t.Helper()
	runtime.LockOSThread() // for good: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		testenv.Lacking(t, "a network namespace cannot be made: %v", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint32(mtu)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFMTU, lo); err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatal(err)
	}
}

// A datagram beyond the MTU is refused too, but that is no fault of offload.
func TestTooLargeSegmentsKeepOffload(t *testing.T) {
	const mtu = 1500
	smallLoopback(t, mtu)
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	if !a.Info().GSO {
		t.Skip("no segmentation offload here")
	}
	if got := RouteMTU(b.LocalAddr()); got != mtu {
		t.Errorf("the MTU of the route is %d, want %d", got, mtu)
	}
	err := a.Write(pattern(mtu+1000), &Meta{Remote: b.LocalAddr(), SegSize: mtu})
	if t.Log(err); err == nil {
		t.Error("a datagram beyond the MTU was sent")
	}
	if !a.Info().GSO {
		t.Error("offload was given up because of the MTU")
	}
}

func TestEqualBatchesAvoidSegmentationOnBrokenKernels(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	c := a.Conn.(*conn)
	if !c.gso.Load() || !b.Info().GRO {
		t.Skip("no offload here")
	}
	c.uneven = true
	m := Meta{Remote: b.LocalAddr(), SegSize: 1000}
	for _, tc := range []struct{ size, seg int }{
		{3000, 1000}, // equal lengths: three datagrams of their own
		{2500, 1000}, // shorter tail: one batch
	} {
		if err := a.Write(pattern(tc.size), &m); err != nil {
			t.Fatal(err)
		}
		n := 0
		for n < tc.size {
			k, err := b.Read(&b.mu, b.bufs, b.metas)
			if err != nil {
				t.Fatal(err)
			}
			for i := range k {
				n += len(b.bufs[i].B)
				whole := len(b.bufs[i].B) == tc.size
				if want := tc.size%tc.seg != 0; whole != want {
					t.Errorf("batch of %d came as one super-packet: %v, want %v", tc.size, whole, want)
				}
			}
			b.mu.Unlock()
		}
	}
}

func TestFragmentLiftsDF(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	c := a.Conn.(*conn)
	df := func() bool {
		v, err := unix.GetsockoptInt(c.fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER)
		if err != nil {
			t.Fatal(err)
		}
		return v == unix.IP_PMTUDISC_PROBE
	}
	if !df() {
		t.Error("DF is not set on a new socket")
	}
	c.setDF(false)
	if df() {
		t.Error("DF is still set")
	}
	c.setDF(true)
	if err := a.Write(pattern(60000), &Meta{Remote: b.LocalAddr(), Fragment: true}); err != nil {
		t.Fatal(err)
	}
	if !df() {
		t.Error("DF was not set again")
	}
	if got, _ := b.datagrams(1); len(got[0]) != 60000 {
		t.Errorf("got %d bytes", len(got[0]))
	}
}
