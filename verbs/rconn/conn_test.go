package rconn

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
	"golang.org/x/net/nettest"
)

const testTimeout = 5 * time.Minute

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// newDevice opens a device on a loopback transport. At the end of the test
// everything must have been freed.
func newDevice(t *testing.T) *verbs.Device {
	t.Helper()
	tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := verbs.Open(verbs.Config{Transport: tr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// What a Close that lingered in vain has left behind is freed in its own time.
		err := dev.Close()
		for end := time.Now().Add(testTimeout); errors.Is(err, verbs.ErrBusy) && time.Now().Before(end); err = dev.Close() {
			time.Sleep(time.Millisecond)
		}
		if err != nil {
			t.Errorf("closing the device: %v", err)
		}
		tr.Close()
	})
	return dev
}

// pair is two devices, one of which listens.
type pair struct {
	t    *testing.T
	a, b *verbs.Device
	l    *Listener
	ca   Config
}

func newPair(t *testing.T, ca, cb Config) *pair {
	t.Helper()
	p := &pair{t: t, a: newDevice(t), b: newDevice(t), ca: ca}
	var err error
	if p.l, err = Listen(p.b, cb); err != nil {
		t.Fatal(err)
	}
	return p
}

// connect makes a connection. It is closed at the end of the test.
func (p *pair) connect() (a, b *Conn, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	accepted := make(chan error, 1)
	go func() {
		var err error
		b, err = p.l.Accept(ctx)
		accepted <- err
	}()
	if a, err = Dial(ctx, p.a, p.l.Addr(), p.ca); err != nil {
		return nil, nil, err
	}
	return a, b, <-accepted
}

func connected(t *testing.T, ca, cb Config) (a, b *Conn) {
	t.Helper()
	a, b, err := newPair(t, ca, cb).connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestStreamConformsToNet(t *testing.T) {
	p := newPair(t, Config{}, Config{Buffers: 3, Size: 1000})
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		a, b, err := p.connect()
		if err != nil {
			return nil, nil, nil, err
		}
		return a.Stream(), b.Stream(), func() { a.Close(); b.Close() }, nil
	})
}

func TestMessages(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	for _, c := range []struct {
		name   string
		ca, cb Config
		most   int // octets of a message
	}{
		{"defaults", Config{}, Config{}, 20_000},
		// A round trip for every few octets is much work.
		{"one small buffer", Config{Buffers: 1, Size: MinSize}, Config{Buffers: 1, Size: MinSize}, 2000},
		{"unlike", Config{Buffers: 5, Size: 100}, Config{Buffers: 90, Size: 5000}, 20_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := connected(t, c.ca, c.cb)
			ctx := testContext(t)
			const n = 60
			errs := make(chan error, 4)
			for dir, end := range [][2]*Conn{{a, b}, {b, a}} {
				length := func(rng *rand.Rand) int {
					switch rng.IntN(4) {
					case 0:
						return 0
					case 1:
						return rng.IntN(c.most)
					}
					return rng.IntN(300)
				}
				go func() {
					rng := rand.New(rand.NewPCG(seed, uint64(dir)))
					for i := range n {
						if err := end[0].Send(ctx, bytes.Repeat([]byte{byte(i)}, length(rng))); err != nil {
							errs <- err
							return
						}
					}
					errs <- nil
				}()
				go func() {
					rng := rand.New(rand.NewPCG(seed, uint64(dir)))
					var buf []byte
					for i := range n {
						msg, err := end[1].Recv(ctx, buf[:0])
						if err != nil {
							errs <- err
							return
						}
						if want := bytes.Repeat([]byte{byte(i)}, length(rng)); !bytes.Equal(msg, want) {
							errs <- errors.New("messages differ")
							return
						}
						buf = msg
					}
					errs <- nil
				}()
			}
			for range 4 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestASlowReaderHoldsUpItsOwnConnectionOnly(t *testing.T) {
	p := newPair(t, Config{}, Config{Buffers: 4})
	a, b, err := p.connect()
	if err != nil {
		t.Fatal(err)
	}
	a2, b2, err := p.connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range []*Conn{a, b, a2, b2} {
			c.Close()
		}
	})
	ctx, cancel := context.WithCancel(testContext(t))
	sent := 0
	for ; sent < 4; sent++ {
		if err := a.Send(ctx, []byte{byte(sent)}); err != nil {
			t.Fatal(err)
		}
	}
	blocked := make(chan error)
	go func() { blocked <- a.Send(ctx, []byte("too many")) }()
	// The other connection passes any number of messages meanwhile.
	for i := range 100 {
		if err := a2.Send(testContext(t), []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		if m, err := b2.Recv(testContext(t), nil); err != nil || len(m) != 1 || m[0] != byte(i) {
			t.Fatalf("message %d: %v, %v", i, m, err)
		}
	}
	select {
	case err := <-blocked:
		t.Fatalf("message over the credits: %v", err)
	default:
	}
	cancel()
	if err := <-blocked; !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	// Nothing of it was sent, and the connection goes on.
	go func() { blocked <- a.Send(testContext(t), []byte("next")) }()
	for i := range 4 {
		if m, err := b.Recv(testContext(t), nil); err != nil || m[0] != byte(i) {
			t.Fatalf("message %d: %v, %v", i, m, err)
		}
	}
	if m, err := b.Recv(testContext(t), nil); err != nil || string(m) != "next" {
		t.Errorf("message %q, %v", m, err)
	}
	if err := <-blocked; err != nil {
		t.Error(err)
	}
}

func TestEndOfConnection(t *testing.T) {
	a, b := connected(t, Config{}, Config{})
	ctx := testContext(t)
	for i := range byte(10) {
		if err := a.Send(ctx, []byte{i}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	for i := range byte(10) {
		if m, err := b.Recv(ctx, nil); err != nil || len(m) != 1 || m[0] != i {
			t.Fatalf("message %d: %v, %v", i, m, err)
		}
	}
	if _, err := b.Recv(ctx, nil); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
	if err := b.Send(ctx, []byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("sending to nobody: %v", err)
	}
	for name, err := range map[string]error{"Close": a.Close(), "Send": a.Send(ctx, nil)} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s of a closed connection: %v", name, err)
		}
	}
	if _, err := a.Recv(ctx, nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Recv of a closed connection: %v", err)
	}
	// Close ends calls that wait.
	blocked := make(chan error)
	a, b = connected(t, Config{}, Config{})
	go func() {
		_, err := a.Recv(testContext(t), nil)
		blocked <- err
	}()
	a.Close()
	if err := <-blocked; !errors.Is(err, net.ErrClosed) {
		t.Errorf("waiting Recv: %v", err)
	}
	b.Close()
}

func TestInterruptedMessages(t *testing.T) {
	// Half a message is of no use: the connection ends.
	a, b := connected(t, Config{}, Config{Buffers: 1, Size: 100})
	ctx, cancel := context.WithCancel(testContext(t))
	sent := make(chan error)
	go func() { sent <- a.Send(ctx, make([]byte, 1000)) }()
	got := make(chan error)
	rctx, rcancel := context.WithCancel(testContext(t))
	// The first part is there: the sender waits for a credit.
	for {
		b.mu.Lock()
		n := b.n
		b.mu.Unlock()
		if n > 0 {
			break
		}
		if err := testContext(t).Err(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-sent; !errors.Is(err, context.Canceled) {
		t.Errorf("Send: %v", err)
	}
	go func() {
		_, err := b.Recv(rctx, nil)
		got <- err
	}()
	if err := <-got; err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("Recv: %v", err)
	}
	rcancel()
	if err := a.Send(testContext(t), nil); err == nil {
		t.Error("the connection goes on")
	}
}

// A Recv whose context ends loses nothing: the next one goes on with the message.
func TestRecvContextLosesNothing(t *testing.T) {
	a, b := connected(t, Config{}, Config{Buffers: 1, Size: 100})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	msgs := make([][]byte, 50)
	for i := range msgs {
		msgs[i] = make([]byte, rng.IntN(3000))
		for k := range msgs[i] {
			msgs[i][k] = byte(rng.Uint32())
		}
	}
	sent := make(chan error, 1)
	go func() {
		for _, m := range msgs {
			if err := a.Send(testContext(t), m); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	ended := 0
	for i, want := range msgs {
		for prefix := []byte{1, 2, 3}; ; {
			ctx, cancel := context.WithTimeout(testContext(t), time.Duration(rng.IntN(100))*time.Microsecond)
			got, err := b.Recv(ctx, prefix)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) && len(got) == len(prefix) {
				ended++
				continue
			}
			if err != nil || !bytes.Equal(got, append(prefix[:3:3], want...)) {
				t.Fatalf("message %d of %d bytes: %d bytes, %v", i, len(want), len(got)-3, err)
			}
			break
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	t.Logf("%d messages, %d calls given up", len(msgs), ended)
}

func TestMessageTooLong(t *testing.T) {
	a, b := connected(t, Config{}, Config{MaxMessage: 1000, Size: 300})
	go a.Send(testContext(t), make([]byte, 1001))
	if _, err := b.Recv(testContext(t), nil); !errors.Is(err, ErrTooLong) {
		t.Errorf("Recv: %v", err)
	}
	a, b = connected(t, Config{}, Config{MaxMessage: 1000, Size: 300})
	go a.Send(testContext(t), make([]byte, 1000))
	if m, err := b.Recv(testContext(t), nil); err != nil || len(m) != 1000 {
		t.Errorf("Recv: %d bytes, %v", len(m), err)
	}
}

// TestHostilePeer connects queue pairs that break the rules. Each ends its own
// connection.
func TestHostilePeer(t *testing.T) {
	p := newPair(t, Config{}, Config{Buffers: 2, Size: 100})
	good, goodPeer, err := p.connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { good.Close(); goodPeer.Close() })
	pd := p.a.AllocPD()
	cq, err := p.a.NewCQ(100)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cq.Close(); pd.Close() }()
	dial := func(private []byte) (*verbs.QP, error) {
		qp, err := pd.NewQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.a.Connect(testContext(t), p.l.Addr(), qp, verbs.ConnParams{PrivateData: private})
		return qp, err
	}
	data := func(flags byte, credits uint16, n int) []byte {
		b := make([]byte, headerLen+n)
		header{flags, credits}.put(b)
		return b
	}
	for _, tt := range []struct {
		name string
		msgs [][]byte
	}{
		{"short", [][]byte{{1, 0, 0}}},
		{"undefined flag", [][]byte{data(4, 0, 0)}},
		{"more without data", [][]byte{data(flagMore, 0, 0)}},
		{"credits with data after them", [][]byte{data(0, 1, 5)}},
		{"credits nobody used", [][]byte{data(0, 1, 0)}},
		{"more data than credits", [][]byte{data(flagData, 0, 1), data(flagData, 0, 1), data(flagData, 0, 1)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			accepted := make(chan *Conn, 1)
			go func() {
				c, _ := p.l.Accept(testContext(t))
				accepted <- c
			}()
			qp, err := dial(card{4, 100}.append(nil))
			if err != nil {
				t.Fatal(err)
			}
			defer qp.Close()
			c := <-accepted
			defer c.Close()
			for _, m := range tt.msgs {
				if err := qp.PostSend(verbs.SendWR{Op: verbs.OpSend, Inline: m}); err != nil && !errors.Is(err, verbs.ErrQPState) {
					t.Fatal(err)
				}
			}
			select {
			case <-qp.Done():
			case <-testContext(t).Done():
				t.Error("the queue pair goes on")
			}
			for {
				if _, err := c.Recv(testContext(t), nil); err != nil {
					if !errors.Is(err, ErrProtocol) {
						t.Errorf("Recv: %v", err)
					}
					break
				}
			}
		})
	}
	// Requests that are not of this package are rejected; the next one counts.
	for _, b := range [][]byte{nil, []byte("something else"), card{0, 100}.append(nil), card{1, 1}.append(nil), card{1, MaxSize + 1}.append(nil)} {
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(testContext(t))
		go func() {
			p.l.Accept(ctx)
			close(done)
		}()
		qp, err := dial(b)
		var rej *verbs.RejectError
		if !errors.As(err, &rej) {
			t.Errorf("private data %x: %v", b, err)
		}
		qp.Close()
		cancel()
		<-done
	}
	go good.Send(testContext(t), []byte("still here"))
	if m, err := goodPeer.Recv(testContext(t), nil); err != nil || string(m) != "still here" {
		t.Errorf("other connection: %q, %v", m, err)
	}
}

func TestConfigLimits(t *testing.T) {
	dev := newDevice(t)
	for _, c := range []Config{{Buffers: -1}, {Buffers: MaxBuffers + 1}, {Size: MinSize - 1}, {Size: MaxSize + 1}, {MaxMessage: -1}} {
		if _, err := Listen(dev, c); !errors.Is(err, ErrInvalid) {
			t.Errorf("Listen %+v: %v", c, err)
		}
		if _, err := Dial(t.Context(), dev, dev.Addr(), c); !errors.Is(err, ErrInvalid) {
			t.Errorf("Dial %+v: %v", c, err)
		}
	}
	if _, err := Dial(testContext(t), dev, newDevice(t).Addr(), Config{}); !errors.Is(err, verbs.ErrRefused) {
		t.Errorf("Dial of a device that does not listen: %v", err)
	}
}

func TestListenerCloses(t *testing.T) {
	p := newPair(t, Config{}, Config{})
	l := p.l.Streams()
	if l.Addr().String() != p.b.Addr().String() {
		t.Errorf("address %v", l.Addr())
	}
	errs := make(chan error)
	go func() {
		_, err := l.Accept()
		errs <- err
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-errs; !errors.Is(err, net.ErrClosed) {
		t.Errorf("waiting Accept: %v", err)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closing again: %v", err)
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	a, b := connected(t, Config{}, Config{})
	ctx := testContext(t)
	msg, buf := make([]byte, 5000), make([]byte, 0, 10000)
	run := func() {
		if err := a.Send(ctx, msg); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Recv(ctx, buf); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		run()
	}
	// The layers below and the runtime may allocate now and then.
	if n := testing.AllocsPerRun(300, run); n >= 2 && !testenv.Race {
		t.Errorf("%v allocations for a message", n)
	}
}
