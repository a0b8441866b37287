package sctp

import (
	"errors"
	"fmt"
	"net"

	"github.com/pion/logging"
)

// WithLoggerFactory sets Config.LoggerFactory. It must not be nil.
func WithLoggerFactory(loggerFactory logging.LoggerFactory) AssociationOption {
	return option(func(c *Config) error {
		if loggerFactory == nil {
			return fmt.Errorf("%w: LoggerFactory is nil", errOption)
		}
		c.LoggerFactory = loggerFactory
		return nil
	})
}

// WithName sets Config.Name.
func WithName(name string) AssociationOption {
	return option(func(c *Config) error {
		c.Name = name
		return nil
	})
}

// WithNetConn sets Config.NetConn. It must not be nil.
func WithNetConn(conn net.Conn) AssociationOption {
	return option(func(c *Config) error {
		if conn == nil {
			return errNetConn
		}
		c.NetConn = conn
		return nil
	})
}

// WithBlockWrite sets Config.BlockWrite.
func WithBlockWrite(b bool) AssociationOption {
	return option(func(c *Config) error {
		c.BlockWrite = b
		return nil
	})
}

// WithEnableZeroChecksum sets Config.EnableZeroChecksum.
func WithEnableZeroChecksum(b bool) AssociationOption {
	return option(func(c *Config) error {
		c.EnableZeroChecksum = b
		return nil
	})
}

// WithEnableInterleaving tells whether messages may be interleaved (RFC 8260; default true).
func WithEnableInterleaving(b bool) AssociationOption {
	return option(func(c *Config) error {
		c.noInterleaving = !b
		return nil
	})
}

// WithMTU sets Config.MTU, at least 36 bytes.
func WithMTU(size uint32) AssociationOption {
	return option(func(c *Config) error {
		c.MTU = size
		return checkMTU(size)
	})
}

// WithMaxReceiveBufferSize sets Config.MaxReceiveBufferSize. It must not be 0.
func WithMaxReceiveBufferSize(size uint32) AssociationOption {
	return option(func(c *Config) error {
		c.MaxReceiveBufferSize = size
		return positive("MaxReceiveBufferSize", size)
	})
}

// WithMaxMessageSize sets Config.MaxMessageSize. It must not be 0.
func WithMaxMessageSize(size uint32) AssociationOption {
	return option(func(c *Config) error {
		c.MaxMessageSize = size
		return positive("MaxMessageSize", size)
	})
}

func positive(name string, size uint32) error {
	if size == 0 {
		return fmt.Errorf("%w: %s is 0", errOption, name)
	}
	return nil
}

// WithMaxReassemblyQueueEntries bounds the messages of a stream that wait to be read; 0 is no bound,
// the default. A message beyond it aborts the association.
func WithMaxReassemblyQueueEntries(maxEntries uint32) AssociationOption {
	return option(func(c *Config) error {
		c.maxQueueEntries = maxEntries
		return nil
	})
}

// WithRTOMax sets Config.RTOMax, in milliseconds. It must be positive.
func WithRTOMax(rtoMax float64) AssociationOption {
	return option(func(c *Config) error {
		if !(rtoMax > 0) {
			return fmt.Errorf("%w: RTOMax is %v ms", errOption, rtoMax)
		}
		c.RTOMax = rtoMax
		return nil
	})
}

// WithMinCwnd sets Config.MinCwnd, which has no effect.
func WithMinCwnd(minCwnd uint32) AssociationOption {
	return option(func(c *Config) error {
		c.MinCwnd = minCwnd
		return nil
	})
}

// WithFastRtxWnd sets Config.FastRtxWnd, which has no effect.
func WithFastRtxWnd(fastRtxWnd uint32) AssociationOption {
	return option(func(c *Config) error {
		c.FastRtxWnd = fastRtxWnd
		return nil
	})
}

// WithCwndCAStep sets Config.CwndCAStep, which has no effect.
func WithCwndCAStep(cwndCAStep uint32) AssociationOption {
	return option(func(c *Config) error {
		c.CwndCAStep = cwndCAStep
		return nil
	})
}

// errSNAP is the answer to what asks for a handshake outside of the connection.
var errSNAP = fmt.Errorf("sctp: handshake by tokens (SNAP): %w", errors.ErrUnsupported)

// WithSNAP asks for a handshake by tokens that were exchanged outside of the connection. It is not
// supported: Client returns an error that matches errors.ErrUnsupported.
func WithSNAP(localSctpInit []byte, remoteSctpInit []byte) AssociationOption {
	return option(func(*Config) error { return errSNAP })
}

// GenerateOutOfBandToken would make a token for WithSNAP. It returns an error that matches
// errors.ErrUnsupported, or that of an option, and no token, so that the peer is not offered one.
func GenerateOutOfBandToken(opts ...ClientOption) ([]byte, error) {
	var c Config
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o.applyClient(&c); err != nil {
			return nil, err
		}
	}
	return nil, errSNAP
}
