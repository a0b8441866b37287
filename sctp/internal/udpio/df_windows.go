package udpio

import "golang.org/x/sys/windows"

// Socket options of ws2ipdef.h.
const (
	ipDontFragment = 14
	ipv6DontFrag   = 14
)

func setDontFragment(fd uintptr, on bool) {
	v := 0
	if on {
		v = 1
	}
	_ = windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IP, ipDontFragment, v)
	_ = windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IPV6, ipv6DontFrag, v)
}
