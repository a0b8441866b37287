// Package sctp has the module path and the names of free5gc's fork of the Go binding of the Linux
// SCTP socket, on the user-space stack of weft: a program that has
//
//	replace github.com/free5gc/sctp => PATH/interop/free5gc
//
// in its go.mod, an AMF or N3IWF for example, runs on it unchanged. See package
// github.com/weftstack/weft/sctp/sockets for all that the names mean. PPIDs are in network byte
// order, as in the fork.
//
// A MaxSeg other than SCTP_DEFAULT_MAXSEG is refused with errors.ErrUnsupported: packets are as
// large as the path takes. NewSCTPConn, SCTPBind, SCTPConnect, Getsockopt, Setsockopt and the
// numbers and structures of socket options do not exist, because there are no file descriptors.
package sctp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/weftstack/weft/sctp/sockets"
)

// These types are those of package sockets.
type (
	AssocInfo            = sockets.AssocInfo
	InitMsg              = sockets.InitMsg
	NotificationHeader   = sockets.NotificationHeader
	RtoInfo              = sockets.RtoInfo
	SCTPAddr             = sockets.SCTPAddr
	SCTPAssocID          = sockets.SCTPAssocID
	SCTPNotificationType = sockets.SCTPNotificationType
	SCTPState            = sockets.SCTPState
	SndRcvInfo           = sockets.SndRcvInfo
)

// SCTPConn is a [sockets.SCTPConn] whose SCTPRead returns notifications beside messages.
type SCTPConn struct{ *sockets.SCTPConn }

// SCTPRead reads a message, or a notification, which is nil for a message. One that this package
// does not know is skipped. See [sockets.SCTPConn.SCTPRead].
func (c *SCTPConn) SCTPRead(b []byte) (int, *SndRcvInfo, Notification, error) {
	var info SndRcvInfo
	for {
		n, flags, err := c.ReadMsg(b, &info)
		switch {
		case err != nil:
			return 0, nil, nil, err
		case flags&sockets.MSG_NOTIFICATION != 0:
			if note := parse(b[:n]); note != nil {
				return n, nil, note, nil
			}
			continue
		}
		if events, err := c.SubscribedEvents(); err == nil && events&SCTP_EVENT_DATA_IO != 0 {
			i := info
			return n, &i, nil, nil
		}
		return n, nil, nil, nil
	}
}

// Read is SCTPRead of a message.
func (c *SCTPConn) Read(b []byte) (int, error) {
	for {
		n, _, note, err := c.SCTPRead(b)
		if note == nil || err != nil {
			return n, err
		}
	}
}

// Close is [sockets.SCTPConn.Close], also of a nil SCTPConn; the error after the first call is
// syscall.EBADF, as programs compare it.
func (c *SCTPConn) Close() error {
	if c == nil {
		return syscall.EBADF
	}
	err := c.SCTPConn.Close()
	if errors.Is(err, syscall.EBADF) {
		return syscall.EBADF
	}
	return err
}

// PeelOff is [sockets.SCTPConn.PeelOff].
func (c *SCTPConn) PeelOff(id int) (*SCTPConn, error) {
	p, err := c.SCTPConn.PeelOff(id)
	if err != nil {
		return nil, err
	}
	return &SCTPConn{p}, nil
}

// SCTPListener is a [sockets.SCTPListener] whose Accept has a timeout.
type SCTPListener struct {
	*sockets.SCTPListener
	stopped atomic.Bool
}

// AcceptSCTP waits for the next association. As in the fork timeout, in milliseconds, is how often
// the wait looks whether the listener was closed, which it is told of here at once: it does not
// end the wait. After Close it returns nil and no error.
func (l *SCTPListener) AcceptSCTP(timeout int) (*SCTPConn, error) {
	c, err := l.SCTPListener.AcceptSCTP()
	if errors.Is(err, net.ErrClosed) {
		l.stopped.Store(true)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &SCTPConn{c}, nil
}

// Accept is AcceptSCTP. After Close it returns nil and no error.
func (l *SCTPListener) Accept(timeout int) (net.Conn, error) {
	c, err := l.AcceptSCTP(timeout)
	if c == nil {
		return nil, err
	}
	return c, nil
}

// IsStopped reports whether AcceptSCTP has noticed that the listener was closed.
func (l *SCTPListener) IsStopped() bool { return l.stopped.Load() }

// SocketConfig holds the options of a socket.
type SocketConfig struct {
	Control   func(network, address string, c syscall.RawConn) error
	InitMsg   InitMsg
	RtoInfo   *RtoInfo
	AssocInfo *AssocInfo
	MaxSeg    int
}

func (cfg *SocketConfig) config() (*sockets.SocketConfig, error) {
	if cfg.MaxSeg != SCTP_DEFAULT_MAXSEG {
		return nil, fmt.Errorf("sctp: MaxSeg %d: %w", cfg.MaxSeg, errors.ErrUnsupported)
	}
	c := &sockets.SocketConfig{Control: cfg.Control, InitMsg: cfg.InitMsg, RtoInfo: cfg.RtoInfo, AssocInfo: cfg.AssocInfo}
	if os.Getenv("WEFT_SCTP_PPID") == "" {
		c.PPID = sockets.PPIDNetwork
	}
	return c, nil
}

// Listen is [sockets.SocketConfig.Listen].
func (cfg *SocketConfig) Listen(network string, laddr *SCTPAddr) (*SCTPListener, error) {
	c, err := cfg.config()
	if err != nil {
		return nil, err
	}
	l, err := c.Listen(network, laddr)
	if err != nil {
		return nil, err
	}
	return &SCTPListener{SCTPListener: l}, nil
}

// Dial is [sockets.SocketConfig.Dial].
func (cfg *SocketConfig) Dial(network string, laddr, raddr *SCTPAddr) (*SCTPConn, error) {
	c, err := cfg.config()
	if err != nil {
		return nil, err
	}
	conn, err := c.Dial(network, laddr, raddr)
	if err != nil {
		return nil, err
	}
	return &SCTPConn{conn}, nil
}

// DialSCTP opens an association with up to 65,535 streams.
func DialSCTP(network string, laddr, raddr *SCTPAddr) (*SCTPConn, error) {
	return DialSCTPExt(network, laddr, raddr, InitMsg{NumOstreams: SCTP_MAX_STREAM}, nil, nil, SCTP_DEFAULT_MAXSEG)
}

// DialSCTPExt is [SocketConfig.Dial] with options.
func DialSCTPExt(network string, laddr, raddr *SCTPAddr, options InitMsg, rtoInfo *RtoInfo, assocInfo *AssocInfo,
	maxSeg int,
) (*SCTPConn, error) {
	return (&SocketConfig{InitMsg: options, RtoInfo: rtoInfo, AssocInfo: assocInfo, MaxSeg: maxSeg}).Dial(network, laddr, raddr)
}

// ListenSCTP listens with up to 65,535 streams.
func ListenSCTP(network string, laddr *SCTPAddr) (*SCTPListener, error) {
	return ListenSCTPExt(network, laddr, InitMsg{NumOstreams: SCTP_MAX_STREAM}, nil, nil, SCTP_DEFAULT_MAXSEG)
}

// ListenSCTPExt is [SocketConfig.Listen] with options.
func ListenSCTPExt(network string, laddr *SCTPAddr, options InitMsg, rtoInfo *RtoInfo, assocInfo *AssocInfo,
	maxSeg int,
) (*SCTPListener, error) {
	return (&SocketConfig{InitMsg: options, RtoInfo: rtoInfo, AssocInfo: assocInfo, MaxSeg: maxSeg}).Listen(network, laddr)
}

// ResolveSCTPAddr is [sockets.ResolveSCTPAddr].
func ResolveSCTPAddr(network, addrs string) (*SCTPAddr, error) {
	return sockets.ResolveSCTPAddr(network, addrs)
}

var _ net.Conn = (*SCTPConn)(nil)
