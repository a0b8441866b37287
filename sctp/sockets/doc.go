// Package sockets runs programs that were written for kernel SCTP on the user-space stack of
// package sctp. Its names are those of the common Go binding of the Linux socket,
// github.com/ishidawataru/sctp: an NGAP, S1AP, Diameter or M3UA program changes its import line
//
//	import sctp "github.com/weftstack/weft/sctp/sockets"
//
// and runs without the kernel's module, without privileges, and on macOS and Windows.
//
// # How packets travel
//
// Such a program knows IP addresses and an SCTP port. [Encap] says what is below: UDP with the
// number of the SCTP port as UDP port (EncapSamePort, the default), UDP with one port for all
// (9899 is that of RFC 6951), or IP, which needs raw sockets and meets kernels as they are
// (EncapIP). [SocketConfig].Encap chooses for one socket, [SetDefaultEncap] or the environment
// variable WEFT_SCTP_ENCAP ("same", "ip" or a UDP port) for the process. Both ends have to
// agree.
//
// The sockets of a process with the same addresses and UDP port share them: several listeners
// and their associations are on one transport, which ends with the last of them. Sockets that
// open associations from no particular port share a free UDP port.
//
// # Payload protocol identifiers
//
// The binding had callers convert SndRcvInfo.PPID to network byte order themselves until 2025,
// its forks still do, and its later versions convert. [PPIDOrder] says which it is: network
// order (PPIDNetwork) by default, so that 0x3c000000 on a little-endian machine is 60, that of
// NGAP. [SocketConfig].PPID, [SetDefaultPPIDOrder] and WEFT_SCTP_PPID ("network" or "host")
// choose.
//
// # Two styles
//
// [DialSCTP] and [ListenSCTP] are the one-to-one style of RFC 6458, Section 4: an [SCTPConn] is
// an association and a net.Conn that keeps message boundaries. [ListenOneToMany] is the
// one-to-many style of Section 3: one SCTPConn for all associations of a port, told apart by
// SndRcvInfo.AssocID; [SCTPConn.PeelOff] makes one of them a socket of its own.
//
// # Notifications
//
// Those that [SCTPConn.SubscribeEvents] asks for come between the messages, in the layout of
// RFC 6458, Section 6.1, and of Linux: to the NotificationHandler of the socket if there is
// one, otherwise as what [SCTPConn.SCTPRead] returns, with a nil SndRcvInfo. [SCTPConn.ReadMsg]
// tells them by the flag MSG_NOTIFICATION. [ParseNotification] makes typed values of them.
//
// # What differs from the kernel
//
// There are no file descriptors: NewSCTPConn, Getsockopt and Setsockopt do not exist, and the
// raw connection that SocketConfig.Control is given refuses its methods with
// errors.ErrUnsupported. Deadlines work. RTO, SACK and association parameters and the sizes of
// buffers are chosen by the SocketConfig, before an association is opened. The page
// docs/kernel-sctp.md of the repository lists the names that programs use.
package sockets
