package sctp_test

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// probationPair has an endpoint at addrA and one at addrB, at which associations are on
// probation.
func probationPair(t *testing.T, p sctp.Probation) (client, server *sctp.Endpoint) {
	t.Helper()
	n := sctptest.NewNetwork(1)
	n.SetDefault(sctptest.Link{Delay: time.Millisecond})
	for i, ep := range []**sctp.Endpoint{&client, &server} {
		tr := memTransport(t, n.NewHost([]string{addrA, addrB}[i]))
		var err error
		if *ep, err = tr.Listen([]uint16{0, serverPort}[i], &sctp.Config{Probation: &p, MTU: 1500}); err != nil {
			t.Fatal(err)
		}
	}
	return client, server
}

// dial connects and returns both ends.
func dial(t *testing.T, client, server *sctp.Endpoint) (a, b *sctp.Association) {
	t.Helper()
	a, err := client.Connect(t.Context(), server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if b, err = server.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// An association that a peer opened ends at its time unless it is admitted; that of the
// side that connects does not.
func TestProbationEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := probationPair(t, sctp.Probation{Timeout: time.Second})
		for _, tt := range []struct {
			name   string
			act    func(a *sctp.Association)
			lasts  time.Duration
			always bool
		}{
			{"idle", func(*sctp.Association) {}, time.Second, false},
			{"extended", func(a *sctp.Association) { a.ExtendProbation(5 * time.Second) }, 5 * time.Second, false},
			{"for ever", func(a *sctp.Association) { a.ExtendProbation(-1) }, 0, true},
			{"admitted", func(a *sctp.Association) { a.Admit(); a.Admit(); a.ExtendProbation(time.Second) }, 0, true},
		} {
			a, b := dial(t, client, server)
			began := time.Now()
			tt.act(b)
			select {
			case <-b.Done():
				<-a.Done()
				var abort *sctp.AbortError
				if took := time.Since(began); tt.always || took < tt.lasts || took > tt.lasts+time.Second {
					t.Errorf("%s: ended after %v", tt.name, took)
				} else if !errors.As(a.Err(), &abort) || abort.Reason != "said nothing that admits it" {
					t.Errorf("%s: the peer is told %v", tt.name, a.Err())
				}
			case <-time.After(10 * time.Minute):
				if !tt.always {
					t.Errorf("%s: goes on", tt.name)
				}
				a.Abort("done")
				<-b.Done()
			}
		}
	})
}

// Of the associations on probation the oldest makes room for one more.
func TestProbationIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 5
		client, server := probationPair(t, sctp.Probation{Max: most, Timeout: -1})
		admitted, _ := dial(t, client, server)
		server.Associations()[0].Admit()
		var list []*sctp.Association
		for range 4 * most {
			// Each from another port: there is one association to each peer port.
			other, err := client.Transport().Listen(0, nil)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := dial(t, other, server)
			list = append(list, a)
		}
		synctest.Wait()
		time.Sleep(time.Second)
		for i, a := range list {
			if gone := a.Err() != nil; gone != (i < len(list)-most) {
				t.Errorf("association %d of %d: %v", i, len(list), a.Err())
			}
		}
		if err := admitted.Err(); err != nil {
			t.Error("the one that was admitted:", err)
		}
		if n := len(server.Associations()); n != most+1 {
			t.Errorf("%d associations", n)
		}
	})
}

// On probation the receive buffer is small, and it grows at once when the peer is admitted:
// the peer that has filled it goes on.
func TestProbationBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := probationPair(t, sctp.Probation{Timeout: -1})
		a, b := dial(t, client, server)
		msg := pattern(1 << 20)
		sent := make(chan error, 1)
		go func() { sent <- a.Send(t.Context(), msg, sctp.SendOptions{}) }()
		time.Sleep(time.Minute)
		st := b.Stats()
		if st.Readable > 2*sctp.DefaultProbationBuffer || st.Readable < sctp.DefaultProbationBuffer/2 {
			t.Errorf("%d bytes are held, with a buffer of %d", st.Readable, sctp.DefaultProbationBuffer)
		}
		b.Admit()
		time.Sleep(time.Second)
		if st = b.Stats(); st.Readable != len(msg) {
			t.Errorf("a second after it was admitted %d bytes are here", st.Readable)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if got, _ := recvMessage(t, b, make([]byte, len(msg))); !bytes.Equal(got, msg) {
			t.Error("the message came out different")
		}
	})
}

// A hundred peers that say as much as they can, and prove nothing, make a server hold
// little.
func TestProbationHeap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := probationPair(t, sctp.Probation{Timeout: -1})
		heap := func() int64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		const peers = 100
		dials := make([]*sctp.Association, peers)
		for i := range dials {
			ep, err := client.Transport().Listen(0, &sctp.Config{MTU: 1500})
			if err != nil {
				t.Fatal(err)
			}
			dials[i], _ = dial(t, ep, server)
		}
		held := func() (n int64) {
			for _, b := range server.Associations() {
				n += int64(b.Stats().Readable)
			}
			return n
		}
		before := heap()
		for i, a := range dials {
			for range 30 {
				_ = a.TrySend(pattern(1000), sctp.SendOptions{Stream: uint16(i % 10)})
			}
		}
		time.Sleep(time.Minute)
		if n := held(); n < peers*sctp.DefaultProbationBuffer/4 {
			t.Errorf("the peers have filled %d bytes only", n)
		}
		// What they could not send is theirs: some 20 messages each.
		if grown, most := heap()-before, int64(peers*(2*sctp.DefaultProbationBuffer+64<<10)); grown > most {
			t.Errorf("%d bytes of heap, more than %d", grown, most)
		}
	})
}
