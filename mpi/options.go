package mpi

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/weftstack/weft/mpi/internal/job"
)

// Names of transports, for WithTransport and WEFT_TRANSPORT.
const (
	// TransportHybrid sends messages over SCTP and performs one-sided operations by iWARP on the
	// same UDP socket. It is the default of Init.
	TransportHybrid = job.TransportHybrid // "hybrid"
	// TransportSCTP sends everything as messages over SCTP.
	TransportSCTP = job.TransportSCTP // "sctp"
	// TransportTCP uses one TCP connection per pair of ranks.
	TransportTCP = job.TransportTCP // "tcp"
	// TransportInproc passes messages between ranks of one process in memory. It is the default of
	// RunLocal, and not available to Init.
	TransportInproc = job.TransportInproc // "inproc"
)

// Defaults and limits of the options.
const (
	// DefaultEager is the default of WithEager.
	DefaultEager = 256 << 10
	// MaxEager bounds WithEager.
	MaxEager = 1 << 30
	// DefaultStreams is the default of WithStreams.
	DefaultStreams = 10
	// MaxStreams bounds WithStreams: each takes two SCTP streams, and control messages one more.
	MaxStreams = 32767
	// DefaultUnexpected is the default of WithUnexpected.
	DefaultUnexpected = 64 << 20
	// MaxRanks bounds the ranks of a job.
	MaxRanks = 1 << 16
)

// defaultEager is DefaultEager, except in tests.
var defaultEager = DefaultEager

// An Option changes how Init and RunLocal set up a job. All ranks of a job
// must use the same transport and number of streams.
type Option func(*options) error

type options struct {
	job.Options
	profiler  Profiler
	tools     []tool // made for environment variables
	toolFiles []*os.File
	names     string             // name service, as ADDRESS/TOKEN
	programs  map[string]Program // for Spawn in RunLocal
	gateways  *GatewayOptions    // see WithGateways
}

// WithTransport selects the transport by name; an unknown one gives ErrOption.
func WithTransport(name string) Option {
	return func(o *options) error {
		switch name {
		case TransportHybrid, TransportSCTP, TransportTCP, TransportInproc:
			o.Transport = name
			return nil
		}
		return fmt.Errorf("%w: transport %q: want hybrid, sctp, tcp or inproc", ErrOption, name)
	}
}

// WithEager sets the eager limit: the length in bytes up to which messages are sent at once. Longer
// ones use a rendezvous: see [WithRendezvous]. It may differ between ranks.
func WithEager(bytes int) Option {
	return func(o *options) error {
		if bytes < 0 || bytes > MaxEager {
			return fmt.Errorf("%w: eager limit %d", ErrOption, bytes)
		}
		o.Eager = bytes
		return nil
	}
}

// WithStreams sets over how many streams of an association the messages of different tags and
// communicators are spread. Control messages use one more, and the bodies of rendezvous messages as
// many again.
func WithStreams(n int) Option {
	return func(o *options) error {
		if n < 1 || n > MaxStreams {
			return fmt.Errorf("%w: %d streams", ErrOption, n)
		}
		o.Streams = n
		return nil
	}
}

// WithUnexpected bounds the memory of a rank for unexpected messages, which arrive before their
// receives. Each peer has an equal share of it as credit; a peer without credit uses a rendezvous
// for its messages.
func WithUnexpected(bytes int) Option {
	return func(o *options) error {
		if bytes < 0 {
			return fmt.Errorf("%w: %d bytes for unexpected messages", ErrOption, bytes)
		}
		o.Unexpected = bytes
		return nil
	}
}

// WithSpin bounds how long a waiting goroutine polls the transport without a result before it
// parks; 0 makes it park at once. The default is 5 ms. If there are more ranks on this host than
// processors that they may run on, the processor is yielded to other processes after each poll; ranks of one
// process, by [RunLocal], do so if they all share memory, and otherwise park at once.
func WithSpin(d time.Duration) Option {
	return func(o *options) error {
		if d < 0 {
			return fmt.Errorf("%w: spin of %v", ErrOption, d)
		}
		o.Spin = d
		return nil
	}
}

// WithAddrs sets the local UDP addresses (TCP: the first one) to bind. Port 0 selects a free port.
// By default peers get all addresses of interfaces that are up.
func WithAddrs(addrs ...netip.AddrPort) Option {
	return func(o *options) error {
		o.Addrs = addrs
		return nil
	}
}

// WithCapture appends every UDP datagram that is sent to a file, in the record format that the
// launcher merges into a packet capture: see WEFT_CAPTURE. All packets then have a checksum, which
// ranks on one host otherwise omit.
func WithCapture(file string) Option {
	return func(o *options) error {
		o.Capture = file
		return nil
	}
}

func buildOptions(transport string, opts []Option) (*options, error) {
	o := &options{Options: job.Options{
		Transport: transport, Eager: defaultEager, Streams: DefaultStreams,
		Unexpected: DefaultUnexpected, Spin: job.SpinAuto,
	}}
	for _, f := range opts {
		if err := f(o); err != nil {
			return nil, err
		}
	}
	switch {
	case o.FailureTimeout != 0:
	case o.Tolerant:
		o.FailureTimeout = DefaultSilence
	default:
		o.FailureTimeout, o.DefaultTimeout = PatientSilence, true
	}
	return o, nil
}

// parseSize reads a number of bytes, with an optional suffix K, M or G (of 1024).
func parseSize(s string) (int, error) {
	shift := 0
	switch {
	case strings.HasSuffix(s, "K"):
		shift = 10
	case strings.HasSuffix(s, "M"):
		shift = 20
	case strings.HasSuffix(s, "G"):
		shift = 30
	}
	if shift > 0 {
		s = s[:len(s)-1]
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0, err
	}
	return int(n) << shift, nil
}

// parseAddrPort reads "ip:port" or "ip", which means port 0.
func parseAddrPort(s string) (netip.AddrPort, error) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap, nil
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return netip.AddrPortFrom(a, 0), err
}
