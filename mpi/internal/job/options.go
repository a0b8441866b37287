package job

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/sctp"
)

// Names of transports.
const (
	TransportHybrid = "hybrid" // messages over SCTP, one-sided operations by iWARP on the same UDP socket
	TransportSCTP   = "sctp"
	TransportTCP    = "tcp"
	TransportInproc = "inproc" // between ranks of one process
)

// SpinAuto as Options.Spin selects the default.
const SpinAuto = -1

// Options are what a program or its launcher chooses of how a process takes part in a job.
type Options struct {
	Transport      string
	Eager          int // longest message that is sent without asking, in bytes
	Streams        int
	Unexpected     int // memory for messages that came before their receives, in bytes
	Rendezvous     p2p.Rendezvous
	Spin           time.Duration // how long waits poll, or SpinAuto
	Shared         bool          // memory with ranks of the same host
	Capture        string        // file for all datagrams sent; empty: none
	Launcher       string        // where it is, as host:port, if it was reached over TCP
	Addrs          []netip.AddrPort
	Tolerant       bool // the job survives failed ranks
	FailureTimeout time.Duration
	DefaultTimeout bool                                      // FailureTimeout was not set by an option
	Local          bool                                      // the ranks are goroutines of this process
	SCTP           sctp.Config                               // of the associations
	PacketConns    func(rank int) ([]sctp.PacketConn, error) // instead of sockets; nil: sockets
	Log            *slog.Logger                              // nil: nothing is logged
	HostOf         func(rank int) string                     // of tests: instead of hostID
	SiteOf         func(rank int) string                     // names the site of a rank; nil: not known
	Place          *sites.Process                            // of this process, if there are gateways
	SpawnsNone     error                                     // why Spawn starts nothing; nil: it does

	Reported func(by, about int, state pmi.PeerState) // of tests: instead of Job.report
}

// Addr returns the first address to listen at, of Addrs or of this host.
func (o *Options) Addr() netip.AddrPort {
	if len(o.Addrs) > 0 {
		return o.Addrs[0]
	}
	return netip.AddrPortFrom(hostAddr(o.Launcher), 0)
}

// zeroChecksum reports whether packets that do not leave the host have no checksum. They have one
// with PacketConns, because the connections may damage packets, and with Capture.
func (o *Options) zeroChecksum() bool {
	return o.PacketConns == nil && o.Capture == ""
}

// Shares reports whether ranks of one host share memory. With Capture they do not, so that all
// messages are captured.
func (o *Options) Shares() bool {
	return o.Shared && o.Transport == TransportHybrid && o.PacketConns == nil && o.Capture == ""
}
