package udpio

import (
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/weftstack/weft/sctp/internal/slab"
)

// MaxMessages is the largest number of batches one read returns.
const MaxMessages = 8

// MaxBatchBytes is the largest batch in bytes: the payload of the largest IPv4
// datagram, which bounds what the kernel segments.
const MaxBatchBytes = 65507

// MaxIOVecs is how many parts of a batch may be elsewhere without being copied.
const MaxIOVecs = 64

// MaxSegments is the largest number of datagrams in a batch; Linux before 6.9
// allows no more.
const MaxSegments = 64

// DefaultBuffer is the kernel socket buffer asked for by default.
const DefaultBuffer = 7 << 20

// ErrClosed is returned by operations on a closed Conn.
var ErrClosed = net.ErrClosed

// errTooLong is returned by Write for a batch beyond MaxBatchBytes or MaxSegments.
var errTooLong = errors.New("udpio: batch too long")

// Meta describes a batch.
type Meta struct {
	// Local is the address the batch was sent to, or is to be sent from; the
	// zero Addr leaves the choice to the system.
	Local netip.Addr
	// Remote is the peer.
	Remote netip.AddrPort
	// ECN is the codepoint of the IP headers, two bits.
	ECN uint8
	// DSCP is the Differentiated Services Code Point of datagrams to be sent, six
	// bits; it has an effect on Linux.
	DSCP uint8
	// SegSize is the size of each datagram but the last.
	SegSize int
	// Fragment lets the network fragment the one datagram to be sent; without it
	// a datagram longer than the path MTU is lost.
	Fragment bool
}

// Conn is a socket that reads and writes batches. Write, LocalAddr and
// Close may be called concurrently; Read and TryRead exclude one another
// through the locker given to Read.
type Conn interface {
	// Read waits for datagrams, locks mu and stores up to len(bufs) batches,
	// one per buffer (its B is cut to length) and meta. It returns with mu
	// locked if n > 0, else unlocked and with an error. Only one goroutine
	// may be in Read.
	Read(mu sync.Locker, bufs []*slab.Buf, metas []Meta) (n int, err error)

	// TryRead is Read that does not wait and is called with mu locked, which
	// it stays. It returns 0 if there is nothing to read.
	TryRead(bufs []*slab.Buf, metas []Meta) (n int, err error)

	// Poll is TryRead for a goroutine that calls it in a loop. It may leave out a socket
	// on which datagrams are not expected, so before the goroutine parks Polled(false) or
	// a TryRead that finds nothing has to follow.
	Poll(bufs []*slab.Buf, metas []Meta) (n int, err error)

	// CanPoll reports whether TryRead and Poll read: they return 0 otherwise.
	CanPoll() bool

	// Polled tells the Conn that some goroutine calls TryRead in a loop, so
	// that a parked Read need not be woken for datagrams; Polled(false)
	// restores that, and wakes Read for what has come meanwhile. On Linux each costs a
	// system call or two per socket; they do not nest. Polled(false) reports false if the
	// system refuses: the caller calls it again later, and TryRead meanwhile.
	Polled(on bool) bool

	// Unwatch makes datagrams cheaper for the kernel until Polled(false), which then costs
	// more. The caller polls, and expects to go on: it called Polled(true) a while ago.
	Unwatch()

	// Write sends the batch b. It blocks while the socket buffer is full. An
	// error means that some of the datagrams were not sent.
	Write(b []byte, m *Meta) error

	// WriteGather is Write of a batch with parts in other memory (scatter-gather I/O):
	// holes says where in b each belongs. They may be copied into b.
	WriteGather(b []byte, holes []slab.IOVec, m *Meta) error

	// Segments returns the largest number of datagrams worth giving to Write
	// at once: 1 without segmentation offload or batching.
	Segments() int

	// Direct reports whether the datagrams are IP packets of SCTP's, without UDP: the
	// ports in all addresses are 0 then.
	Direct() bool

	// LocalAddr returns the bound address.
	LocalAddr() netip.AddrPort

	// Info returns facts for statistics.
	Info() Info

	// Close closes the socket and ends Read.
	Close() error
}

// Info tells what a Conn uses and has seen.
type Info struct {
	GSO, GRO bool
	// Drops counts datagrams lost for lack of socket buffer.
	Drops uint64
	// RecvBuffer is the size of the kernel receive buffer, 0 if unknown.
	RecvBuffer int
}

// Options are the parameters of Listen.
type Options struct {
	// Buffer is the kernel socket buffer to ask for; 0 is DefaultBuffer.
	Buffer int
	// NoOffload turns GSO and GRO off.
	NoOffload bool
	// TooBig, if not nil, is called by Read and TryRead, with the locker locked,
	// for each ICMP message that says that a datagram to remote was larger than an
	// MTU, of an IP packet, on its way. quoted is the beginning of the datagram; it
	// must not be kept. Only Linux tells.
	TooBig func(remote netip.AddrPort, mtu int, quoted []byte)
	// NoProtocol is the same for messages that say that remote has no SCTP over IP.
	NoProtocol func(remote netip.AddrPort, quoted []byte)
	// NoPort is the same for messages that say that nothing uses the UDP port of remote.
	NoPort func(remote netip.AddrPort, quoted []byte)
}

func (o Options) buffer() int {
	if o.Buffer > 0 {
		return o.Buffer
	}
	return DefaultBuffer
}
