package sctp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// Connected UDP sockets keep the boundaries of messages.
func TestOverConnUDP(t *testing.T) {
	a, b := udpConns(t)
	x, y := overConn(t, a, b, true, &sctp.ConnConfig{MaxMTU: 9000, Config: &sctp.Config{ZeroChecksum: true}})
	const count, size = 64, 100_000
	var wg sync.WaitGroup
	for i, from := range []*sctp.Association{x, y} {
		wg.Go(func() {
			for range count {
				if err := from.Send(t.Context(), pattern(size), sctp.SendOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
		to := []*sctp.Association{y, x}[i]
		wg.Go(func() {
			buf := make([]byte, size+1)
			for range count {
				if k, _, err := to.Recv(t.Context(), buf); err != nil || !bytes.Equal(buf[:k], pattern(size)) {
					t.Errorf("received %d bytes, %v", k, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := x.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	<-y.Done()
	if err := y.Err(); err != nil {
		t.Error(err)
	}
	if st := x.Endpoint().Transport().Stats(); runtime.GOOS == "linux" && 2*st.DatagramsSent < 3*st.Writes {
		t.Errorf("%d packets in %d writes, want batches", st.DatagramsSent, st.Writes)
	}
}

// One SACK answers the packets that have come by the time that it can be written, but not too many.
func TestOverConnSACKs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		defer n.Close()
		l := sctptest.Link{Delay: 5 * time.Millisecond}
		a, b := n.NewConns(l, l)
		x, y := overConn(t, a, b, false, nil)
		defer x.Abort("")
		msg := pattern(1 << 20)
		go x.Send(context.Background(), msg, sctp.SendOptions{})
		if k, _, err := y.Recv(t.Context(), make([]byte, len(msg))); err != nil || k != len(msg) {
			t.Fatalf("received %d bytes, %v", k, err)
		}
		const most = 34 // packets: 16 receives of 2 share a flush, the next flushes by itself
		st := y.Endpoint().Transport().Stats()
		t.Logf("%d packets, %d of acknowledgements", st.DatagramsReceived, st.DatagramsSent)
		if in, out := st.DatagramsReceived, st.DatagramsSent; out < in/most || out > in/2+in/10 {
			t.Errorf("%d packets sent for %d received, want between one for %d and one for 2", out, in, most)
		}
	})
}

// The association ends with the caller's UDP socket, and the peer is told nothing.
func TestOverConnUDPEnds(t *testing.T) {
	a, b := udpConns(t)
	x, y := overConn(t, a, b, false, nil)
	defer y.Abort("")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	<-x.Done()
	if err := x.Err(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("ended with %v, want net.ErrClosed", err)
	}
	if err := x.Send(t.Context(), []byte("x"), sctp.SendOptions{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Send = %v, want net.ErrClosed", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := y.Recv(ctx, make([]byte, 10)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the peer: %v, want nothing within 50 ms", err)
	}
}

// udpConns returns two UDP sockets of the loopback interface that are connected to each other.
func udpConns(t testing.TB) (a, b net.Conn) {
	t.Helper()
	first, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	b, err = net.DialUDP("udp4", nil, first.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	here := first.LocalAddr().(*net.UDPAddr)
	first.Close()
	if a, err = net.DialUDP("udp4", here, b.LocalAddr().(*net.UDPAddr)); err != nil {
		t.Skipf("the port was taken meanwhile: %v", err)
	}
	return a, b
}

// Messages over a connection allocate nothing in steady state.
func TestOverConnDoesNotAllocate(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, size := range []int{64, 1000, 65536} {
		t.Run(fmt.Sprintf("size=%d", size), func(t *testing.T) {
			a, b := udpConns(t)
			x, y := overConn(t, a, b, false, nil)
			defer x.Abort("")
			go func() {
				buf := make([]byte, size)
				for {
					if _, _, err := y.Recv(context.Background(), buf); err != nil {
						return
					}
					if y.Send(context.Background(), buf[:1], sctp.SendOptions{}) != nil {
						return
					}
				}
			}()
			msg, buf := pattern(size), make([]byte, 1)
			round := func() {
				if err := x.Send(t.Context(), msg, sctp.SendOptions{}); err != nil {
					t.Fatal(err)
				}
				if _, _, err := x.Recv(t.Context(), buf); err != nil {
					t.Fatal(err)
				}
			}
			for range 500 {
				round()
			}
			if n := testing.AllocsPerRun(500, round); n >= 1 {
				t.Errorf("%v allocations per round trip, want 0", n)
			}
		})
	}
}

// maxOverConnMemory bounds what an idle end of an association over a connection takes, stacks of its two
// goroutines included: 64 KiB of it is the buffer that is read into.
const maxOverConnMemory = 112 << 10

// What an idle end takes is bounded, as is the number of its goroutines, and nothing is left after the end.
func TestOverConnMemory(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("the race detector takes memory")
	}
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		defer n.Close()
		usage := func() (bytes int64, goroutines int) {
			synctest.Wait()
			var m runtime.MemStats
			for range 3 {
				runtime.GC()
			}
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
		}
		const count = 500
		var ends []*sctp.Association
		open := func() {
			for range count {
				a, b := n.NewConns(sctptest.Link{}, sctptest.Link{})
				x, y := overConn(t, a, b, true, nil)
				ends = append(ends, x, y)
			}
		}
		finish := func() {
			for _, x := range ends {
				x.Abort("")
				<-x.Done()
			}
			ends = nil
			time.Sleep(time.Hour)
		}
		before, goroutines := usage()
		open()
		with, more := usage()
		each := (with - before) / (2 * count)
		t.Logf("%d ends: %d bytes and %.2f goroutines each", 2*count, each, float64(more-goroutines)/(2*count))
		if each > maxOverConnMemory {
			t.Errorf("%d bytes for each end, want at most %d", each, maxOverConnMemory)
		}
		if more-goroutines > 4*count {
			t.Errorf("%d goroutines for %d ends, want 2 each", more-goroutines, 2*count)
		}
		finish()
		first, _ := usage()
		if after := testenv.Goroutines(goroutines); after > goroutines {
			t.Errorf("%d goroutines after the end, %d before", after, goroutines)
		}
		open()
		finish()
		if second, _ := usage(); second-first > 8<<20 {
			t.Errorf("the heap grew by %d KiB over %d associations", (second-first)>>10, count)
		}
	})
}
