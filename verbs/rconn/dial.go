package rconn

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
)

// Dial connects to the [Listener] of the device at addr. It blocks until the listener has
// accepted, ctx is done, or, if ctx has no deadline, verbs.DefaultConnectTimeout has passed.
// Errors to test for: those of [verbs.Device.Connect], [ErrInvalid], and [ErrProtocol] if
// the peer does not use this package.
func Dial(ctx context.Context, dev *verbs.Device, addr sctp.Addr, cfg Config) (*Conn, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	c, err := newConn(dev, cfg)
	if err != nil {
		return nil, err
	}
	c.remote = addr
	info, err := dev.Connect(ctx, addr, c.qp, verbs.ConnParams{PrivateData: c.card()})
	if err == nil {
		if peer, ok := parseCard(info.PrivateData); !ok {
			err = fmt.Errorf("%w: dial %v: its answer is not of this package: %d bytes of private data", ErrProtocol, addr,
				len(info.PrivateData))
		} else {
			err = c.start(peer)
		}
	}
	if err != nil {
		c.release()
		return nil, err
	}
	return c, nil
}

// Listener takes connections of this package to a device.
type Listener struct {
	dev *verbs.Device
	cfg Config
	l   *verbs.Listener
}

// Listen accepts connections from now on. A device has at most one listener at a time: a
// second Listen returns [verbs.ErrBusy].
func Listen(dev *verbs.Device, cfg Config) (*Listener, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	l, err := dev.Listen()
	if err != nil {
		return nil, err
	}
	return &Listener{dev, cfg, l}, nil
}

// Accept returns the next connection. It blocks until there is one, ctx is done, or the
// listener is closed (net.ErrClosed). It rejects requests that do not come from this
// package.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	for {
		r, err := l.l.Accept(ctx)
		if errors.Is(err, verbs.ErrClosed) {
			err = net.ErrClosed
		}
		if err != nil {
			return nil, err
		}
		peer, ok := parseCard(r.PrivateData)
		if !ok {
			r.Reject(nil)
			continue
		}
		c, err := newConn(l.dev, l.cfg)
		if err != nil {
			r.Reject(nil)
			return nil, err
		}
		c.remote = r.Remote
		if err = c.start(peer); err == nil {
			err = r.Accept(c.qp, verbs.ConnParams{PrivateData: c.card()})
		}
		if err == nil {
			return c, nil
		}
		c.release()
		if !errors.Is(err, verbs.ErrDisconnected) { // the peer has given up
			return nil, err
		}
	}
}

// Close stops listening. Established connections go on.
func (l *Listener) Close() error {
	if err := l.l.Close(); err != nil {
		return net.ErrClosed
	}
	return nil
}

// Addr returns the address that peers dial.
func (l *Listener) Addr() sctp.Addr { return l.dev.Addr() }

// Streams returns the listener in the form of a net.Listener, whose connections
// are Streams.
func (l *Listener) Streams() net.Listener { return streams{l} }

type streams struct{ l *Listener }

func (s streams) Accept() (net.Conn, error) {
	c, err := s.l.Accept(context.Background())
	if err != nil {
		return nil, err
	}
	return c.Stream(), nil
}

func (s streams) Close() error   { return s.l.Close() }
func (s streams) Addr() net.Addr { return s.l.Addr() }
