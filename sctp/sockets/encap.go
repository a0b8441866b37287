package sockets

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/weftstack/weft/sctp"
)

// Encap says how SCTP packets travel: a positive number is the UDP port of all associations
// (RFC 6951), 9899 for example, which is the registered one.
type Encap int

const (
	// EncapDefault is what [SetDefaultEncap] chose, or the environment variable
	// WEFT_SCTP_ENCAP: "same", "ip" or a UDP port. Otherwise it is EncapSamePort.
	EncapDefault Encap = 0
	// EncapSamePort is UDP, with the number of the SCTP port as UDP port.
	EncapSamePort Encap = -1
	// EncapIP is SCTP directly over IP, by raw sockets; see sctp.TransportConfig.IPAddrs for
	// the privileges that they need, and how they get on with other stacks of the host.
	EncapIP Encap = -2
)

// PPIDOrder says how SndRcvInfo.PPID is given.
type PPIDOrder int

const (
	// PPIDDefault is what [SetDefaultPPIDOrder] chose, or the environment variable
	// WEFT_SCTP_PPID: "network" or "host". Otherwise it is PPIDNetwork.
	PPIDDefault PPIDOrder = iota
	// PPIDNetwork: the caller converts, as with htonl and ntohl.
	PPIDNetwork
	// PPIDHost: the number as it is.
	PPIDHost
)

var (
	defaultEncap atomic.Int64
	defaultPPID  atomic.Int64
	errEnv       error // of environment variables; set before main
)

func init() { errEnv = readEnv(os.Getenv("WEFT_SCTP_ENCAP"), os.Getenv("WEFT_SCTP_PPID")) }

// readEnv sets the defaults by the values of the two environment variables.
func readEnv(encap, ppid string) error {
	switch encap {
	case "", "same":
		defaultEncap.Store(int64(EncapSamePort))
	case "ip":
		defaultEncap.Store(int64(EncapIP))
	default:
		n, err := strconv.ParseUint(encap, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("sctp: WEFT_SCTP_ENCAP=%q: same, ip or a UDP port: %w", encap, sctp.ErrConfig)
		}
		defaultEncap.Store(int64(n))
	}
	switch ppid {
	case "", "network":
		defaultPPID.Store(int64(PPIDNetwork))
	case "host":
		defaultPPID.Store(int64(PPIDHost))
	default:
		return fmt.Errorf("sctp: WEFT_SCTP_PPID=%q: network or host: %w", ppid, sctp.ErrConfig)
	}
	return nil
}

// SetDefaultEncap chooses what EncapDefault is for sockets made from now on. It returns
// sctp.ErrConfig for a value that is none.
func SetDefaultEncap(e Encap) error {
	if err := e.check(); err != nil {
		return err
	}
	if e == EncapDefault {
		e = EncapSamePort
	}
	defaultEncap.Store(int64(e))
	return nil
}

// SetDefaultPPIDOrder chooses what PPIDDefault is for sockets made from now on. It returns
// sctp.ErrConfig for a value that is none.
func SetDefaultPPIDOrder(o PPIDOrder) error {
	switch o {
	case PPIDDefault:
		o = PPIDNetwork
	case PPIDNetwork, PPIDHost:
	default:
		return fmt.Errorf("sctp: PPID order %d: %w", o, sctp.ErrConfig)
	}
	defaultPPID.Store(int64(o))
	return nil
}

func (e Encap) check() error {
	if e < EncapIP || e > 65535 {
		return fmt.Errorf("sctp: encapsulation %d: a UDP port, EncapSamePort or EncapIP: %w", int(e), sctp.ErrConfig)
	}
	return nil
}

// String returns the value of the environment variable that chooses e.
func (e Encap) String() string {
	switch e {
	case EncapDefault:
		return "default"
	case EncapSamePort:
		return "same"
	case EncapIP:
		return "ip"
	}
	return strconv.Itoa(int(e))
}

// udpPort returns the UDP port that belongs to an SCTP port; 0 is no UDP, or a free port.
func (e Encap) udpPort(port uint16) uint16 {
	switch e {
	case EncapSamePort:
		return port
	case EncapIP:
		return 0
	}
	return uint16(e)
}

// swap converts between the PPID of a SndRcvInfo and its value; it is its own inverse.
func (o PPIDOrder) swap(ppid uint32) uint32 {
	if o == PPIDHost {
		return ppid
	}
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], ppid)
	return binary.BigEndian.Uint32(b[:])
}
