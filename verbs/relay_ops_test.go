package verbs

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/internal/relaytest"
	"github.com/weftstack/weft/sctp/relay"
)

// farPair makes two devices at different sites.
func farPair(t *testing.T, w *relaytest.World, cfg Config, set func(*relay.NodeConfig)) (a, b *far) {
	t.Helper()
	a, b = newFar(t, w, 1, 1, cfg, set), newFar(t, w, 2, 1, cfg, set)
	return a, b
}

func (f *far) close() { f.process.Close() }

// What the peer has no right to is refused by the target as over SCTP, on that queue pair alone.
func TestRelayOutOfBounds(t *testing.T) {
	inSites(t, 2, 1, func(t *testing.T, w *relaytest.World) {
		a, b := farPair(t, w, Config{}, nil)
		defer a.close()
		defer b.close()
		outOfBounds(t, a.node, b.node, func(t *testing.T) (qa, qb *QP) {
			return connectFar(t, a, b, QPConfig{}, QPConfig{})
		})
		if n := b.dev.RelayStats().Associations; n != 1 {
			t.Errorf("%d associations, want the one that all queue pairs had", n)
		}
	})
}

// Atomics of many queue pairs between the same two processes on one counter, then a message that invalidates the
// right to it.
func TestRelayAtomicsAndInvalidate(t *testing.T) {
	inSites(t, 2, 1, func(t *testing.T, w *relaytest.World) {
		const pairs, each = 20, 30
		a, b := farPair(t, w, Config{}, nil)
		defer a.close()
		defer b.close()
		word := b.mr(8, RemoteAtomic|RemoteRead)
		old := a.mr(8*pairs*each, LocalWrite)
		var qa, qb [pairs]*QP
		for i := range pairs {
			qa[i], qb[i] = connectFar(t, a, b, QPConfig{SendDepth: each + 1}, QPConfig{})
		}
		for i := range pairs {
			for k := range each {
				wr := SendWR{ID: 1, Op: OpFetchAdd, Flags: Signaled, SGL: []SGE{old.Slice(8*(i*each+k), 8)}, Remote: word.Remote(), Operand: 1}
				if err := qa[i].PostSend(wr); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range pairs * each {
			want(t, a.cq, 1, StatusSuccess)
		}
		seen := make([]bool, pairs*each)
		for i := range seen {
			n := binary.NativeEndian.Uint64(old.Bytes()[8*i:])
			if n >= uint64(len(seen)) || seen[n] {
				t.Fatalf("original value %d, twice or too large", n)
			}
			seen[n] = true
		}
		if n := binary.NativeEndian.Uint64(word.Bytes()); n != pairs*each {
			t.Errorf("counter = %d, want %d", n, pairs*each)
		}

		fast, err := b.pd.AllocMR(100)
		if err != nil {
			t.Fatal(err)
		}
		mem := make([]byte, 100)
		if err := qb[0].PostSend(SendWR{ID: 2, Op: OpFastRegister, Flags: Signaled,
			Bind: &Bind{MR: fast, Buf: mem, Access: RemoteWrite}}); err != nil {
			t.Fatal(err)
		}
		want(t, b.cq, 2, StatusSuccess)
		if err := qb[0].PostRecv(RecvWR{ID: 3}); err != nil {
			t.Fatal(err)
		}
		to := RemoteBuf{STag: fast.STag()}
		if err := qa[0].PostSend(
			SendWR{Op: OpWrite, Inline: []byte("in time"), Remote: to},
			SendWR{Op: OpSendInvalidate, Invalidate: to.STag},
			SendWR{Op: OpWrite, Inline: []byte("too late"), Remote: to},
		); err != nil {
			t.Fatal(err)
		}
		if wc := want(t, b.rcq, 3, StatusSuccess); wc.Flags&WithInvalidate == 0 || wc.Invalidated != to.STag {
			t.Errorf("%+v", wc)
		}
		wantDone(t, qa[0], ddp.FaultSTag)
		if string(mem[:8]) != "in time\x00" {
			t.Errorf("memory is %q", mem[:8])
		}
		for i := 1; i < pairs; i++ {
			if qa[i].State() != StateRTS || qb[i].State() != StateRTS {
				t.Errorf("queue pair %d is disturbed: %v, %v", i, qa[i].Err(), qb[i].Err())
			}
		}
	})
}

// Private data, Reject, no listener, and the connection manager.
func TestRelayConnectionManager(t *testing.T) {
	inSites(t, 2, 1, func(t *testing.T, w *relaytest.World) {
		a, b := farPair(t, w, Config{Service: 9}, nil)
		defer a.close()
		defer b.close()
		ctx := testContext(t)
		to := b.process.Address()
		if _, err := a.dev.ConnectRelay(ctx, to, a.qp(QPConfig{}), ConnParams{}); !errors.Is(err, ErrRefused) {
			t.Errorf("without listener: %v", err)
		}
		l, err := b.dev.Listen()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if r, err := l.Accept(ctx); err == nil {
				_ = r.Reject(append([]byte("no "), r.PrivateData...))
			}
		}()
		var rejected *RejectError
		_, err = a.dev.ConnectRelay(ctx, to, a.qp(QPConfig{}), ConnParams{PrivateData: []byte("please")})
		if !errors.As(err, &rejected) || string(rejected.PrivateData) != "no please" {
			t.Errorf("rejected: %v", err)
		}
		if _, err := a.dev.ConnectRelay(ctx, to, a.qp(QPConfig{}), ConnParams{PrivateData: make([]byte, MaxPrivateData+1)}); !errors.Is(err, ErrPrivateData) {
			t.Errorf("private data too long: %v", err)
		}
		if _, err := a.dev.ConnectRelay(ctx, a.process.Address(), a.qp(QPConfig{}), ConnParams{}); !errors.Is(err, ddpsctp.ErrSelf) {
			t.Errorf("itself: %v", err)
		}
		if _, err := a.dev.ConnectRelay(ctx, relay.Address{}, a.qp(QPConfig{}), ConnParams{}); !errors.Is(err, relay.ErrAddress) {
			t.Errorf("no address: %v", err)
		}
		if _, err := bare(t).ConnectRelay(ctx, to, a.qp(QPConfig{}), ConnParams{}); err == nil {
			t.Error("connected by a device that has no relay node")
		}
		_ = l.Close()

		bch, err := b.dev.NewCMChannel()
		if err != nil {
			t.Fatal(err)
		}
		listener, err := bch.NewID("context")
		if err != nil {
			t.Fatal(err)
		}
		if err := listener.Listen(0); err != nil {
			t.Fatal(err)
		}
		ach, err := a.dev.NewCMChannel()
		if err != nil {
			t.Fatal(err)
		}
		event := func(ch *CMChannel, want CMEventType) CMEvent {
			t.Helper()
			e, err := ch.GetEvent(ctx)
			if err != nil || e.Type != want {
				t.Fatalf("event %v %v, error %v, want %v", e.Type, e.Err, err, want)
			}
			return e
		}
		id, err := ach.NewID(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := id.ResolveProcess(to, 0); err != nil {
			t.Fatal(err)
		}
		event(ach, CMAddrResolved)
		if err := id.ResolveRoute(0); err != nil {
			t.Fatal(err)
		}
		event(ach, CMRouteResolved)
		if err := id.CreateQP(a.pd, QPConfig{SendCQ: a.cq, RecvCQ: a.rcq}); err != nil {
			t.Fatal(err)
		}
		if err := id.Connect(ConnParams{PrivateData: []byte("hello")}); err != nil {
			t.Fatal(err)
		}
		e := event(bch, CMConnectRequest)
		if string(e.PrivateData) != "hello" || e.ID.RemoteProcess() != a.process.Address() || id.RemoteProcess() != to {
			t.Errorf("request %q of %v, to %v", e.PrivateData, e.ID.RemoteProcess(), id.RemoteProcess())
		}
		if err := e.ID.CreateQP(b.pd, QPConfig{SendCQ: b.cq, RecvCQ: b.rcq}); err != nil {
			t.Fatal(err)
		}
		if err := e.ID.Accept(ConnParams{PrivateData: []byte("hi")}); err != nil {
			t.Fatal(err)
		}
		event(bch, CMEstablished)
		if e := event(ach, CMEstablished); string(e.PrivateData) != "hi" {
			t.Errorf("accepted with %q", e.PrivateData)
		}
		if err := id.Disconnect(); err != nil {
			t.Fatal(err)
		}
		event(ach, CMDisconnected)
		event(bch, CMDisconnected)
	})
}

// The process at the other end dies: what was posted is flushed once the peer timeout is over, and a queue pair
// that is closed on a network that is dead lets go of memory after CloseTimeout.
func TestRelayPeerDies(t *testing.T) {
	inSites(t, 2, 1, func(t *testing.T, w *relaytest.World) {
		set := func(c *relay.NodeConfig) { c.PeerTimeout = 20 * time.Second }
		a, b := farPair(t, w, Config{}, set)
		defer a.close()
		defer b.close()
		const size = 8 << 20 // more than a flow has under way
		src, dst := a.mr(size, 0), b.mr(size, RemoteWrite|RemoteRead)
		one, _ := connectFar(t, a, b, QPConfig{}, QPConfig{})
		two, _ := connectFar(t, a, b, QPConfig{}, QPConfig{})
		write := func(qp *QP, id uint64) {
			t.Helper()
			if err := qp.PostSend(SendWR{ID: id, Op: OpWrite, Flags: Signaled, SGL: []SGE{src.Slice(0, size)}, Remote: dst.Remote()}); err != nil {
				t.Fatal(err)
			}
		}
		write(one, 1)
		want(t, a.cq, 1, StatusSuccess)
		w.CutNode(2, 1)
		write(one, 2)
		began := time.Now()
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, a.cq, 2, StatusFlush) // the other queue pair decides how long that takes
		if d := time.Since(began); d > 25*time.Second {
			t.Errorf("flushed after %v", d)
		}
		wantDone(t, two, relay.ErrUnreachable)
		if err := src.Close(); err != nil {
			t.Errorf("the memory is in use: %v", err)
		}
		if n := a.process.Stats().SendHeld; n != 0 {
			t.Errorf("%d bytes held", n)
		}

		// The process is back, the same one: all goes on with new connections.
		w.RestoreNode(2, 1)
		time.Sleep(10 * time.Second)
		src = a.mr(size, 0)
		three, _ := connectFar(t, a, b, QPConfig{}, QPConfig{})
		write(three, 3)
		want(t, a.cq, 3, StatusSuccess)
		w.CutNode(2, 1)
		write(three, 4)
		began = time.Now()
		if err := three.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, a.cq, 4, StatusFlush)
		if d := time.Since(began); d < DefaultCloseTimeout || d > DefaultCloseTimeout+time.Second {
			t.Errorf("flushed after %v, want CloseTimeout", d)
		}
		if err := src.Close(); err != nil {
			t.Errorf("the memory is in use: %v", err)
		}
	})
}

// Messages that find the shared receive queue empty stop their queue pair within the window, and nobody else.
func TestRelaySRQRunsDry(t *testing.T) {
	inSites(t, 2, 1, func(t *testing.T, w *relaytest.World) {
		const window = 256 << 10
		a, b := farPair(t, w, Config{}, func(c *relay.NodeConfig) { c.FlowWindow = window })
		defer a.close()
		defer b.close()
		srq, err := b.pd.NewSRQ(SRQConfig{Depth: 4})
		if err != nil {
			t.Fatal(err)
		}
		other, otherPeer := connectFar(t, a, b, QPConfig{}, QPConfig{})
		qa, _ := connectFar(t, a, b, QPConfig{SendDepth: 2000}, QPConfig{SRQ: srq})
		const size, msgs = 4000, 1000
		src, mr := a.mr(size, 0), b.mr(size, LocalWrite)
		for i := range uint64(msgs) {
			if err := qa.PostSend(SendWR{ID: 1, Op: OpSend, Flags: Signaled, SGL: []SGE{src.Slice(0, size)}}); err != nil {
				t.Fatal(i, err)
			}
		}
		time.Sleep(10 * time.Second)
		if held := b.process.Stats().RecvHeld; held < window/4 || held > 2*window {
			t.Errorf("%d bytes are held for messages without a receive, the window is %d", held, window)
		}
		if n := a.cq.Len(); n == 0 || n > window/size {
			t.Errorf("%d messages were taken by the target, the window is %d", n, window)
		}
		dst := b.mr(1<<20, RemoteWrite)
		for range 5 {
			if err := otherPeer.PostRecv(RecvWR{ID: 8}); err != nil {
				t.Fatal(err)
			}
			big := a.mr(1<<20, 0)
			if err := other.PostSend(SendWR{Op: OpWriteImm, SGL: []SGE{big.Slice(0, 1<<20)}, Remote: dst.Remote()}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			want(t, b.rcq, 8, StatusSuccess)
			if d := time.Since(began); d > time.Second {
				t.Errorf("1 MiB of another queue pair took %v", d)
			}
		}
		for range msgs {
			if err := srq.PostRecv(RecvWR{ID: 9, SGL: []SGE{mr.Slice(0, size)}}); err != nil {
				t.Fatal(err)
			}
			if wc := want(t, b.rcq, 9, StatusSuccess); wc.Len != size {
				t.Errorf("%d bytes", wc.Len)
			}
		}
		time.Sleep(time.Second)
		if held := b.process.Stats().RecvHeld; held != 0 {
			t.Errorf("%d bytes are held", held)
		}
	})
}

// Reads, writes and sends go on over gateways that are killed one after the other; each work request completes once.
func TestRelayGatewaysKilled(t *testing.T) {
	inSites(t, 2, 2, func(t *testing.T, w *relaytest.World) {
		a, b := farPair(t, w, Config{}, nil)
		defer a.close()
		defer b.close()
		qa, qb := connectFar(t, a, b, QPConfig{}, QPConfig{})
		var kills atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range uint16(100) {
				select {
				case <-ctx.Done():
					return
				case <-time.After(100 * time.Millisecond):
				}
				site, gw := 1+i%2, 1+i/2%2
				w.Kill(site, gw)
				kills.Add(1)
				time.Sleep(900 * time.Millisecond)
				w.Revive(site, gw)
			}
		}()
		began := time.Now()
		writeReadSend(t, a.node, b.node, qa, qb, 60<<20)
		t.Logf("120 MiB in %v, %d gateways killed", time.Since(began), kills.Load())
		cancel()
		<-done
		if kills.Load() < 2 {
			t.Error("too quick")
		}
	})
}
