package verbs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/ddp/ddpmpa"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// restartable is a host whose process, a node, can end without a word and begin again
// at the same addresses.
type restartable struct {
	t    *testing.T
	net  *sctptest.Network
	host *sctptest.Host
	*node
}

const restartablePort = 4711

func newRestartable(t *testing.T, net *sctptest.Network, addr string) *restartable {
	t.Helper()
	h := &restartable{t: t, net: net, host: net.NewHost(addr)}
	h.start()
	return h
}

func (h *restartable) start() {
	h.t.Helper()
	c, err := h.host.ListenPacket(h.host.Addrs()[0].String() + ":9899")
	if err != nil {
		h.t.Fatal(err)
	}
	tr, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{c}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.node = nodeOn(h.t, tr, Config{Port: restartablePort})
}

// kill ends the process: other hosts hear nothing of it.
func (h *restartable) kill(peer *restartable) {
	h.net.Cut(h.host.Addrs()[0].String(), peer.host.Addrs()[0].String())
	h.tr.Close()
	h.net.Restore(h.host.Addrs()[0].String(), peer.host.Addrs()[0].String())
}

func inBubble(t *testing.T, f func(t *testing.T, net *sctptest.Network, a, b *restartable)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(1)
		defer net.Close()
		net.SetDefault(sctptest.Link{Delay: time.Millisecond})
		a, b := newRestartable(t, net, "10.0.0.1"), newRestartable(t, net, "10.0.0.2")
		defer func() { a.tr.Close() }()
		defer func() { b.tr.Close() }()
		f(t, net, a, b)
	})
}

// connectOnce connects a queue pair of a to one of b, whose receives were posted before,
// and sends a message each way.
func connectOnce(t *testing.T, a, b *node, dial func(qp *QP) error) {
	t.Helper()
	if b.l == nil {
		var err error
		if b.l, err = b.dev.Listen(); err != nil {
			t.Fatal(err)
		}
	}
	qa, qb := a.qp(QPConfig{}), b.qp(QPConfig{})
	for id, qp := range []*QP{qa, qb} {
		if err := qp.PostRecv(RecvWR{ID: uint64(id), SGL: []SGE{[]*node{a, b}[id].mr(8, LocalWrite).Slice(0, 8)}}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	accepted := make(chan error, 1)
	go func() {
		r, err := b.l.Accept(ctx)
		if err == nil {
			err = r.Accept(qb, ConnParams{})
		}
		accepted <- err
	}()
	err := dial(qa)
	if err != nil {
		cancel()
	}
	if errA := <-accepted; err != nil || errA != nil {
		t.Fatalf("connect: %v, accept: %v", err, errA)
	}
	for _, qp := range []*QP{qa, qb} {
		if err := qp.PostSend(SendWR{Op: OpSend, Inline: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	want(t, a.rcq, 0, StatusSuccess)
	want(t, b.rcq, 1, StatusSuccess)
}

// The first connection to a peer that has restarted is made on an association with the
// new process, and so is that of the new process to a peer that knows the old one. The
// receives that were posted before are still there.
func TestConnectAfterARestart(t *testing.T) {
	for _, tt := range []string{"Connect", "from the new process", "CMID", "several at once"} {
		t.Run(tt, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *sctptest.Network, a, b *restartable) {
				connectTo := func(b *restartable, a *restartable) func(*QP) error {
					return func(qp *QP) error {
						_, err := a.dev.Connect(t.Context(), b.dev.Addr(), qp, ConnParams{})
						return err
					}
				}
				for range 2 {
					connectOnce(t, a.node, b.node, connectTo(b, a))
					b.kill(a)
					b.start()
					switch tt {
					case "Connect":
						connectOnce(t, a.node, b.node, connectTo(b, a))
					case "from the new process":
						connectOnce(t, b.node, a.node, connectTo(a, b))
					case "CMID":
						ch, err := a.dev.NewCMChannel()
						if err != nil {
							t.Fatal(err)
						}
						id, _ := ch.NewID(nil)
						id.ResolveAddr(b.dev.Addr().String(), 0)
						wantCM(t, ch, CMAddrResolved)
						id.ResolveRoute(0)
						wantCM(t, ch, CMRouteResolved)
						connectOnce(t, a.node, b.node, func(qp *QP) error {
							id.mu.Lock()
							id.qp = qp
							id.mu.Unlock()
							if err := id.Connect(ConnParams{}); err != nil {
								return err
							}
							wantCM(t, ch, CMEstablished)
							return nil
						})
					case "several at once":
						done := make(chan bool)
						l, err := b.dev.Listen()
						if err != nil {
							t.Fatal(err)
						}
						b.l = l
						for range 20 {
							go func() {
								r, err := l.Accept(t.Context())
								if err == nil {
									err = r.Accept(b.qp(QPConfig{}), ConnParams{})
								}
								if err != nil {
									t.Errorf("accept: %v", err)
								}
								done <- true
							}()
							go func() {
								if _, err := a.dev.Connect(t.Context(), b.dev.Addr(), a.qp(QPConfig{}), ConnParams{}); err != nil {
									t.Errorf("connect: %v", err)
								}
								done <- true
							}()
						}
						for range 40 {
							<-done
						}
					}
				}
			})
		})
	}
}

// A request that the peer has got is not repeated when the association ends before the
// answer: its consumer would see it twice.
func TestRequestsAreNotRepeatedOnceTheyArrived(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *sctptest.Network, a, b *restartable) {
		l, err := b.dev.Listen()
		if err != nil {
			t.Fatal(err)
		}
		requests := make(chan *ConnRequest, 10)
		go func() {
			for {
				r, err := l.Accept(t.Context())
				if err != nil {
					return
				}
				requests <- r
			}
		}()
		time.AfterFunc(time.Second, func() {
			for _, s := range b.dev.Associations() {
				s.Abort("enough")
			}
		})
		start := time.Now()
		_, err = a.dev.Connect(t.Context(), b.dev.Addr(), a.qp(QPConfig{}), ConnParams{})
		if err == nil || !strings.Contains(err.Error(), b.dev.Addr().String()) || time.Since(start) > 2*time.Second {
			t.Errorf("Connect: %v after %v", err, time.Since(start))
		}
		time.Sleep(time.Second)
		l.Close()
		if len(requests) != 1 {
			t.Errorf("%d requests, want 1", len(requests))
		}
	})
}

// wantTimeout checks the error of a connection setup that took too long: what it is, and
// that it names address and what was waited for.
func wantTimeout(t *testing.T, err error, addr string, what ...string) {
	t.Helper()
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v, want one that is context.DeadlineExceeded", err)
		return
	}
	for _, s := range append(what, addr) {
		if n := strings.Count(err.Error(), s); n != 1 {
			t.Errorf("error = %q names %q %d times", err, s, n)
		}
	}
}

// The time that a connection setup may take is that of ConnParams.Timeout, else that of
// the context, else a default of seconds, whatever it waits for.
func TestConnectTimeoutIsTheOneGiven(t *testing.T) {
	for _, tt := range []struct {
		name          string
		timeout, ctx  time.Duration
		want          time.Duration
		there, accept bool // the peer's device; its consumer after 12 s
	}{
		{"nobody, default", 0, 0, DefaultConnectTimeout, false, false},
		{"nobody, timeout", 3 * time.Second, 0, 3 * time.Second, false, false},
		{"nobody, context", 0, 25 * time.Second, 25 * time.Second, false, false},
		{"nobody, both", 30 * time.Second, 25 * time.Second, 25 * time.Second, false, false},
		{"no answer, default", 0, 0, DefaultConnectTimeout, true, false},
		{"no answer, timeout", 30 * time.Second, 0, 30 * time.Second, true, false},
		{"no answer, context", 0, 25 * time.Second, 25 * time.Second, true, false},
		{"late answer, timeout", 30 * time.Second, 0, 12 * time.Second, true, true},
		{"late answer, context", 0, 30 * time.Second, 12 * time.Second, true, true},
		{"late answer, no limit", -1, 0, 12 * time.Second, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *sctptest.Network, a, b *restartable) {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if tt.ctx > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.ctx)
				}
				defer cancel()
				what := "answer to the connection request"
				if !tt.there {
					net.Cut("10.0.0.1", "10.0.0.2")
					what = "no answer in" // of SCTP
				}
				l, err := b.dev.Listen()
				if err != nil {
					t.Fatal(err)
				}
				if tt.accept {
					go func() {
						r, err := l.Accept(ctx)
						if err != nil {
							t.Error(err)
							return
						}
						time.Sleep(12*time.Second - 4*time.Millisecond) // less the round trips
						if err := r.Accept(b.qp(QPConfig{}), ConnParams{}); err != nil {
							t.Error(err)
						}
					}()
				}
				start := time.Now()
				qp := a.qp(QPConfig{})
				_, err = a.dev.Connect(ctx, b.dev.Addr(), qp, ConnParams{Timeout: tt.timeout})
				if d := time.Since(start); d < tt.want-20*time.Millisecond || d > tt.want+20*time.Millisecond {
					t.Errorf("it took %v, want %v", d, tt.want)
				}
				if tt.accept {
					if err != nil {
						t.Error(err)
					}
					return
				}
				wantTimeout(t, err, b.dev.Addr().String(), what)
				<-qp.Done()
				wantTimeout(t, qp.Err(), b.dev.Addr().String(), what)
			})
		})
	}
}

// The same over TCP, where a device's own limit for startup frames does not count where
// the call has one.
func TestConnectTCPTimeoutIsTheOneGiven(t *testing.T) {
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer nl.Close() // it takes connections, and says nothing
	addr := nl.Addr().String()
	const short, long = 50 * time.Millisecond, 30 * time.Minute
	for _, tt := range []struct {
		name                 string
		timeout, ctx, device time.Duration
	}{
		{"timeout", short, 0, 0},
		{"timeout of many", short, long, long},
		{"context", 0, short, 0},
		{"context, device", 0, short, long},
		{"device", 0, 0, short},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newTCPNode(t, Config{TCP: ddpmpa.Params{Timeout: tt.device}})
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if tt.ctx > 0 {
				ctx, cancel = context.WithTimeout(ctx, tt.ctx)
			}
			defer cancel()
			qp := a.qp(QPConfig{})
			_, err := a.dev.ConnectTCP(ctx, addr, qp, ConnParams{Timeout: tt.timeout})
			wantTimeout(t, err, addr, "no MPA reply")
			wantTimeout(t, qp.Err(), addr, "no MPA reply")
		})
	}
	// The frame that the device waits for at most short otherwise comes later.
	a, b := newTCPNode(t, Config{TCP: ddpmpa.Params{Timeout: short}}), newTCPNode(t, Config{})
	l, err := b.dev.ListenTCP(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		r, err := l.Accept(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		timer := time.NewTimer(4 * short)
		defer timer.Stop()
		<-timer.C
		if err := r.Accept(b.qp(QPConfig{}), ConnParams{}); err != nil {
			t.Error(err)
		}
	}()
	if _, err := a.dev.ConnectTCP(testContext(t), l.Addr().String(), a.qp(QPConfig{}), ConnParams{Timeout: long}); err != nil {
		t.Error(err)
	}
}

// Errors of the connection setup name whom they are about, and are still what they were.
func TestConnectErrorsNameThePeer(t *testing.T) {
	a, b := newNode(t, Config{}), newNode(t, Config{})
	addr := b.dev.Addr().String()
	_, err := a.dev.Connect(testContext(t), b.dev.Addr(), a.qp(QPConfig{}), ConnParams{})
	if !errors.Is(err, ErrRefused) || err.Error() != "verbs: connect to "+addr+": connection refused" {
		t.Errorf("nobody listens: %v", err)
	}
	l, err := b.dev.Listen()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if r, err := l.Accept(testContext(t)); err == nil {
			r.Reject([]byte("no"))
		}
	}()
	_, err = a.dev.Connect(testContext(t), b.dev.Addr(), a.qp(QPConfig{}), ConnParams{})
	var rejected *RejectError
	if !errors.As(err, &rejected) || string(rejected.PrivateData) != "no" || !strings.Contains(err.Error(), addr) {
		t.Errorf("rejected: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := l.Accept(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), fmt.Sprintf("accept at %s: no connection request", addr)) {
		t.Errorf("nobody connects: %v", err)
	}
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nl.Close()
	if _, err := a.dev.ConnectTCP(testContext(t), nl.Addr().String(), a.qp(QPConfig{}), ConnParams{}); err == nil || strings.Count(err.Error(), nl.Addr().String()) != 1 {
		t.Errorf("nobody listens over TCP: %v", err)
	}
}

// Closing a queue pair ends what connects it.
func TestCloseEndsConnecting(t *testing.T) {
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer nl.Close()
	a := newTCPNode(t, Config{})
	qp := a.qp(QPConfig{})
	go func() {
		if c, err := nl.Accept(); err == nil {
			defer c.Close()
			c.Read(make([]byte, 1))
			qp.Close()
			<-qp.Done()
		}
	}()
	if _, err := a.dev.ConnectTCP(testContext(t), nl.Addr().String(), qp, ConnParams{Timeout: -1}); !errors.Is(err, ErrDisconnected) {
		t.Errorf("ConnectTCP: %v", err)
	}
	inBubble(t, func(t *testing.T, net *sctptest.Network, a, b *restartable) {
		net.Cut("10.0.0.1", "10.0.0.2")
		qp := a.qp(QPConfig{})
		time.AfterFunc(time.Second, func() { qp.Close() })
		start := time.Now()
		if _, err := a.dev.Connect(t.Context(), b.dev.Addr(), qp, ConnParams{Timeout: -1}); !errors.Is(err, ErrDisconnected) || time.Since(start) > 2*time.Second {
			t.Errorf("Connect: %v after %v", err, time.Since(start))
		}
	})
}
