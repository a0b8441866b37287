package tcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/weftstack/weft/cmd/weft/internal/gateway/socks5"
	"github.com/weftstack/weft/sctp/relay/stream"
)

// request is what a gateway asks the one of the destination's site for: dst is the destination, src the
// program that has opened the connection.
//
//	family (4 or 6), destination's address and port, source's address and port
type request struct{ dst, src netip.AddrPort }

func (r request) append(b []byte) []byte {
	family := byte(4)
	if r.dst.Addr().Is6() {
		family = 6
	}
	b = append(b, family)
	for _, a := range [...]netip.AddrPort{r.dst, r.src} {
		if a.Addr().Is6() != r.dst.Addr().Is6() { // of a client of SOCKS5
			a = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
			if family == 6 {
				a = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
			}
		}
		b = append(b, a.Addr().AsSlice()...)
		b = binary.BigEndian.AppendUint16(b, a.Port())
	}
	return b
}

func parseRequest(b []byte) (r request, err error) {
	n := 0
	if len(b) > 0 && b[0] == 4 {
		n = 4
	} else if len(b) > 0 && b[0] == 6 {
		n = 16
	}
	if n == 0 || len(b) != 1+2*(n+2) {
		return r, fmt.Errorf("request of %d bytes makes no sense", len(b))
	}
	addr := func(b []byte) netip.AddrPort {
		ip, _ := netip.AddrFromSlice(b[:n])
		return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[n:]))
	}
	r = request{addr(b[1:]), addr(b[1+n+2:])}
	if r.dst.Addr().Is4In6() {
		return r, fmt.Errorf("destination %v is an IPv4 address in IPv6", r.dst)
	}
	return r, nil
}

// The codes of refusals.
const (
	codeOutside     = stream.CodeUser + iota // the destination is not in a range of the gateway's site
	codeRefused                              // the destination has refused the connection
	codeUnreachable                          // there is no way to it
	codeTimeout                              // it has not answered
	codeFailed                               // another error of connect
	codeSource                               // the source cannot be used
)

// codeOf returns the code for an error of connect.
func codeOf(err error) stream.Code {
	var ne net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return codeRefused
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return codeUnreachable
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &ne) && ne.Timeout():
		return codeTimeout
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EADDRINUSE), errors.Is(err, syscall.EPERM):
		return codeSource
	}
	return codeFailed
}

// replyOf returns the reply of SOCKS5 for an error of connect at the far side.
func replyOf(err error) socks5.Reply {
	var refused *stream.RefusedError
	if errors.As(err, &refused) {
		switch refused.Code {
		case codeRefused:
			return socks5.ConnectionRefused
		case codeUnreachable:
			return socks5.NetworkUnreachable
		case codeTimeout:
			return socks5.TTLExpired
		case codeOutside:
			return socks5.NotAllowed
		}
		return socks5.GeneralFailure
	}
	if errors.Is(err, errOutside) {
		return socks5.NotAllowed
	}
	return socks5.HostUnreachable
}
