package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

var errTestOver = errors.New("test over")

// When a rank goes away, what waits for it fails with an error that names it;
// the others go on.
func TestRankGone(t *testing.T) {
	for _, tr := range testTransports {
		t.Run("transport="+tr, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			var all sync.WaitGroup
			all.Add(3)
			err := RunLocal(ctx, 3, func(ctx context.Context, w *World) error {
				err := rankGone(ctx, w)
				all.Done()
				all.Wait()
				if err != nil {
					return err
				}
				return errTestOver // without rank 1 nobody can finalize
			}, WithTransport(tr))
			if err == nil || strings.Count(err.Error(), errTestOver.Error()) < 3 {
				t.Error(err)
			}
		})
	}
}

func rankGone(ctx context.Context, w *World) error {
	c := w.Comm()
	d, err := c.Dup(ctx)
	if err != nil {
		return err
	}
	if c.Rank() == 1 {
		for _, r := range []int{0, 2} {
			if _, err := Recv(ctx, c, []int{}, r, 5); err != nil {
				return err
			}
		}
		for _, p := range w.eng.peers {
			if p.rank != 1 {
				p.link.abort("rank 1 dies")
			}
		}
		return nil
	}
	var x [1]int32
	big := make([]byte, 1<<20)
	var reqs []*Request
	for _, start := range []func() (*Request, error){
		func() (*Request, error) { return Irecv(c, x[:], 1, 0) },
		func() (*Request, error) { return Irecv(c, x[:], 1, AnyTag) },
		func() (*Request, error) { return Irecv(c, x[:], AnySource, 99) },
		func() (*Request, error) { return Isend(c, big, 1, 0) },
		func() (*Request, error) { return Issend(c, x[:], 1, 0) },
	} {
		r, err := start()
		if err != nil {
			return err
		}
		reqs = append(reqs, r)
	}
	if err := Send(ctx, c, []int{}, 1, 5); err != nil {
		return err
	}
	want := func(what string, err error) error {
		var re *RankError
		if !errors.Is(err, ErrProcFailed) || !errors.As(err, &re) || re.Rank != 1 {
			return fmt.Errorf("%s = %v, want a RankError of rank 1", what, err)
		}
		return nil
	}
	for i, r := range reqs {
		_, err := r.Wait(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("request %d hangs", i)
		}
		if err := want(fmt.Sprintf("request %d", i), err); err != nil {
			return err
		}
	}
	if err := want("send", Send(ctx, c, x[:], 1, 0)); err != nil {
		return err
	}
	if _, err := Recv(ctx, d, x[:], AnySource, 50); want("receive", err) != nil {
		return want("receive from any source before AckFailed", err)
	}
	if _, err := Probe(ctx, d, AnySource, 50); want("probe", err) != nil {
		return want("probe of any source before AckFailed", err)
	}
	if f := d.AckFailed(); len(f) != 1 || f[0] != 1 {
		return fmt.Errorf("failed ranks %v", f)
	}
	// Ranks 0 and 2 still reach each other.
	other := 2 - c.Rank()
	if err := Send(ctx, d, []int32{7}, other, 0); err != nil {
		return err
	}
	if _, err := Recv(ctx, d, x[:], AnySource, 0); err != nil || x[0] != 7 {
		return fmt.Errorf("after AckFailed: %d, %v", x[0], err)
	}
	// Neither leaves before the other is done.
	_, err = Sendrecv(ctx, d, []int32{1}, other, 1, x[:], other, 1)
	return err
}

func TestAbortEndsEverybody(t *testing.T) {
	for _, tr := range testTransports {
		t.Run("transport="+tr, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			err := RunLocal(ctx, 4, func(_ context.Context, w *World) error {
				// Not the context of RunLocal: it ends when a rank fails.
				c := w.Comm()
				if c.Rank() == 2 {
					if err := c.barrier(ctx); err != nil {
						return err
					}
					c.Abort(3, "enough")
					if err := Send(ctx, c, []int{1}, 0, 0); !errors.Is(err, ErrAborted) {
						return fmt.Errorf("send after Abort: %v", err)
					}
					return errTestOver
				}
				r, err := Irecv(c, make([]int, 1), 2, 0)
				if err != nil {
					return err
				}
				if err := c.barrier(ctx); err != nil && !errors.Is(err, ErrProcFailed) {
					return err
				}
				_, err = r.Wait(ctx)
				return err
			}, WithTransport(tr))
			if !errors.Is(err, errTestOver) || !errors.Is(err, ErrProcFailed) || ctx.Err() != nil {
				t.Errorf("error %v", err)
			}
		})
	}
}

// What was sent before Finalize arrives, though its sender does not wait.
func TestFinalizeLosesNothing(t *testing.T) {
	const n = 300
	runRanks(t, 4, func(ctx context.Context, w *World) error {
		c := w.Comm()
		b := make([]byte, 5000)
		if c.Rank() != 0 {
			for i := range n {
				pattern(b, i)
				if err := Send(ctx, c, b, 0, i%5); err != nil {
					return err
				}
			}
			return nil
		}
		got := make([]int, 4)
		for range 3 * n {
			st, err := Recv(ctx, c, b, AnySource, AnyTag)
			if err != nil {
				return err
			}
			if err := checkPattern(b[:st.Bytes], got[st.Source]); err != nil {
				return err
			}
			got[st.Source]++
		}
		return nil
	})
}

func TestAfterFinalize(t *testing.T) {
	var keep *Comm
	err := RunLocal(context.Background(), 1, func(ctx context.Context, w *World) error {
		keep = w.Comm()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Send(context.Background(), keep, []int{1}, 0, 0); !errors.Is(err, ErrFinalized) {
		t.Errorf("send after Finalize: %v", err)
	}
	if _, err := Irecv(keep, []int{1}, 0, 0); !errors.Is(err, ErrFinalized) {
		t.Errorf("receive after Finalize: %v", err)
	}
	if err := keep.World().Finalize(context.Background()); err != nil {
		t.Errorf("second Finalize: %v", err)
	}
}

// Three ranks exchange messages of all sizes over networks that lose,
// duplicate, reorder and corrupt packets, in virtual time.
func TestLossyNetwork(t *testing.T) {
	for _, tt := range []struct {
		name string
		link sctptest.Link
	}{
		{"clean", sctptest.Link{Delay: time.Millisecond}},
		{"loss=5%", sctptest.Link{Delay: time.Millisecond, Loss: 0.05}},
		{"mixed", sctptest.Link{Delay: 2 * time.Millisecond, Loss: 0.01, Duplicate: 0.02, Reorder: 0.05, Corrupt: 0.01}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seed := rand.Uint64()
			synctest.Test(t, func(t *testing.T) {
				net := sctptest.NewNetwork(seed)
				defer net.Close()
				net.SetDefault(tt.link)
				const n = 3
				ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
				defer cancel()
				err := RunLocal(ctx, n, func(ctx context.Context, w *World) error {
					return lossyRank(ctx, w, seed)
				}, WithTransport(TransportSCTP), WithSpin(0), WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
					pc, err := net.NewHost(fmt.Sprintf("10.0.0.%d", rank+1)).ListenPacket(fmt.Sprintf("10.0.0.%d:9899", rank+1))
					return []sctp.PacketConn{pc}, err
				}))
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			})
		})
	}
}

// lossyRank sends numbered messages with changing tags to all ranks, and
// receives with wildcards: the numbers must come in order.
func lossyRank(ctx context.Context, w *World, seed uint64) error {
	c := w.Comm()
	n := c.Size()
	const each = 60
	rng := rand.New(rand.NewPCG(seed, uint64(c.Rank())))
	var sends []*Request
	for k := range each {
		for to := range n {
			size := []int{8, 500, 3000, 50_000, 100_000}[rng.IntN(5)]
			b := make([]byte, 8+size)
			b[0] = byte(k)
			pattern(b[8:], 1000*c.Rank()+k)
			r, err := Isend(c, b, to, rng.IntN(20))
			if err != nil {
				return err
			}
			sends = append(sends, r)
		}
	}
	next := make([]int, n)
	b := make([]byte, 200_000)
	for range n * each {
		st, err := Recv(ctx, c, b, AnySource, AnyTag)
		if err != nil {
			return err
		}
		if int(b[0]) != next[st.Source] {
			return fmt.Errorf("message %d of rank %d came, want %d", b[0], st.Source, next[st.Source])
		}
		if err := checkPattern(b[8:st.Bytes], 1000*st.Source+int(b[0])); err != nil {
			return err
		}
		next[st.Source]++
	}
	_, err := Waitall(ctx, sends...)
	return err
}

// A peer that breaks the protocol loses its link, and nothing else happens.
func TestProtocolViolations(t *testing.T) {
	enc := func(v envelope, body ...byte) []byte {
		var b [envelopeIDLen]byte
		return append(append([]byte(nil), v.put(&b)...), body...)
	}
	eager := envelope{kind: kindEager, source: 1, ctx: worldID, tag: 1, length: 1}
	with := func(f func(*envelope)) []byte {
		v := eager
		f(&v)
		return enc(v, 0)
	}
	for _, tt := range []struct {
		name string
		data []byte
	}{
		{"kind 0", make([]byte, 32)},
		{"kind 200", append([]byte{200}, make([]byte, 31)...)},
		{"reserved bytes", func() []byte { b := enc(eager, 0); b[2] = 1; return b }()},
		{"negative tag", with(func(v *envelope) { v.tag = -1 })},
		{"huge length", with(func(v *envelope) { v.length = maxMessage + 1 })},
		{"more than the credit", with(func(v *envelope) { v.length = 1 << 40 })},
		{"source outside", with(func(v *envelope) { v.source = 9 })},
		{"source of another rank", with(func(v *envelope) { v.source = 0 })},
		{"sequence too far ahead", with(func(v *envelope) { v.flags, v.seq = flagSeq, maxAhead })},
		{"sequence repeated", with(func(v *envelope) { v.flags, v.seq = flagSeq, ^uint32(0) })},
		{"body unasked", enc(envelope{kind: kindBody, id: 1, length: 1}, 0)},
		{"greeting again", enc(envelope{kind: kindHello, length: 1}, 0)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, err := buildOptions(TransportInproc, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(0, 2, o, nil)
			if _, err := w.eng.peers[1].flows[1].feed(tt.data); !errors.Is(err, ErrProtocol) {
				t.Errorf("error %v, want ErrProtocol", err)
			}
		})
	}
}

func TestUnknownCommunicatorsAreBounded(t *testing.T) {
	o, err := buildOptions(TransportInproc, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(0, 2, o, nil)
	f := &w.eng.peers[1].flows[1]
	var hdr [envelopeIDLen]byte
	for i := range maxUnknown + 1 {
		v := envelope{kind: kindReady, source: 1, ctx: uint64(1000+i) << 2, tag: 1, length: 1}
		_, err = f.feed(v.put(&hdr))
		if (err != nil) != (i == maxUnknown) {
			t.Fatalf("context %d: %v", i, err)
		}
	}
	if !errors.Is(err, ErrProtocol) {
		t.Errorf("error %v", err)
	}
}

func TestAnnouncedMessagesAreBounded(t *testing.T) {
	k := newChaos(t, 2, rand.New(rand.NewPCG(1, 1)), WithEager(0))
	c := k.worlds[0].Comm()
	p := k.worlds[0].eng.peers[1]
	p.announced.Store(maxAnnounced - 1)
	if _, err := Isend(c, make([]byte, 10), 1, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Isend(c, make([]byte, 10), 1, 0); !errors.Is(err, ErrLimit) {
		t.Errorf("send beyond the limit: %v", err)
	}
	for k.step() {
	}
	q := k.worlds[1].eng.peers[0]
	if n := q.ready.Load(); n != 1 {
		t.Errorf("%d messages announced, want 1", n)
	}
	if _, err := Irecv(k.worlds[1].Comm(), make([]byte, 10), 0, 0); err != nil {
		t.Fatal(err)
	}
	for k.step() {
	}
	if a, r := p.announced.Load(), q.ready.Load(); a != maxAnnounced-1 || r != 0 {
		t.Errorf("after the receive %d sends wait, %d announced", a, r)
	}
	q.ready.Store(2 * maxAnnounced)
	v := envelope{kind: kindReady, source: 0, ctx: worldID, length: 1}
	var hdr [envelopeIDLen]byte
	if _, err := q.flows[1].feed(v.put(&hdr)); !errors.Is(err, ErrProtocol) {
		t.Errorf("announcement beyond the limit: %v", err)
	}
}

// A stranger that finds the port before the job is complete neither joins nor
// keeps it from starting.
func TestStrangersTCP(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	job := newLocalJob(2)
	o, err := buildOptions(TransportTCP, false, []Option{WithAddrs(loopback)})
	if err != nil {
		t.Fatal(err)
	}
	var worlds [2]*World
	var fabs [2]fabric
	for r := range worlds {
		worlds[r] = newWorld(r, 2, o, &localBoot{job: job})
		if fabs[r], err = newFabric(worlds[r]); err != nil {
			t.Fatal(err)
		}
	}
	_, forged := newConnector([]byte("wrong key"), 1, 0, 2)
	for _, msg := range [][]byte{nil, []byte("GET / HTTP/1.0\r\n\r\n"), helloFrame(forged), helloFrame(append(forged, 0))} {
		conn, err := net.Dial("tcp", fabs[0].card())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(msg); err != nil {
			t.Fatal(err)
		}
	}
	errc := make(chan error, 2)
	for r, w := range worlds {
		go func() {
			err := w.join(ctx, fabs[r])
			if err == nil {
				_, err = Sendrecv(ctx, w.Comm(), []int{r}, 1-r, 0, make([]int, 1), 1-r, 0)
			}
			errc <- errors.Join(err, w.Finalize(ctx))
		}()
	}
	for range worlds {
		if err := <-errc; err != nil {
			t.Error(err)
		}
	}
}

func TestHello(t *testing.T) {
	key := []byte("key of the job")
	run := func(connKey, accKey []byte, tamper func(step int, msg []byte)) (errC, errA error) {
		c, msg := newConnector(connKey, 3, 1, 5)
		a := newAcceptor(accKey, 1, 5)
		for step := 1; ; step++ {
			msg = append([]byte(nil), msg...)
			if tamper != nil {
				tamper(step, msg)
			}
			h, errp := a, &errA
			if step%2 == 0 {
				h, errp = c, &errC
			}
			reply, err := h.step(msg)
			if *errp = err; err != nil {
				return errC, errA
			}
			if step == 2 && (!c.receiving() || c.sending()) || step == 3 && (!a.sending() || a.peer != 3) {
				t.Fatalf("state after step %d", step)
			}
			if reply == nil {
				return nil, nil
			}
			msg = reply
		}
	}
	if errC, errA := run(key, key, nil); errC != nil || errA != nil {
		t.Errorf("greeting: %v, %v", errC, errA)
	}
	if errC, _ := run(key, []byte("other"), nil); !errors.Is(errC, ErrAuth) {
		t.Errorf("acceptor with another key: %v", errC)
	}
	for step := 1; step <= 4; step++ {
		errC, errA := run(key, key, func(s int, msg []byte) {
			if s == step {
				msg[len(msg)-1] ^= 1
			}
		})
		if !errors.Is(errors.Join(errC, errA), ErrAuth) {
			t.Errorf("tampered message %d is taken: %v, %v", step, errC, errA)
		}
	}
	// A connector that cannot prove the key is refused even if it ignores the answer.
	_, greet := newConnector([]byte("x"), 3, 1, 5)
	a := newAcceptor(key, 1, 5)
	if _, err := a.step(greet); err != nil {
		t.Fatal(err)
	}
	if _, err := a.step(append([]byte{stepProve}, make([]byte, macLen)...)); !errors.Is(err, ErrAuth) || a.receiving() {
		t.Errorf("forged proof: %v", err)
	}
}

// FuzzInflow feeds arbitrary bytes, cut in arbitrary places.
func FuzzInflow(f *testing.F) {
	var b [envelopeIDLen]byte
	v := envelope{kind: kindEager, source: 1, ctx: worldID, tag: 1, length: 3}
	f.Add(append(append([]byte(nil), v.put(&b)...), 1, 2, 3), 5)
	v.kind = kindReady
	f.Add(append([]byte(nil), v.put(&b)...), 100)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		o, err := buildOptions(TransportInproc, false, []Option{WithUnexpected(1 << 20)})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(0, 2, o, nil)
		link := &chaosLink{to: w.eng.peers[0], rng: rand.New(rand.NewPCG(1, 1))}
		w.eng.peers[1].link = link
		for range 3 {
			if _, err := Irecv(w.Comm(), make([]byte, 10), AnySource, AnyTag); err != nil {
				t.Fatal(err)
			}
		}
		fl := &w.eng.peers[1].flows[1]
		cut = 1 + int(uint(cut)%64)
		for len(data) > 0 {
			k, err := fl.feed(data[:min(cut, len(data))])
			if err != nil {
				return
			}
			if k == 0 {
				t.Fatal("no progress")
			}
			data = data[k:]
		}
		fl.cut(errTestOver)
	})
}

// A rank whose network goes silent is given up within a minute, whether
// something was sent to it or not.
func TestSilentRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(1)
		defer net.Close()
		net.SetDefault(sctptest.Link{Delay: time.Millisecond})
		addr := func(rank int) string { return fmt.Sprintf("10.0.0.%d", rank+1) }
		var all sync.WaitGroup
		all.Add(3)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		err := RunLocal(ctx, 3, func(ctx context.Context, w *World) error {
			c := w.Comm()
			err := func() error {
				var x [1]int
				if err := c.barrier(ctx); err != nil {
					return err
				}
				if c.Rank() == 1 {
					time.Sleep(time.Second)
					net.Cut(addr(1), addr(0))
					net.Cut(addr(1), addr(2))
					return nil
				}
				time.Sleep(2 * time.Second)
				if c.Rank() == 0 {
					if _, err := Isend(c, x[:], 1, 0); err != nil {
						return err
					}
				}
				start := time.Now()
				_, err := Recv(ctx, c, x[:], 1, 0)
				var re *RankError
				if !errors.As(err, &re) || re.Rank != 1 {
					return fmt.Errorf("receive = %w", err)
				}
				if d := time.Since(start); d > time.Minute {
					return fmt.Errorf("noticed after %v", d)
				}
				other := 2 - c.Rank()
				_, err = Sendrecv(ctx, c, []int{1}, other, 1, x[:], other, 1)
				return err
			}()
			all.Done()
			all.Wait()
			if err != nil {
				return err
			}
			return errTestOver
		}, WithTransport(TransportSCTP), WithSpin(0), WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
			pc, err := net.NewHost(addr(rank)).ListenPacket(addr(rank) + ":9899")
			return []sctp.PacketConn{pc}, err
		}))
		if err == nil || strings.Count(err.Error(), errTestOver.Error()) < 3 {
			t.Error(err)
		}
	})
}

func TestStrangersSCTP(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{loopback}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	ep, err := tr.Listen(0, &sctp.Config{OutStreams: 21, InStreams: 21})
	if err != nil {
		t.Fatal(err)
	}
	_, forged := newConnector([]byte("wrong key"), 1, 0, 2)
	eager := envelope{kind: kindEager, source: 1, ctx: worldID, tag: 77}
	var hdr [envelopeIDLen]byte
	err = RunLocal(ctx, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if c.Rank() == 0 {
			addr, err := sctp.ParseAddr(w.fabric.card())
			if err != nil {
				return err
			}
			for i, msg := range [][]byte{[]byte("hello"), helloFrame(forged), eager.put(&hdr), helloFrame(append(forged, 0))} {
				a, err := ep.Connect(ctx, addr)
				if err != nil {
					return err
				}
				if err := a.Send(ctx, msg, sctp.SendOptions{}); err != nil {
					return err
				}
				if i == 1 { // a greeting is answered, but the answer proves nothing to us
					var b [200]byte
					if _, _, err := a.Recv(ctx, b[:]); err != nil {
						return fmt.Errorf("answer to a greeting: %w", err)
					}
					if err := a.Send(ctx, helloFrame(append([]byte{stepProve}, make([]byte, macLen)...)), sctp.SendOptions{}); err != nil {
						return err
					}
				}
				select {
				case <-a.Done():
				case <-ctx.Done():
					return fmt.Errorf("stranger %d is tolerated", i)
				}
			}
			if _, found, err := Iprobe(c, AnySource, 77); found || err != nil {
				return fmt.Errorf("a stranger's message is there: %v, %v", found, err)
			}
		}
		_, err := Sendrecv(ctx, c, []int{1}, 1-c.Rank(), 0, make([]int, 1), 1-c.Rank(), 0)
		return err
	}, WithTransport(TransportSCTP))
	if err != nil {
		t.Error(err)
	}
}
