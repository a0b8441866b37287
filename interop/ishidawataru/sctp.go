// Package sctp has the module path and the names of the Go binding of the Linux SCTP socket, on
// the user-space stack of weft: a program that has
//
//	replace github.com/ishidawataru/sctp => PATH/interop/ishidawataru
//
// in its go.mod runs on it unchanged, and so do the libraries that it uses. See package
// github.com/weftstack/weft/sctp/sockets for all that the names mean.
//
// PPIDs are in host byte order, as in the binding since May 2025, unless the environment variable
// WEFT_SCTP_PPID or [sockets.SetDefaultPPIDOrder] says otherwise: programs for the binding before
// that, which convert themselves, need "network".
//
// NewSCTPConn, FileListener, SCTPBind, SCTPConnect, Getsockopt, Setsockopt and the numbers and
// structures of socket options do not exist, because there are no file descriptors: programs that
// use them do not compile.
package sctp

import (
	"os"

	"github.com/weftstack/weft/sctp/sockets"
)

func init() {
	if os.Getenv("WEFT_SCTP_PPID") == "" {
		sockets.SetDefaultPPIDOrder(sockets.PPIDHost)
	}
}

// The types are those of package sockets.
type (
	InitMsg                   = sockets.InitMsg
	NotificationHandler       = sockets.NotificationHandler
	NotificationHeader        = sockets.NotificationHeader
	PeerAddrinfo              = sockets.PeerAddrinfo
	PeerState                 = sockets.PeerState
	SCTPAddr                  = sockets.SCTPAddr
	SCTPAssocID               = sockets.SCTPAssocID
	SCTPConn                  = sockets.SCTPConn
	SCTPListener              = sockets.SCTPListener
	SCTPNotificationType      = sockets.SCTPNotificationType
	SCTPSndRcvInfoWrappedConn = sockets.SCTPSndRcvInfoWrappedConn
	SCTPState                 = sockets.SCTPState
	SackTimer                 = sockets.SackTimer
	SndRcvInfo                = sockets.SndRcvInfo
	SocketConfig              = sockets.SocketConfig
	Status                    = sockets.Status
	StatusState               = sockets.StatusState
)

// DialSCTP is [sockets.DialSCTP].
func DialSCTP(network string, laddr, raddr *SCTPAddr) (*SCTPConn, error) {
	return sockets.DialSCTP(network, laddr, raddr)
}

// DialSCTPExt is [sockets.DialSCTPExt].
func DialSCTPExt(network string, laddr, raddr *SCTPAddr, options InitMsg) (*SCTPConn, error) {
	return sockets.DialSCTPExt(network, laddr, raddr, options)
}

// ListenSCTP is [sockets.ListenSCTP].
func ListenSCTP(network string, laddr *SCTPAddr) (*SCTPListener, error) {
	return sockets.ListenSCTP(network, laddr)
}

// ListenSCTPExt is [sockets.ListenSCTPExt].
func ListenSCTPExt(network string, laddr *SCTPAddr, options InitMsg) (*SCTPListener, error) {
	return sockets.ListenSCTPExt(network, laddr, options)
}

// NewSCTPSndRcvInfoWrappedConn is [sockets.NewSCTPSndRcvInfoWrappedConn].
func NewSCTPSndRcvInfoWrappedConn(conn *SCTPConn) *SCTPSndRcvInfoWrappedConn {
	return sockets.NewSCTPSndRcvInfoWrappedConn(conn)
}

// ResolveSCTPAddr is [sockets.ResolveSCTPAddr].
func ResolveSCTPAddr(network, addrs string) (*SCTPAddr, error) {
	return sockets.ResolveSCTPAddr(network, addrs)
}
