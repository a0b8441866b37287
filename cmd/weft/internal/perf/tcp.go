package perf

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// bind remembers under which local IP address the control connection runs: the
// measurement uses the same.
func (s *spec) bind(a net.Addr) {
	if tcp, ok := a.(*net.TCPAddr); ok {
		s.local = tcp.AddrPort().Addr().Unmap()
	}
}

func (s *spec) localPort0() netip.AddrPort { return netip.AddrPortFrom(s.local, 0) }

// tally counts what a side has received.
type tally struct{ bytes, msgs atomic.Uint64 }

func (t *tally) counts() counts { return counts{Bytes: t.bytes.Load(), Msgs: t.msgs.Load()} }

// tcpEnd is either end of mode tcp.
type tcpEnd struct {
	tally
	spec     *spec
	listener net.Listener // target only
	mu       sync.Mutex
	conns    []net.Conn
	buf      []byte
}

func openTCPTarget(ctx context.Context, s *spec) (target, error) {
	lc := net.ListenConfig{Control: tcpControl(s.MTU)}
	l, err := lc.Listen(ctx, "tcp", s.localPort0().String())
	if err != nil {
		return nil, err
	}
	t := &tcpEnd{spec: s, listener: l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.mu.Lock()
			t.conns = append(t.conns, conn)
			t.mu.Unlock()
			switch {
			case s.Latency:
				go t.echo(conn)
			case s.Bidir:
				go t.send(context.Background(), conn)
				fallthrough
			default:
				go t.drain(conn)
			}
		}
	}()
	return t, nil
}

func (t *tcpEnd) addr() string { return t.listener.Addr().String() }

func (t *tcpEnd) close() {
	if t.listener != nil {
		t.listener.Close()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.conns {
		c.Close()
	}
}

// echo sends messages of the size agreed on back.
func (t *tcpEnd) echo(conn net.Conn) {
	buf := make([]byte, t.spec.Size)
	for {
		if _, err := io.ReadFull(conn, buf); err != nil {
			return
		}
		if _, err := conn.Write(buf); err != nil {
			return
		}
	}
}

// drain reads and counts.
func (t *tcpEnd) drain(conn net.Conn) error {
	buf := make([]byte, max(256<<10, t.spec.Size))
	var total uint64
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return err
		}
		before := total / uint64(t.spec.Size)
		total += uint64(n)
		t.bytes.Add(uint64(n))
		t.msgs.Add(total/uint64(t.spec.Size) - before)
	}
}

func (t *tcpEnd) send(ctx context.Context, conn net.Conn) error {
	buf := make([]byte, t.spec.Size)
	pace := newPacer(t.spec, t.spec.Assocs)
	for ctx.Err() == nil {
		pace.wait()
		if _, err := conn.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

func openTCPSource(ctx context.Context, s *spec, addr string) (source, error) {
	t := &tcpEnd{spec: s, buf: make([]byte, s.Size)}
	d := net.Dialer{Control: tcpControl(s.MTU)}
	for range s.Assocs {
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			t.close()
			return nil, err
		}
		t.conns = append(t.conns, conn)
	}
	return t, nil
}

func (t *tcpEnd) load(ctx context.Context) error {
	return each(len(t.conns), func(i int) error {
		stop := context.AfterFunc(ctx, func() { t.conns[i].Close() })
		defer stop()
		if t.spec.Bidir {
			go t.drain(t.conns[i])
		}
		return t.send(ctx, t.conns[i])
	})
}

func (t *tcpEnd) trip(context.Context) error {
	if _, err := t.conns[0].Write(t.buf); err != nil {
		return err
	}
	_, err := io.ReadFull(t.conns[0], t.buf)
	return err
}

// each runs f(0) … f(n-1) at once and returns the first error.
func each(n int, f func(i int) error) error {
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- f(i) }()
	}
	var first error
	for range n {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}
