package udpio

import "golang.org/x/sys/unix"

func setDontFragment(fd uintptr, on bool) {
	v := 0
	if on {
		v = 1
	}
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_DONTFRAG, v)
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, v)
}
