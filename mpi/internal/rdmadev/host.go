package rdmadev

import (
	"context"
	"net/netip"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// Config says how a device is opened.
type Config struct {
	Host      Host
	Rank      uint32 // of the rank, in its world
	Name      []byte // of the rank among the processes of all jobs: NameLen bytes
	Processes int    // number of processes that the device is made for
	Transport *sctp.Transport
	Relay     *relay.Node // not nil: for processes at other sites
	SCTP      sctp.Config
}

// NameLen is the length of the name of a process, in bytes.
const NameLen = 12

// Host is the rank that has the device, as far as the device asks it. Its methods may be called from
// any goroutine.
type Host interface {
	// Peer returns the process with a handle, and PeerNamed the one with a name, if it is known.
	Peer(handle int32) Peer
	PeerNamed(name []byte) (p Peer, ok bool)
	// Addrs returns the addresses of a process.
	Addrs(p Peer) []netip.AddrPort
	// Process returns the address of a process that is at another site, and reached through gateways.
	Process(p Peer) (relay.Address, bool)
	// Processes returns the number of processes that may connect to the device.
	Processes() int
	// Usable returns why the rank has left the job, or nil.
	Usable() error

	// BeginWait starts a wait for a completion and chooses whether to spin. Spin polls the transport until
	// ready reports true, and reports whether it did. EndWait ends the wait.
	BeginWait() poll.Wait
	Spin(ctx context.Context, w poll.Wait, ready func() bool) bool
	EndWait(w poll.Wait)

	// Written is called when p has written the body of receive id.
	Written(p Peer, id uint64)
}

// Peer is another process. Equal values are the same process.
type Peer interface {
	// Handle returns a number that identifies the process here.
	Handle() int32
	// Failure returns why the process has failed, or nil.
	Failure() error
	// Lost returns the error of operations that fail because the process is gone, which err tells.
	Lost(err error) error
	// Counters returns the counters of operations on its memory.
	Counters() *Counters
}
