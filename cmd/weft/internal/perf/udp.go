package perf

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"time"
)

// udpEnd is either end of mode udp: datagrams of one packet each and nothing
// else, in batches where the system can.
type udpEnd struct {
	tally
	spec *spec
	conn *net.UDPConn
	sock udpSocket
	buf  []byte
	size int // payload of a datagram
}

// udpPayload returns how much a datagram carries: a message, or as much of it as
// a packet takes.
func (s *spec) udpPayload() int {
	switch {
	case s.Latency:
		return min(s.Size, 65507)
	case s.MTU == 0:
		return min(s.Size, 64000)
	}
	return min(s.Size, s.MTU-28)
}

func newUDPEnd(s *spec, local, remote netip.AddrPort) (*udpEnd, error) {
	var conn *net.UDPConn
	var err error
	if remote.IsValid() {
		conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(remote))
	} else {
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(local))
	}
	if err != nil {
		return nil, err
	}
	conn.SetReadBuffer(7 << 20)
	conn.SetWriteBuffer(7 << 20)
	e := &udpEnd{spec: s, conn: conn, size: s.udpPayload(), buf: make([]byte, 64<<10)}
	if err := e.sock.init(conn, s.GSO && !s.Latency && s.MTU != 0); err != nil {
		conn.Close()
		return nil, err
	}
	return e, nil
}

func openUDPTarget(s *spec) (target, error) {
	e, err := newUDPEnd(s, s.localPort0(), netip.AddrPort{})
	if err != nil {
		return nil, err
	}
	if s.Latency {
		go e.echo()
	} else {
		go e.drain()
	}
	return e, nil
}

func (e *udpEnd) addr() string { return e.conn.LocalAddr().String() }
func (e *udpEnd) close()       { e.conn.Close() }

func (e *udpEnd) drain() {
	for {
		n, err := e.sock.read(e.buf)
		if err != nil {
			return
		}
		e.bytes.Add(uint64(n))
		e.msgs.Add(uint64((n + e.size - 1) / e.size))
	}
}

// echo sends datagrams back, to whoever sent them.
func (e *udpEnd) echo() {
	for {
		n, from, err := e.receive()
		if err != nil {
			return
		}
		if _, err := e.conn.WriteToUDPAddrPort(e.buf[:n], from); err != nil {
			return
		}
	}
}

// receive reads one datagram; with -busy-poll it spins.
func (e *udpEnd) receive() (int, netip.AddrPort, error) {
	if e.spec.BusyPoll > 0 {
		for start := time.Now(); time.Since(start) < e.spec.BusyPoll; {
			if n, from, err := e.sock.tryRead(e.buf); !errors.Is(err, errWouldBlock) {
				return n, from, err
			}
			runtime.Gosched()
		}
	}
	return e.conn.ReadFromUDPAddrPort(e.buf)
}

func openUDPSource(s *spec, addr string) (source, error) {
	remote, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	return newUDPEnd(s, netip.AddrPort{}, remote)
}

func (e *udpEnd) load(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { e.conn.Close() })
	defer stop()
	pace := newPacer(&spec{Rate: e.spec.Rate, Size: e.sock.batch(e.size)}, 1)
	for ctx.Err() == nil {
		pace.wait()
		if err := e.sock.write(e.buf, e.size); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// trip waits for an answer; one that is lost counts with the time it took to
// find out.
func (e *udpEnd) trip(ctx context.Context) error {
	for {
		if _, err := e.conn.Write(e.buf[:e.size]); err != nil {
			return err
		}
		if e.spec.BusyPoll <= 0 {
			e.conn.SetReadDeadline(time.Now().Add(time.Second))
		}
		_, _, err := e.receive()
		if err == nil || !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
			return err
		}
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// errWouldBlock tells that nothing has arrived.
var errWouldBlock = errors.New("nothing has arrived")
