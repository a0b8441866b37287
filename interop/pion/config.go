package sctp

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/pion/logging"

	weft "github.com/weftstack/weft/sctp"
)

const (
	defaultMTU            = 1191
	defaultReceiveBuffer  = 1 << 20
	defaultMaxMessageSize = 64 << 10

	// numStreams is how many streams there may be each way (RFC 8831, Section 6.2).
	numStreams = 65535
	// minMTU is the smallest MTU in bytes that the options take: a packet with room for one
	// I-DATA chunk with 4 bytes.
	minMTU = 36
	// maxMTU is the largest MTU in bytes that has an effect: what a UDP datagram carries.
	maxMTU = (65535 - 20 - 8) &^ 3
	// noMaxRetransmits is a number of retransmissions that is never reached: while the connection
	// lives, the association does, as users of WebRTC expect across an ICE restart.
	noMaxRetransmits = 1 << 20
	// maxInitRetransmits is Max.Init.Retransmits (RFC 9260, Section 16).
	maxInitRetransmits = 8
)

var (
	errOption  = errors.New("sctp: bad option")
	errNetConn = fmt.Errorf("%w: no NetConn", errOption)
)

// Config holds the parameters of an association. It is an option itself.
type Config struct {
	// LoggerFactory makes the logger of the association.
	LoggerFactory logging.LoggerFactory
	// Name goes in front of log lines and of errors.
	Name string
	// NetConn carries the packets. The association closes it.
	NetConn net.Conn
	// BlockWrite has writes wait while the send buffer is full. Otherwise they never wait, and
	// it is the program that has to look at BufferedAmount.
	BlockWrite bool
	// EnableZeroChecksum leaves the checksum out if the peer agrees (RFC 9653). It is for
	// connections that protect packets themselves, such as DTLS.
	EnableZeroChecksum bool
	// MTU is the size of the largest SCTP packet in bytes (default 1191). With less than 548,
	// it is 548.
	MTU uint32

	// MaxReceiveBufferSize bounds the bytes that wait to be read (default 1 MiB).
	MaxReceiveBufferSize uint32
	// MaxMessageSize is the largest message that may be written, in bytes (default 64 KiB).
	MaxMessageSize uint32
	// RTOMax is the longest retransmission timeout in milliseconds (default 60,000).
	RTOMax float64
	// MinCwnd, FastRtxWnd and CwndCAStep are parameters of another congestion control. They have
	// no effect.
	MinCwnd    uint32
	FastRtxWnd uint32
	CwndCAStep uint32

	noInterleaving  bool
	maxQueueEntries uint32
	interleaving    *interleavingSettings
}

// ServerOption is an option of ServerWithOptions.
type ServerOption interface {
	applyServer(*Config) error
}

// ClientOption is an option of ClientWithOptions, ClientContext and GenerateOutOfBandToken.
type ClientOption interface {
	applyClient(*Config) error
}

// AssociationOption is an option of either side.
type AssociationOption interface {
	ServerOption
	ClientOption
}

// option is an option by a function.
type option func(*Config) error

func (o option) applyServer(c *Config) error { return o(c) }
func (o option) applyClient(c *Config) error { return o(c) }

// merge sets what is set in c in the configuration to.
func (c Config) merge(to *Config) error {
	if c.MTU != 0 {
		if err := checkMTU(c.MTU); err != nil {
			return err
		}
		to.MTU = c.MTU
	}
	if c.RTOMax < 0 {
		return fmt.Errorf("%w: RTOMax is %v ms", errOption, c.RTOMax)
	}
	if c.LoggerFactory != nil {
		to.LoggerFactory = c.LoggerFactory
	}
	if c.NetConn != nil {
		to.NetConn = c.NetConn
	}
	if c.Name != "" {
		to.Name = c.Name
	}
	to.BlockWrite = to.BlockWrite || c.BlockWrite
	to.EnableZeroChecksum = to.EnableZeroChecksum || c.EnableZeroChecksum
	to.noInterleaving = to.noInterleaving || c.noInterleaving
	for _, f := range []struct {
		to   *uint32
		from uint32
	}{
		{&to.MaxReceiveBufferSize, c.MaxReceiveBufferSize},
		{&to.MaxMessageSize, c.MaxMessageSize},
		{&to.MinCwnd, c.MinCwnd},
		{&to.FastRtxWnd, c.FastRtxWnd},
		{&to.CwndCAStep, c.CwndCAStep},
		{&to.maxQueueEntries, c.maxQueueEntries},
	} {
		if f.from != 0 {
			*f.to = f.from
		}
	}
	if c.RTOMax != 0 {
		to.RTOMax = c.RTOMax
	}
	if c.interleaving != nil {
		to.interleaving = c.interleaving
	}
	return nil
}

func (c Config) applyServer(to *Config) error { return c.merge(to) }
func (c Config) applyClient(to *Config) error { return c.merge(to) }

// defaults sets what is not set.
func (c *Config) defaults() {
	if c.LoggerFactory == nil {
		c.LoggerFactory = logging.NewDefaultLoggerFactory()
	}
	if c.interleaving == nil {
		c.interleaving = new(interleavingSettings)
	}
	for _, f := range []struct {
		to    *uint32
		value uint32
	}{
		{&c.MTU, defaultMTU},
		{&c.MaxReceiveBufferSize, defaultReceiveBuffer},
		{&c.MaxMessageSize, defaultMaxMessageSize},
	} {
		if *f.to == 0 {
			*f.to = f.value
		}
	}
}

func checkMTU(mtu uint32) error {
	if mtu < minMTU {
		return fmt.Errorf("%w: MTU of %d bytes, at least %d", errOption, mtu, minMTU)
	}
	return nil
}

// weft returns the configuration of the association below, but for what is called.
func (c *Config) weft() *weft.ConnConfig {
	wc := &weft.Config{
		OutStreams: numStreams, InStreams: numStreams,
		RecvBuffer:         int(c.MaxReceiveBufferSize),
		ZeroChecksum:       c.EnableZeroChecksum,
		NoInterleaving:     c.noInterleaving,
		HeartbeatInterval:  -1,
		MaxRetransmits:     noMaxRetransmits,
		PathMaxRetransmits: noMaxRetransmits,
		MaxInitRetransmits: maxInitRetransmits,
		Scheduler:          c.interleaving.scheduler(),
	}
	if c.BlockWrite {
		// What the peer can take, and as much behind it.
		wc.SendBuffer = 2 * wc.RecvBuffer
	}
	if c.RTOMax > 0 {
		// Deviation: RTO.Max below RTO.Min and RTO.Initial lowers those, too.
		wc.RTOMax = max(time.Duration(c.RTOMax*float64(time.Millisecond)), time.Millisecond)
		wc.RTOInitial = min(time.Second, wc.RTOMax)
		wc.RTOMin = min(200*time.Millisecond, wc.RTOMax)
	}
	return &weft.ConnConfig{Config: wc, MTU: min(max(int(c.MTU), weft.MinConnMTU), maxMTU)}
}
