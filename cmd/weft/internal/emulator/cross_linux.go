package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	crossPort   = 5001
	crossWarmUp = time.Second            // what the flows may use the network alone, to fill it
	crossRetry  = 100 * time.Millisecond // between two tries to connect
	crossDial   = 10 * time.Second       // how long a try takes at most
	crossWrite  = 256 << 10              // bytes of a write
)

// crossTraffic is bulk TCP flows between the sites: so many in each direction between any two,
// over each WAN. They last as long as the emulation.
type crossTraffic struct {
	cc    string
	begun time.Time
	flows []*crossFlow
	stop  context.CancelFunc
	done  sync.WaitGroup
	ready sync.WaitGroup // the first connections of all flows
	lists []net.Listener

	mu    sync.Mutex
	conns map[net.Conn]struct{} // guarded by mu; nil when it is over
}

// crossFlow is what one site sends to one other.
type crossFlow struct {
	from, to, wan int
	sent          atomic.Uint64 // bytes that the kernel has taken
}

// startCross starts the flows and waits until they have filled the network.
func (em *emulation) startCross(ctx context.Context, o *options) error {
	ct := &crossTraffic{cc: o.crossCC, conns: make(map[net.Conn]struct{})}
	em.cross = ct
	flowCtx, stop := context.WithCancel(context.Background())
	ct.stop = stop
	at := make(map[int]*emHost) // by site
	for i, n := range em.plan.nodes {
		if n.kind == kindCross {
			at[n.site] = em.hosts[i]
		}
	}
	for site, h := range at {
		for wan := range o.wans {
			l, err := ct.listen(h, em.plan.addrs.cross(site, wan))
			if err != nil {
				return fmt.Errorf("cross-traffic of site %d: %w", site+1, err)
			}
			ct.lists = append(ct.lists, l)
			ct.done.Add(1)
			go ct.accept(l)
		}
	}
	for from := range o.sites {
		for to := range o.sites {
			for wan := range o.wans {
				for range o.cross {
					if from == to {
						continue
					}
					f := &crossFlow{from: from, to: to, wan: wan}
					ct.flows = append(ct.flows, f)
					ct.done.Add(1)
					ct.ready.Add(1)
					go ct.run(flowCtx, f, at[from], em.plan.addrs.cross(to, wan))
				}
			}
		}
	}
	up := make(chan struct{})
	go func() { ct.ready.Wait(); close(up) }()
	select {
	case <-up:
	case <-time.After(crossDial):
		return fmt.Errorf("cross-traffic: no connection in %v", crossDial)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	ct.begun = time.Now()
	select {
	case <-time.After(crossWarmUp):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// control sets the congestion control of a socket.
func (ct *crossTraffic) control(_, _ string, c syscall.RawConn) error {
	if ct.cc == "" {
		return nil
	}
	var err error
	cerr := c.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, ct.cc)
	})
	if err != nil {
		err = fmt.Errorf("congestion control %q: %w", ct.cc, err)
	}
	return errors.Join(cerr, err)
}

// listen opens a socket in the namespace of h: the calls of h run on its thread, and a
// socket belongs to the namespace of the thread that makes it.
func (ct *crossTraffic) listen(h *emHost, addr [4]byte) (l net.Listener, err error) {
	err = h.do(func() error {
		lc := net.ListenConfig{Control: ct.control}
		var err error
		l, err = lc.Listen(context.Background(), "tcp4", netip.AddrPortFrom(netip.AddrFrom4(addr), crossPort).String())
		return err
	})
	return l, err
}

// accept takes in what flows send.
func (ct *crossTraffic) accept(l net.Listener) {
	defer ct.done.Done()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if !ct.keep(c) {
			c.Close()
			return
		}
		ct.done.Add(1)
		go func() {
			defer ct.done.Done()
			defer ct.drop(c)
			discard(c)
		}()
	}
}

// discard reads until the end, without copying.
func discard(c net.Conn) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, 1<<20)
	for {
		n, rerr := 0, error(nil)
		err := raw.Read(func(fd uintptr) bool {
			n, _, rerr = unix.Recvfrom(int(fd), buf, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
			return !errors.Is(rerr, unix.EAGAIN)
		})
		if err != nil || rerr != nil || n == 0 {
			return
		}
	}
}

// run sends what a flow sends, over a new connection when the former one has failed.
func (ct *crossTraffic) run(ctx context.Context, f *crossFlow, h *emHost, addr [4]byte) {
	defer ct.done.Done()
	var once sync.Once
	buf := make([]byte, crossWrite)
	for ctx.Err() == nil {
		c, err := ct.dial(ctx, h, addr)
		if err == nil && ct.keep(c) {
			once.Do(ct.ready.Done)
			for err == nil {
				var n int
				n, err = c.Write(buf)
				f.sent.Add(uint64(n))
			}
			ct.drop(c)
		} else if err == nil {
			c.Close()
		}
		select {
		case <-time.After(crossRetry):
		case <-ctx.Done():
		}
	}
}

// dial connects from the namespace of h. Only the start of the connection is on its thread.
func (ct *crossTraffic) dial(ctx context.Context, h *emHost, addr [4]byte) (c net.Conn, err error) {
	err = h.do(func() error {
		d := net.Dialer{Control: ct.control, Timeout: crossDial, KeepAlive: -1}
		var err error
		c, err = d.DialContext(ctx, "tcp4", netip.AddrPortFrom(netip.AddrFrom4(addr), crossPort).String())
		return err
	})
	return c, err
}

// keep remembers a connection, unless all is over.
func (ct *crossTraffic) keep(c net.Conn) bool {
	ct.mu.Lock()
	defer ct.mu.Unlock()
	if ct.conns == nil {
		return false
	}
	ct.conns[c] = struct{}{}
	return true
}

// drop closes a connection.
func (ct *crossTraffic) drop(c net.Conn) {
	ct.mu.Lock()
	defer ct.mu.Unlock()
	delete(ct.conns, c)
	c.Close()
}

// end ends all flows and waits for them. nil is for no cross-traffic.
func (ct *crossTraffic) end() {
	if ct == nil {
		return
	}
	ct.stop()
	for _, l := range ct.lists {
		l.Close()
	}
	ct.mu.Lock()
	conns := ct.conns
	ct.conns = nil
	for c := range conns {
		c.Close()
	}
	ct.mu.Unlock()
	ct.done.Wait()
}

// print prints what the sites sent to each other.
func (ct *crossTraffic) print(w io.Writer) {
	if ct == nil {
		return
	}
	sum := make(map[sitePair]uint64)
	for _, f := range ct.flows {
		sum[sitePair{f.from, f.to}] += f.sent.Load()
	}
	pairs := make([]sitePair, 0, len(sum))
	for p := range sum {
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, func(x, y sitePair) int { return (x.a-y.a)*maxSites + x.b - y.b })
	for _, p := range pairs {
		rate := float64(sum[p]) * 8 / time.Since(ct.begun).Seconds()
		fmt.Fprintf(w, "cross-traffic from site %d to site %d: %d bytes, %.1f Mb/s\n", p.a+1, p.b+1, sum[p], rate/1e6)
	}
}
