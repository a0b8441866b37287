package sctp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// Everything at once: loss, reordering, duplication and damage; associations that come and
// go, gracefully, by ABORT, by a crash, and with a restart of the peer; readers that pause,
// and contexts that end at any moment; resets of streams, and messages of partial
// reliability beside those that count. What Send took is delivered once and in order, or
// was still under way when the association ended; what Send refused never is; and when
// all is over the memory is what it was before.
func TestConservation(t *testing.T) {
	associations := 96
	if testenv.Soak(t, 0) > 0 {
		associations = 10_000
	}
	if sctp.RaceEnabled {
		associations /= 4
	}
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("WEFT_CONSERVATION"), 10, 64); err == nil {
		seed = s // of a failure
	}
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		w := newConservation(t, seed)
		w.run(conserveWorkers) // what is kept for the next time is there after that
		before := w.rest()
		w.run(associations)
		after := w.rest()
		t.Logf("%d associations, %d messages; heap %d KiB before, %d after", associations, w.messages, before>>10, after>>10)
		if grown := after - before; grown > 1<<20 {
			t.Errorf("seed %d: the heap grew by %d KiB over %d associations", seed, grown>>10, associations)
		}
		w.close()
	})
}

const (
	conserveWorkers = 8 // hosts that open associations, one after the other
	conserveStreams = 4 // the last one is unordered
	conserveNoise   = conserveStreams
	conserveCount   = 8 // messages per stream, direction and life of an association
)

// The ways in which an association ends.
const (
	endByClient = iota // gracefully
	endByServer
	endByBoth
	endAbort
	endServerAbort
	endCrash   // of the client, whose peer has to find out
	endRestart // of the client, then gracefully
	numEnds
)

// conservation is a server and its clients.
type conservation struct {
	t        *testing.T
	seed     uint64
	net      *sctptest.Network
	server   *sctp.Transport
	listener *sctp.Endpoint
	hosts    [conserveWorkers]*sctptest.Host
	clients  [conserveWorkers]*sctp.Transport
	ports    [conserveWorkers]uint16
	serving  sync.WaitGroup

	mu       sync.Mutex
	next     int // the next association; guarded by mu
	messages int // delivered; guarded by mu
	owners   conservedOwners
	peers    map[netip.AddrPort]*conserved   // by address and SCTP port; guarded by mu
	restarts map[*sctp.Association]chan bool // guarded by mu
}

func newConservation(t *testing.T, seed uint64) *conservation {
	w := &conservation{t: t, seed: seed, net: sctptest.NewNetwork(seed), peers: map[netip.AddrPort]*conserved{}, restarts: map[*sctp.Association]chan bool{}}
	w.net.SetDefault(sctptest.Link{Delay: 3 * time.Millisecond, Jitter: time.Millisecond, MTU: 1500,
		Loss: 0.02, Duplicate: 0.02, Reorder: 0.02, Corrupt: 0.002})
	w.server = w.transport(w.net.NewHost(addrB))
	for i := range w.hosts {
		w.hosts[i] = w.net.NewHost(fmt.Sprintf("10.0.1.%d", i+1))
		w.clients[i] = w.transport(w.hosts[i])
		w.ports[i] = 1000
	}
	var err error
	if w.listener, err = w.server.Listen(serverPort, &sctp.Config{RecvBuffer: 48 << 10, SendBuffer: 32 << 10, HeartbeatInterval: 5 * time.Second,
		OnNotify: func(a *sctp.Association, n sctp.Notification) {
			if n.Kind == sctp.NotifyRestart {
				close(w.restarted(a))
			}
		}}); err != nil {
		t.Fatal(err)
	}
	go w.accept()
	return w
}

// transport is memTransport whose transport is not kept until the end of the test.
func (w *conservation) transport(h *sctptest.Host) *sctp.Transport {
	pc, err := h.ListenPacket(netip.AddrPortFrom(h.Addrs()[0], sctp.DefaultUDPPort).String())
	if err != nil {
		w.t.Fatal(err)
	}
	tr, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})
	if err != nil {
		w.t.Fatal(err)
	}
	return tr
}

// restarted returns the channel that is closed when the peer of a restarts.
func (w *conservation) restarted(a *sctp.Association) chan bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.restarts[a] == nil {
		w.restarts[a] = make(chan bool)
	}
	return w.restarts[a]
}

func (w *conservation) accept() {
	for {
		a, err := w.listener.Accept(context.Background())
		if err != nil {
			return
		}
		key := netip.AddrPortFrom(a.RemoteAddr().Addrs[0].Addr(), a.RemoteAddr().Port)
		w.mu.Lock()
		c := w.peers[key]
		w.mu.Unlock()
		if c == nil {
			w.t.Errorf("seed %d: an association of %v, which opened none", w.seed, key)
			a.Abort("")
			continue
		}
		w.serving.Go(func() {
			c.serve(a)
			w.mu.Lock()
			delete(w.restarts, a)
			w.mu.Unlock()
		})
	}
}

// run has the clients open and end that many associations.
func (w *conservation) run(n int) {
	var wg sync.WaitGroup
	w.mu.Lock()
	until := w.next + n
	w.mu.Unlock()
	for i := range w.clients {
		wg.Go(func() {
			for {
				w.mu.Lock()
				k := w.next
				if k < until {
					w.next++
				}
				w.mu.Unlock()
				if k == until || w.t.Failed() {
					return
				}
				w.associate(i, k)
			}
		})
	}
	wg.Wait()
	w.serving.Wait()
}

// rest returns what the heap holds when all is over: after what has to be remembered of
// associations that are gone, which is as long as their cookies live.
func (w *conservation) rest() int64 {
	time.Sleep(time.Hour)
	synctest.Wait()
	for i, tr := range append(w.clients[:], w.server) {
		if n := tr.Stats().Associations; n > 0 {
			w.t.Errorf("seed %d: %d associations are left at transport %d", w.seed, n, i)
		}
	}
	if n := w.owners.Load(); n != 0 {
		w.t.Errorf("seed %d: %d owners were not told, or twice", w.seed, n)
	}
	var m runtime.MemStats
	for range 3 { // pools give things up in the second collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func (w *conservation) close() {
	for _, tr := range w.clients {
		tr.Close()
	}
	w.server.Close()
	w.net.Close()
}

// flow is one direction of an association.
type flow struct {
	mu   sync.Mutex
	sent [conserveStreams + 1][]label // what Send took
	got  [conserveStreams + 1][]label
}

// label tells messages of a stream apart: the life of the association, counted from the
// restart of the client, which of the messages it is, and the how manieth try to send it.
type label struct{ life, seq, try uint32 }

func (l label) before(m label) bool { return l.life < m.life || l.life == m.life && l.seq < m.seq }

// conserved is one association.
type conserved struct {
	w     *conservation
	id    int
	end   int
	given bool // the attempt to connect was given up
	up    flow // to the server
	down  flow

	done chan struct{} // closed when the client has sent all
	back chan struct{} // closed when the server has
	read chan struct{} // closed when the client has read all
}

func (c *conserved) rng(who uint64) *rand.Rand {
	return rand.New(rand.NewPCG(c.w.seed+uint64(c.id), who))
}

// graceful tells that everything is delivered before the association ends.
func (c *conserved) graceful() bool { return c.end <= endByBoth || c.end == endRestart }

// associate opens association k from client i and sees it to its end.
func (w *conservation) associate(i, k int) {
	c := &conserved{w: w, id: k, end: k % numEnds, done: make(chan struct{}), back: make(chan struct{}), read: make(chan struct{})}
	defer close(c.read)
	rng := c.rng(0)
	addr := w.hosts[i].Addrs()[0]
	port := w.ports[i]
	if w.ports[i]++; w.ports[i] == 40_000 {
		w.ports[i] = 1000
	}
	key := netip.AddrPortFrom(addr, port)
	w.mu.Lock()
	w.peers[key] = c
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.peers, key)
		w.mu.Unlock()
	}()
	cfg := &sctp.Config{RecvBuffer: 16 << 10 << rng.IntN(4), SendBuffer: 16 << 10, HeartbeatInterval: 5 * time.Second,
		NoInterleaving: rng.IntN(2) == 0, NoRACK: rng.IntN(4) == 0, Bundle: rng.IntN(4) == 0}
	ctx, cancel := context.WithCancel(context.Background())
	if c.given = rng.IntN(8) == 0; c.given {
		ctx, cancel = context.WithTimeout(context.Background(), time.Duration(rng.IntN(15))*time.Millisecond)
	}
	defer cancel()
	e, a, err := w.dial(ctx, i, port, cfg)
	if err != nil {
		if !c.given {
			w.t.Errorf("seed %d, association %d: %v", w.seed, k, err)
		}
		close(c.done)
		e.Close()
		time.Sleep(10 * time.Minute) // what the server knows of it ends meanwhile
		return
	}
	c.given = false
	var reading sync.WaitGroup
	reading.Go(func() { c.receive(a, &c.down, 1) })
	switch c.end {
	case endAbort, endCrash, endRestart:
		go func() { c.sendAll(a, &c.up, 0, 2) }() // until it ends
		time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
	default:
		c.sendAll(a, &c.up, 0, 2)
	}
	if c.end == endAbort {
		a.Abort("enough")
	}
	if c.end == endCrash || c.end == endRestart {
		w.net.Cut(addr.String(), addrB)
		w.clients[i].Close()
		reading.Wait()
		time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
		w.net.Restore(addr.String(), addrB)
		w.clients[i] = w.transport(w.hosts[i])
	}
	if c.end == endRestart {
		if e, a, err = w.dial(context.Background(), i, port, cfg); err != nil {
			w.t.Errorf("seed %d, association %d: restart: %v", w.seed, k, err)
			close(c.done)
			return
		}
		reading.Go(func() { c.receive(a, &c.down, 1) })
		c.sendAll(a, &c.up, 1, 3)
	}
	close(c.done)
	if c.graceful() {
		<-c.back
		if c.end != endByServer {
			c.shutdown(a)
		}
	}
	<-a.Done()
	reading.Wait()
	e.Close()
}

func (w *conservation) dial(ctx context.Context, i int, port uint16, cfg *sctp.Config) (*sctp.Endpoint, *sctp.Association, error) {
	e, err := w.clients[i].Listen(port, cfg)
	if err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	a, err := e.Connect(ctx, w.listener.Addr())
	return e, a, err
}

// serve is the server's end.
func (c *conserved) serve(a *sctp.Association) {
	rng := c.rng(10)
	restarted := c.w.restarted(a)
	var reading sync.WaitGroup
	reading.Go(func() { c.receive(a, &c.up, 11) })
	if c.end == endRestart {
		c.sendAll(a, &c.down, 0, 12)
		select {
		case <-restarted:
		case <-a.Done():
			if !c.given {
				c.w.t.Errorf("seed %d, association %d: ended instead of restarting: %v", c.w.seed, c.id, a.Err())
			}
		}
		c.sendAll(a, &c.down, 1, 13)
	} else {
		c.sendAll(a, &c.down, 0, 12)
	}
	if c.end == endServerAbort {
		time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
		a.Abort("enough")
	}
	close(c.back)
	if c.graceful() {
		<-c.done
		if c.given {
			a.Abort("nobody there")
		} else if c.end != endByClient && c.end != endRestart {
			c.shutdown(a)
		}
	}
	<-a.Done()
	reading.Wait()
	<-c.read
	c.check("to the server", &c.up)
	c.check("to the client", &c.down)
}

// shutdown ends the association gracefully. The other end may do the same.
func (c *conserved) shutdown(a *sctp.Association) {
	if err := a.Shutdown(context.Background()); err != nil && a.Err() != nil {
		c.w.t.Errorf("seed %d, association %d: Shutdown: %v, %v", c.w.seed, c.id, err, a.Err())
	}
}

// sendAll sends on all streams at once, in a life of the association.
func (c *conserved) sendAll(a *sctp.Association, f *flow, life uint32, who uint64) {
	var wg sync.WaitGroup
	for sid := range uint16(conserveStreams + 1) {
		wg.Go(func() { c.send(a, f, life, sid, c.rng(who<<8|uint64(sid))) })
	}
	wg.Wait()
}

func (c *conserved) send(a *sctp.Association, f *flow, life uint32, sid uint16, rng *rand.Rand) {
	opts := sctp.SendOptions{Stream: sid, Unordered: sid == conserveStreams-1}
	for seq := range uint32(conserveCount) {
		n := 20 + rng.IntN(1<<(4+rng.IntN(6)))
		if c.end <= endByBoth && sid < conserveStreams-1 && rng.IntN(4) == 0 {
			n = rng.IntN(60_000) + 20 // more than the reader's buffer may hold
		}
		if sid == conserveNoise {
			if opts.PR = sctp.Timed; seq%2 == 0 {
				opts.PR = sctp.LimitedRetransmissions
			}
			opts.Lifetime, opts.MaxRetransmits = time.Duration(1+rng.IntN(40))*time.Millisecond, rng.IntN(2)
		}
		for try := uint32(0); ; try++ {
			l := label{life, seq, try}
			ctx, cancel := context.Background(), context.CancelFunc(func() {})
			if rng.IntN(3) == 0 {
				ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(3000))*time.Microsecond)
			}
			err := c.w.sendOne(ctx, a, c.message(sid, l, n), opts, seq)
			ended := ctx.Err()
			cancel()
			if err == nil {
				f.mu.Lock()
				f.sent[sid] = append(f.sent[sid], l)
				f.mu.Unlock()
				break
			}
			if ended == nil || !errors.Is(err, ended) {
				return // the association has ended, which check looks into
			}
		}
		if sid == 1 && seq == conserveCount/2 {
			c.reset(a, sid)
		}
		if rng.IntN(4) == 0 {
			time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
		}
	}
}

// reset resets a stream, which goes on afterwards.
func (c *conserved) reset(a *sctp.Association, sid uint16) {
	for {
		err := a.ResetStreams(context.Background(), sid)
		if errors.Is(err, sctp.ErrBusy) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err != nil && c.graceful() && c.end != endRestart && !c.given {
			c.w.t.Errorf("seed %d, association %d: reset of stream %d: %v", c.w.seed, c.id, sid, err)
		}
		return
	}
}

// message returns a message of n bytes, all of which derive from what it is.
// conservedOwners counts the messages that have an owner and of which it was not told the outcome.
type conservedOwners struct{ atomic.Int64 }

func (o *conservedOwners) Released(error) { o.Add(-1) }

// sendOne sends a message, every other one from several buffers: copied, or with an owner.
func (w *conservation) sendOne(ctx context.Context, a *sctp.Association, b []byte, opts sctp.SendOptions, seq uint32) error {
	if seq%2 == 0 {
		return a.Send(ctx, b, opts)
	}
	if seq%4 == 1 {
		opts.Owner = &w.owners
		w.owners.Add(1)
	}
	err := a.SendBuffers(ctx, slices.Collect(slices.Chunk(b, 1+int(seq)*97)), opts)
	if err != nil && opts.Owner != nil {
		w.owners.Add(-1)
	}
	return err
}

func (c *conserved) message(sid uint16, l label, n int) []byte {
	b := make([]byte, 0, n)
	b = binary.BigEndian.AppendUint32(b, uint32(c.id))
	b = binary.BigEndian.AppendUint32(b, l.life<<16|uint32(sid))
	b = binary.BigEndian.AppendUint32(b, l.seq)
	b = binary.BigEndian.AppendUint32(b, l.try)
	x := uint32(c.id)*31 + l.seq*7 + l.try*3 + uint32(n)
	for len(b) < n {
		x = x*1664525 + 1013904223
		b = append(b, byte(x>>24))
	}
	return b
}

// receive takes in what comes until the association ends, at times slowly.
func (c *conserved) receive(a *sctp.Association, f *flow, who uint64) {
	rng := c.rng(who)
	buf := make([]byte, 1000<<rng.IntN(6))
	var parts [conserveStreams + 1][]byte
	for {
		ctx, cancel := context.Background(), context.CancelFunc(func() {})
		if rng.IntN(3) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(3000))*time.Microsecond)
		}
		n, info, err := a.Recv(ctx, buf)
		ended := ctx.Err()
		cancel()
		switch {
		case err == nil:
		case ended != nil && errors.Is(err, ended):
			if n != 0 {
				c.w.t.Errorf("seed %d, association %d: %d bytes with %v", c.w.seed, c.id, n, err)
			}
			continue
		default:
			return
		}
		sid := info.Stream
		parts[sid] = append(parts[sid], buf[:n]...)
		if info.EOR {
			c.take(f, sid, parts[sid])
			parts[sid] = parts[sid][:0]
		}
		switch rng.IntN(40) {
		case 0:
			time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
		case 1, 2, 3:
			time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
		}
	}
}

// take notes a message, of which every byte has to be what was sent.
func (c *conserved) take(f *flow, sid uint16, b []byte) {
	if len(b) < 20 {
		c.w.t.Errorf("seed %d, association %d, stream %d: a message of %d bytes", c.w.seed, c.id, sid, len(b))
		return
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	l := label{word(1) >> 16, word(2), word(3)}
	if want := c.message(sid, l, len(b)); !slices.Equal(b, want) {
		c.w.t.Errorf("seed %d, association %d, stream %d: %v is not what was sent", c.w.seed, c.id, sid, l)
	}
	f.mu.Lock()
	f.got[sid] = append(f.got[sid], l)
	f.mu.Unlock()
	c.w.mu.Lock()
	c.w.messages++
	c.w.mu.Unlock()
}

// check compares what was sent and what was delivered in one direction.
func (c *conserved) check(name string, f *flow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for sid := range f.sent {
		sent, got := f.sent[sid], f.got[sid]
		if sid == conserveStreams-1 { // unordered
			got = slices.Clone(got)
			slices.SortFunc(got, func(x, y label) int {
				if x.before(y) {
					return -1
				}
				return 1
			})
		}
		for k := 1; k < len(got); k++ {
			if !got[k-1].before(got[k]) {
				c.w.t.Errorf("seed %d, association %d (end %d) %s, stream %d: %v comes after %v", c.w.seed, c.id, c.end, name, sid, got[k], got[k-1])
			}
		}
		have := map[label]bool{}
		for _, l := range got {
			have[l] = true
		}
		var missing []label
		for _, l := range sent {
			// What was sent before the restart may be lost with it; what is of partial
			// reliability, always.
			if !have[l] && c.graceful() && !c.given && sid != conserveNoise && (c.end != endRestart || l.life == 1) {
				missing = append(missing, l)
			}
			delete(have, l)
		}
		if len(missing) > 0 {
			c.w.t.Errorf("seed %d, association %d (end %d) %s, stream %d: %d messages sent, missing are %v", c.w.seed, c.id, c.end, name, sid, len(sent), missing)
		}
		if len(have) > 0 {
			c.w.t.Errorf("seed %d, association %d (end %d) %s, stream %d: delivered although Send refused it: %v", c.w.seed, c.id, c.end, name, sid, have)
		}
	}
}
