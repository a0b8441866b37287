package rconn

import (
	"errors"
	"fmt"
	"time"
)

// Defaults and limits.
const (
	// DefaultBuffers is the default of Config.Buffers, MaxBuffers bounds it.
	DefaultBuffers, MaxBuffers = 64, 4096
	// DefaultSize is the default of Config.Size, MinSize and MaxSize bound it.
	DefaultSize, MinSize, MaxSize = 16 << 10, 64, 1 << 20
	// DefaultMaxMessage is the default of Config.MaxMessage.
	DefaultMaxMessage = 64 << 20
	// Linger bounds how long Close waits for the peer to have taken what was
	// sent.
	Linger = 5 * time.Second

	// spare receives are for messages that only give credits back. Another one
	// is sent when half of the credits have been used again, so few are ever
	// under way.
	spare = 4
)

// Errors of connections.
var (
	// ErrTooLong ends a connection whose peer sends a message over
	// Config.MaxMessage.
	ErrTooLong = errors.New("rconn: message too long")
	// ErrProtocol ends a connection whose peer breaks the rules of this package.
	ErrProtocol = errors.New("rconn: protocol error")
	// ErrInvalid is returned for a Config out of its limits.
	ErrInvalid = errors.New("rconn: invalid configuration")
	// errInterrupted ends a connection that cannot go on because part of a
	// message was sent when its context was done.
	errInterrupted = errors.New("rconn: message was interrupted")
)

// Config holds the parameters of a connection. The two sides may differ.
type Config struct {
	// Buffers is the number of receive buffers, Size that of bytes in each,
	// header included: what the peer may send before the consumer reads.
	Buffers, Size int
	// MaxMessage bounds the messages that Recv returns.
	MaxMessage int
}

// limitMaxMessage bounds Config.MaxMessage: 1 TiB, or 1 GiB where an int has 32 bits.
const limitMaxMessage = 1 << (30 + 10*(^uint(0)>>63))

func (c *Config) setDefaults() error {
	for _, f := range []struct {
		name          string
		v             *int
		def, min, max int
	}{
		{"Buffers", &c.Buffers, DefaultBuffers, 1, MaxBuffers}, {"Size", &c.Size, DefaultSize, MinSize, MaxSize},
		{"MaxMessage", &c.MaxMessage, DefaultMaxMessage, 0, limitMaxMessage},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
		if *f.v < f.min || *f.v > f.max {
			return fmt.Errorf("%w: %s %d: %d to %d", ErrInvalid, f.name, *f.v, f.min, f.max)
		}
	}
	return nil
}
