package sctp_test

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// budgetNet has a server with so much memory, and n peers that have connected to it.
func budgetNet(t *testing.T, memory, n int, server, client *sctp.Config) (tr *sctp.Transport, senders, receivers []*sctp.Association) {
	t.Helper()
	net := sctptest.NewNetwork(1)
	net.SetDefault(sctptest.Link{Delay: time.Millisecond})
	pc, err := net.NewHost(addrB).ListenPacket(addrB + ":9899")
	if err != nil {
		t.Fatal(err)
	}
	tr = newTransport(t, sctp.TransportConfig{Conns: []sctp.PacketConn{pc}, RecvMemory: memory})
	ep, err := tr.Listen(serverPort, server)
	if err != nil {
		t.Fatal(err)
	}
	peers := memTransport(t, net.NewHost(addrA))
	for range n {
		c, err := peers.Listen(0, client)
		if err != nil {
			t.Fatal(err)
		}
		a, b := dial(t, c, ep)
		senders, receivers = append(senders, a), append(receivers, b)
	}
	return tr, senders, receivers
}

// The associations of a transport together hold no more than its budget, whatever their
// receive buffers are and however many they are; those that came last have their part;
// and when readers come everything arrives.
func TestReceiveMemoryIsBounded(t *testing.T) {
	for _, size := range []int{1, 1000, 40_000} {
		synctest.Test(t, func(t *testing.T) {
			const memory, peers, each = 2 << 20, 30, 300_000
			heap := func() int {
				runtime.GC()
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return int(m.HeapAlloc)
			}
			mtu := &sctp.Config{MTU: 1500}
			tr, senders, receivers := budgetNet(t, memory, peers, mtu, mtu)
			messages := max(min(each/size, 3000), 1)
			before := heap()
			var wg sync.WaitGroup
			for i, a := range senders {
				time.Sleep(10 * time.Millisecond) // one after the other
				wg.Go(func() {
					for k := range messages {
						if err := a.Send(t.Context(), bytes.Repeat([]byte{byte(i + k)}, size), sctp.SendOptions{Stream: uint16(k % 3)}); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			time.Sleep(30 * time.Second)
			st := tr.Stats()
			if st.RecvMemory > memory || st.RecvMemory < memory/2 {
				t.Errorf("messages of %d: %d bytes of memory count, of %d", size, st.RecvMemory, memory)
			}
			// The senders' queues are in the same heap, but each has few bytes in it.
			if grown, most := heap()-before, 2*memory+peers*1<<20; grown > most {
				t.Errorf("messages of %d: %d bytes of heap, more than %d", size, grown, most)
			}
			least := 1 << 30
			for _, b := range receivers {
				least = min(least, b.Stats().Readable)
			}
			if least == 0 {
				t.Errorf("messages of %d: an association has no part of the memory", size)
			}
			rng := rand.New(rand.NewPCG(1, uint64(size)))
			for _, i := range rng.Perm(peers) {
				wg.Go(func() {
					var seen [3]int
					buf := make([]byte, size)
					parts := map[uint64][]byte{} // of messages that are delivered in part, by turns
					for done := 0; done < messages; {
						n, info, err := receivers[i].Recv(t.Context(), buf)
						if err != nil {
							t.Error(err)
							return
						}
						got := append(parts[info.Message], buf[:n]...)
						if parts[info.Message] = got; !info.EOR {
							continue
						}
						delete(parts, info.Message)
						done++
						k := seen[info.Stream]*3 + int(info.Stream)
						seen[info.Stream]++
						if !bytes.Equal(got, bytes.Repeat([]byte{byte(i + k)}, size)) {
							t.Errorf("messages of %d: message %d of peer %d came out different", size, k, i)
							return
						}
					}
				})
				time.Sleep(time.Second) // those who wait get what others leave
			}
			began := time.Now()
			wg.Wait()
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("messages of %d: %v until all was read", size, took)
			}
			for _, a := range senders {
				if err := a.Err(); err != nil {
					t.Errorf("messages of %d: %v", size, err)
				}
				a.Abort("done")
			}
			time.Sleep(time.Second)
			if st := tr.Stats(); st.RecvMemory != 0 || st.Associations != 0 {
				t.Errorf("messages of %d: %d bytes count in the end, of %d associations", size, st.RecvMemory, st.Associations)
			}
		})
	}
}

// An association with a window closed because others had the memory is told when they
// have left it, and waits for no probe: whether they leave at once, which has other results
// each time, or one after the other.
func TestMemoryThatOthersLeave(t *testing.T) {
	const memory, peers = 1 << 20, 40
	test := func(apart time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			mtu := &sctp.Config{MTU: 1500}
			_, senders, receivers := budgetNet(t, memory, peers, mtu, mtu)
			var wg sync.WaitGroup
			for _, a := range senders {
				wg.Go(func() { _ = a.Send(t.Context(), pattern(200_000), sctp.SendOptions{}) })
			}
			time.Sleep(2 * time.Minute) // probes are far apart by now
			before := receivers[0].Stats().Readable
			for _, a := range senders[1:] {
				a.Abort("leaves")
				time.Sleep(apart)
			}
			time.Sleep(time.Second)
			// An eighth of what is free is the share: some three quarters of it are payload.
			if now := receivers[0].Stats().Readable; now < memory/8*5/8 {
				t.Errorf("%v apart: a second after the others have left there are %d bytes, before %d", apart, now, before)
			}
			senders[0].Abort("done")
			wg.Wait()
		})
	}
	rounds := 20
	if sctp.RaceEnabled {
		rounds = 2
	}
	for range rounds {
		test(0)
	}
	test(20 * time.Millisecond)
	test(time.Second)
}

// Who is on probation is the first that gets no more.
func TestUnprovenGetLessMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const memory = 1 << 20
		_, senders, receivers := budgetNet(t, memory, 2, &sctp.Config{MTU: 1500, Probation: &sctp.Probation{RecvBuffer: 1 << 20, Timeout: -1}}, &sctp.Config{MTU: 1500})
		receivers[0].Admit()
		for i := range senders {
			if err := senders[1-i].TrySend(pattern(500_000), sctp.SendOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if known, unknown := receivers[0].Stats().Readable, receivers[1].Stats().Readable; unknown > memory/32 || known < memory/16 {
			t.Errorf("%d bytes of the peer that was admitted, %d of the other", known, unknown)
		}
		for _, a := range senders {
			a.Abort("done")
		}
	})
}
