package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/dtls/v3/pkg/crypto/selfsign"
	dtlsnet "github.com/pion/dtls/v3/pkg/net"
	"github.com/pion/sctp"
)

const (
	// openTimeout is how long opening may take.
	openTimeout = 30 * time.Second
	// socketBuffer is what is asked of the system for each direction of a socket, in bytes.
	socketBuffer = 4 << 20
	// memoryQueue is how many packets a connection in memory holds; a writer waits then.
	memoryQueue = 1024
)

// channel is a stream of an association or a data channel.
type channel interface {
	Read(b []byte) (int, error)
	Write(b []byte) (int, error)
	BufferedAmount() uint64
	SetBufferedAmountLowThreshold(n uint64)
	OnBufferedAmountLow(f func())
}

func setBuffers(c *net.UDPConn) {
	_ = c.SetReadBuffer(socketBuffer)
	_ = c.SetWriteBuffer(socketBuffer)
}

// udpPair returns two UDP sockets of the loopback that are connected to each other.
func udpPair() (_, _ net.Conn, err error) {
	loopback := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}
	first, err := net.ListenUDP("udp4", loopback)
	if err != nil {
		return nil, nil, err
	}
	addr := first.LocalAddr().(*net.UDPAddr)
	b, err := net.DialUDP("udp4", nil, addr)
	first.Close()
	if err != nil {
		return nil, nil, err
	}
	a, err := net.DialUDP("udp4", addr, b.LocalAddr().(*net.UDPAddr))
	if err != nil {
		b.Close()
		return nil, nil, err
	}
	setBuffers(a)
	setBuffers(b)
	return a, b, nil
}

// memoryConn is one end of a connection in memory.
type memoryConn struct {
	net.Conn // nil: for the methods that nobody calls
	in, out  chan *delayed
	done     chan struct{} // of both ends
	once     *sync.Once
}

func memoryPair() (a, b net.Conn) {
	x, y := make(chan *delayed, memoryQueue), make(chan *delayed, memoryQueue)
	done, once := make(chan struct{}), new(sync.Once)
	return &memoryConn{in: x, out: y, done: done, once: once}, &memoryConn{in: y, out: x, done: done, once: once}
}

func (c *memoryConn) Read(b []byte) (int, error) {
	select {
	case d := <-c.in:
		n := copy(b, d.b[:d.n])
		packets.Put(d)
		return n, nil
	case <-c.done:
		return 0, net.ErrClosed
	}
}

func (c *memoryConn) Write(b []byte) (int, error) {
	d := packets.Get().(*delayed)
	d.n = copy(d.b[:], b)
	select {
	case c.out <- d:
		return len(b), nil
	case <-c.done:
		return 0, net.ErrClosed
	}
}

func (c *memoryConn) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

func (c *memoryConn) SetDeadline(time.Time) error      { return nil }
func (c *memoryConn) SetReadDeadline(time.Time) error  { return nil }
func (c *memoryConn) SetWriteDeadline(time.Time) error { return nil }
func (c *memoryConn) LocalAddr() net.Addr              { return &net.UnixAddr{Name: "memory"} }
func (c *memoryConn) RemoteAddr() net.Addr             { return c.LocalAddr() }

// both calls f for both ends at the same time.
func both[T any](f func(first bool) (T, error)) (a, b T, err error) {
	var errB error
	done := make(chan struct{})
	go func() {
		defer close(done)
		b, errB = f(false)
	}()
	a, err = f(true)
	<-done
	return a, b, errors.Join(err, errB)
}

// dtlsPair returns DTLS on two connections.
func dtlsPair(ctx context.Context, a, b net.Conn) (net.Conn, net.Conn, error) {
	cert, err := selfsign.GenerateSelfSigned()
	if err != nil {
		return nil, nil, err
	}
	x, y, err := both(func(first bool) (*dtls.Conn, error) {
		var c *dtls.Conn
		var err error
		if first {
			c, err = dtls.ClientWithOptions(dtlsnet.PacketConnFromConn(a), a.RemoteAddr(), dtls.WithCertificates(cert), dtls.WithInsecureSkipVerify(true))
		} else {
			c, err = dtls.ServerWithOptions(dtlsnet.PacketConnFromConn(b), b.RemoteAddr(), dtls.WithCertificates(cert), dtls.WithInsecureSkipVerify(true))
		}
		if err != nil {
			return nil, err
		}
		return c, c.HandshakeContext(ctx)
	})
	return x, y, err
}

// connPair returns two connections of a kind.
func connPair(ctx context.Context, kind string, l link) (a, b net.Conn, err error) {
	switch kind {
	case "memory":
		a, b = memoryPair()
	case "udp", "dtls":
		if a, b, err = udpPair(); err != nil {
			return nil, nil, err
		}
	default:
		return nil, nil, fmt.Errorf("unknown kind of connection %q: want memory, udp, dtls or webrtc", kind)
	}
	a, b = newLinkConn(a, l), newLinkConn(b, l)
	if kind == "dtls" {
		return dtlsPair(ctx, a, b)
	}
	return a, b, nil
}

// open opens a channel of a kind. end closes everything.
func (o *options) open(kind string) (a, b channel, end func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if kind == "webrtc" {
		return o.openWebRTC(ctx)
	}
	ca, cb, err := connPair(ctx, kind, o.link)
	if err != nil {
		return nil, nil, nil, err
	}
	x, y, err := both(func(first bool) (*sctp.Association, error) {
		c := cb
		if first {
			c = ca
		}
		return sctp.ClientContext(ctx, sctp.WithNetConn(c), sctp.WithMaxReceiveBufferSize(uint32(o.receive)), sctp.WithEnableZeroChecksum(kind == "dtls"))
	})
	if err != nil {
		return nil, nil, nil, err
	}
	end = func() { _, _ = x.Close(), y.Close() }
	s, err := x.OpenStream(1, sctp.PayloadTypeWebRTCBinary)
	if err != nil {
		end()
		return nil, nil, nil, err
	}
	if _, err = s.Write([]byte{1}); err != nil { // the peer accepts the stream once it has a message
		end()
		return nil, nil, nil, err
	}
	r, err := y.AcceptStream()
	if err == nil {
		_, err = r.Read(make([]byte, 16))
	}
	if err != nil {
		end()
		return nil, nil, nil, err
	}
	r.SetDefaultPayloadType(sctp.PayloadTypeWebRTCBinary)
	return s, r, end, nil
}
