package sctp_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// runsOf cuts b into runs of up to most bytes, some of them empty.
func runsOf(rng *rand.Rand, b []byte, most int) (runs [][]byte) {
	for len(b) > 0 {
		n := min(rng.IntN(most+1), len(b))
		runs, b = append(runs, b[:n:n]), b[n:]
	}
	return append(runs, nil)
}

// ownerChan tells on a channel what an owner was told.
type ownerChan chan error

func (c ownerChan) Released(err error) { c <- err }

func TestSendBuffers(t *testing.T) {
	for _, link := range []sctptest.Link{{Delay: time.Millisecond}, {Delay: time.Millisecond, Loss: 0.05}} {
		for _, mtu := range []int{1500, 9000} {
			t.Run(fmt.Sprintf("loss=%v/mtu=%d", link.Loss, mtu), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := &sctp.Config{MTU: mtu}
					p := newPair(t, 3, link, cfg, cfg)
					rng := rand.New(rand.NewPCG(1, 2))
					ctx := context.Background()
					owners := make(ownerChan, 100)
					var want [][sha256.Size]byte
					go func() {
						for i, n := range []int{1, 10, 1000, 1452, 5000, 65536, 300_000} {
							msg := pattern(n)
							for k, most := range []int{1, 8, 100, 5000, 100_000} {
								o := sctp.SendOptions{PPID: uint32(n), Header: msg[:min(i, n-1)]}
								bufs := runsOf(rng, msg[len(o.Header):], most)
								if k%2 == 0 {
									if err := p.a.SendBuffers(ctx, bufs, o); err != nil {
										t.Error(err)
									}
									for _, b := range bufs {
										clear(b) // they were copied
									}
									clear(bufs)
								} else {
									o.Owner = owners
									if err := p.a.SendBuffers(ctx, bufs, o); err != nil {
										t.Error(err)
									}
								}
								msg = pattern(n)
							}
						}
					}()
					for _, n := range []int{1, 10, 1000, 1452, 5000, 65536, 300_000} {
						for range 5 {
							want = append(want, sha256.Sum256(pattern(n)))
						}
					}
					buf := make([]byte, 300_000)
					for i := range want {
						got, info := recvMessage(t, p.b, buf)
						if sha256.Sum256(got) != want[i] || int(info.PPID) != len(got) {
							t.Fatalf("message %d: %d bytes, not what was sent, %+v", i, len(got), info)
						}
					}
					time.Sleep(time.Second)
					if len(owners) != len(want)/5*2 {
						t.Errorf("%d owners were told, want %d", len(owners), len(want)/5*2)
					}
					for range len(owners) {
						if err := <-owners; err != nil {
							t.Error(err)
						}
					}
				})
			})
		}
	}
}

func TestSendBuffersErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 2, sctptest.Link{Delay: time.Millisecond}, &sctp.Config{SendBuffer: 10_000, NoFragmentation: true}, nil)
		b := pattern(1000)
		owner := new(counted)
		for _, tt := range []struct {
			name string
			bufs [][]byte
			opts sctp.SendOptions
			want error
		}{
			{"no buffers", nil, sctp.SendOptions{}, sctp.ErrEmpty},
			{"empty buffers", [][]byte{nil, {}}, sctp.SendOptions{}, sctp.ErrEmpty},
			{"empty buffers of an owner", [][]byte{nil, {}}, sctp.SendOptions{Owner: owner}, sctp.ErrEmpty},
			{"a header and empty buffers", [][]byte{nil, {}}, sctp.SendOptions{Header: b[:3]}, nil},
			{"a header that is too long", [][]byte{b, b}, sctp.SendOptions{Header: b[:sctp.MaxHeader+1], Owner: owner}, sctp.ErrMessageTooLong},
			{"together longer than a packet", [][]byte{b, b}, sctp.SendOptions{Owner: owner}, sctp.ErrMessageTooLong},
			{"copied, longer than a packet", [][]byte{b, b}, sctp.SendOptions{}, sctp.ErrMessageTooLong},
			{"a stream that is not there", [][]byte{b[:1], b[:1]}, sctp.SendOptions{Stream: 60_000, Owner: owner}, sctp.ErrNoStream},
		} {
			if err := p.a.TrySendBuffers(tt.bufs, tt.opts); !errors.Is(err, tt.want) {
				t.Errorf("%s: TrySendBuffers: %v, want %v", tt.name, err, tt.want)
			}
			if err := p.a.SendBuffers(t.Context(), tt.bufs, tt.opts); !errors.Is(err, tt.want) {
				t.Errorf("%s: SendBuffers: %v, want %v", tt.name, err, tt.want)
			}
		}
		if owner.n != 0 {
			t.Errorf("the owner of messages that were refused was told %d times", owner.n)
		}
		p.net.Cut(addrA, addrB)
		sent := 0
		var err error
		for ; err == nil; sent++ {
			err = p.a.TrySendBuffers([][]byte{b[:500], b[:400]}, sctp.SendOptions{Owner: owner})
		}
		if sent--; sent == 0 || sent > 11 || err != sctp.ErrWouldBlock {
			t.Errorf("into a small buffer: %d messages, then %v", sent, err)
		}
		if err := p.a.TrySendBuffers([][]byte{b[:500], b[:400]}, sctp.SendOptions{Owner: owner, Force: true}); err != nil {
			t.Errorf("forced: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.a.SendBuffers(ctx, [][]byte{b[:500], b[:400]}, sctp.SendOptions{Owner: owner}); err != context.DeadlineExceeded {
			t.Errorf("a message that waits for room: %v, want %v", err, context.DeadlineExceeded)
		}
		p.a.Abort("")
		synctest.Wait()
		if owner.n != sent+1 {
			t.Errorf("after the end of %d messages their owner was told %d times", sent+1, owner.n)
		}
		if err := p.a.TrySendBuffers([][]byte{b[:500], b[:400]}, sctp.SendOptions{Owner: owner}); err == nil {
			t.Error("a message was taken after the end")
		}
	})
}

func TestSendBuffersDoNotAllocate(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	ctx := context.Background()
	for _, tt := range []struct{ size, run, mtu int }{{1000, 64, 1500}, {64 << 10, 64, 1500}, {64 << 10, 5000, 9000}} {
		for _, owned := range []bool{false, true} {
			t.Run(fmt.Sprintf("size=%d/run=%d/owner=%v", tt.size, tt.run, owned), func(t *testing.T) {
				cfg := &sctp.Config{MTU: tt.mtu}
				p := newLoopbackPair(t, sctp.TransportConfig{}, cfg, cfg)
				msg, buf := pattern(tt.size), make([]byte, tt.size)
				var bufs [][]byte
				for at := 0; at < len(msg); at += tt.run {
					bufs = append(bufs, msg[at:min(at+tt.run, len(msg))])
				}
				o := sctp.SendOptions{Immediate: true} // for the owner not to wait long
				done := make(ownerChan, 1)
				if owned {
					o.Owner = done
				}
				round := func() {
					if err := p.a.SendBuffers(ctx, bufs, o); err != nil {
						t.Fatal(err)
					}
					if got, _ := recvMessage(t, p.b, buf); len(got) != len(msg) || !bytes.Equal(got, msg) {
						t.Fatal("another message came")
					}
					if owned {
						if err := <-done; err != nil {
							t.Fatal(err)
						}
					}
				}
				for range 100 {
					round()
				}
				if n := testing.AllocsPerRun(100, round); n >= 1 {
					t.Errorf("%v allocations a message, want 0", n)
				}
			})
		}
	}
}
