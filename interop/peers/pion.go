package main

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

// Parameters of pion/sctp: with the default socket buffers it collapses into
// timeouts on loopback. Its MTU is that of the SCTP packet.
const (
	pionBuffer = 4 << 20
	pionMTU    = 1500 - 28
)

// udpPair is a UDP socket that talks to whoever sent to it first.
type udpPair struct {
	*net.UDPConn
	peer atomic.Pointer[netip.AddrPort]
}

func (c *udpPair) Read(p []byte) (int, error) {
	n, from, err := c.ReadFromUDPAddrPort(p)
	if err == nil && c.peer.Load() == nil {
		c.peer.Store(&from)
	}
	return n, err
}

func (c *udpPair) Write(p []byte) (int, error) {
	to := c.peer.Load()
	if to == nil {
		return 0, errors.New("nobody to send to yet")
	}
	return c.WriteToUDPAddrPort(p, *to)
}

// pionOptions returns the parameters for either side.
func pionOptions[T any](c net.Conn) []T {
	var all []T
	for _, o := range []sctp.AssociationOption{
		sctp.WithNetConn(c), sctp.WithLoggerFactory(logging.NewDefaultLoggerFactory()), sctp.WithBlockWrite(true), sctp.WithMTU(pionMTU),
		sctp.WithMaxReceiveBufferSize(pionBuffer), sctp.WithMaxMessageSize(1 << 20),
	} {
		all = append(all, o.(T))
	}
	return all
}

func pionStack() stack {
	return stack{
		listen: func() (string, func() (endpoint, error), error) {
			c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				return "", nil, err
			}
			c.SetReadBuffer(pionBuffer)
			c.SetWriteBuffer(pionBuffer)
			return c.LocalAddr().String(), func() (endpoint, error) {
				a, err := sctp.ServerWithOptions(pionOptions[sctp.ServerOption](&udpPair{UDPConn: c})...)
				if err != nil {
					return nil, err
				}
				s, err := a.AcceptStream()
				return streamEnd{s}, err
			}, nil
		},
		dial: func(addr string) (endpoint, error) {
			c, err := net.Dial("udp4", addr)
			if err != nil {
				return nil, err
			}
			c.(*net.UDPConn).SetReadBuffer(pionBuffer)
			c.(*net.UDPConn).SetWriteBuffer(pionBuffer)
			a, err := sctp.ClientWithOptions(pionOptions[sctp.ClientOption](c)...)
			if err != nil {
				return nil, err
			}
			s, err := a.OpenStream(1, sctp.PayloadTypeWebRTCBinary)
			return streamEnd{s}, err
		},
	}
}
