package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	pion "github.com/pion/sctp"

	"github.com/weftstack/weft/sctp"
)

// pionPort is the SCTP port at both ends that pion/sctp dials with.
const pionPort = 5000

// pionStreams is how many streams carry data each way.
const pionStreams = 3

// pionMessages returns the messages of one direction of a stream: single bytes, full
// packets, and messages of many packets, some of which are larger than any packet that
// pion/sctp reads (8 KiB).
func pionMessages(stream uint16, seed uint64) (list [][]byte) {
	rng := rand.New(rand.NewPCG(seed, uint64(stream)))
	for _, n := range []int{1, 1, 4, 1100, 1172, 1180, 1440, 5000, 9000, 65_000, 300_000, 2, 1_000_000, 3} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		list = append(list, b)
	}
	return list
}

// pionEnd is pion/sctp's end of an association.
type pionEnd struct {
	*pion.Association
	dialled bool
}

// exchange has both ends send at once on all streams, and checks that each message arrives
// once, whole and in order.
func exchange(t *testing.T, ctx context.Context, w *sctp.Association, p pionEnd) {
	t.Helper()
	const toPion, toWeft = 1, 2
	var wg sync.WaitGroup
	defer wg.Wait()
	for sid := range uint16(pionStreams) {
		wg.Go(func() {
			for i, m := range pionMessages(sid, toPion) {
				if err := w.Send(ctx, m, sctp.SendOptions{Stream: sid, PPID: uint32(pion.PayloadTypeWebRTCBinary)}); err != nil {
					t.Errorf("weft, stream %d, message %d: %v", sid, i, err)
					return
				}
			}
		})
		wg.Go(func() {
			buf := make([]byte, 2<<20)
			for i, m := range pionMessages(sid, toWeft) {
				n := 0
				for {
					k, info, err := w.RecvStream(ctx, sid, buf[n:])
					if err != nil {
						t.Errorf("weft, stream %d, message %d: %v", sid, i, err)
						return
					}
					if n += k; info.EOR {
						break
					}
				}
				if !bytes.Equal(buf[:n], m) {
					t.Errorf("weft, stream %d, message %d: %d bytes, not the %d sent", sid, i, n, len(m))
				}
			}
		})
	}
	// Either end may open a stream; pion/sctp tells of those that data came on first.
	var streams [pionStreams]*pion.Stream
	for n := range uint16(pionStreams) {
		s, err := p.OpenStream(n, pion.PayloadTypeWebRTCBinary)
		if err != nil { // it exists
			if s, err = p.AcceptStream(); err != nil {
				t.Errorf("pion: AcceptStream: %v", err)
				return
			}
		}
		streams[s.StreamIdentifier()] = s
	}
	for sid, s := range streams {
		if s == nil {
			t.Errorf("pion: no stream %d", sid)
			return
		}
		deadline, _ := ctx.Deadline()
		s.SetReadDeadline(deadline)
		wg.Go(func() {
			for i, m := range pionMessages(uint16(sid), toWeft) {
				if _, err := s.Write(m); err != nil {
					t.Errorf("pion, stream %d, message %d: %v", sid, i, err)
					return
				}
			}
		})
		wg.Go(func() {
			buf := make([]byte, 2<<20)
			for i, m := range pionMessages(uint16(sid), toPion) {
				n, err := s.Read(buf)
				if err != nil {
					t.Errorf("pion, stream %d, message %d: %v", sid, i, err)
					return
				}
				if !bytes.Equal(buf[:n], m) {
					t.Errorf("pion, stream %d, message %d: %d bytes, not the %d sent", sid, i, n, len(m))
				}
			}
		})
	}
}

// watchedConn counts the packets without a checksum that pion/sctp sends and receives.
type watchedConn struct {
	net.Conn
	mu        sync.Mutex
	sent, got checksums
}

type checksums struct{ zero, full int }

func (s *checksums) count(b []byte) {
	if len(b) < 12 {
		return
	}
	if bytes.Equal(b[8:12], make([]byte, 4)) {
		s.zero++
	} else {
		s.full++
	}
}

func (c *watchedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.sent.count(b)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	c.got.count(b[:n])
	c.mu.Unlock()
	return n, err
}

// Associations with pion/sctp, which neither of us wrote for the other: data both ways in
// either role, with and without a checksum at each end (RFC 9653), with and without
// interleaving, and with the default path MTU, which is larger than pion/sctp reads.
func TestPion(t *testing.T) {
	for _, dials := range []string{"weft", "pion"} {
		for _, zero := range []struct {
			name       string
			weft, pion bool
		}{{"none", false, false}, {"both", true, true}, {"weft", true, false}, {"pion", false, true}} {
			for _, interleaving := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s dials/zero=%s/interleaving=%v", dials, zero.name, interleaving), func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					cfg := &sctp.Config{ZeroChecksum: zero.weft, NoInterleaving: !interleaving}
					tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
					if err != nil {
						t.Fatal(err)
					}
					defer tr.Close()
					e, err := tr.Listen(pionPort, cfg)
					if err != nil {
						t.Fatal(err)
					}
					conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					pair := &udpPair{UDPConn: conn}
					wire := &watchedConn{Conn: pair}

					var w *sctp.Association
					p := pionEnd{dialled: dials == "pion"}
					connected := make(chan error, 1)
					if p.dialled {
						to := tr.LocalAddrs()[0]
						pair.peer.Store(&to)
						go func() {
							var err error
							p.Association, err = pion.ClientWithOptions(pionOptionsZero[pion.ClientOption](wire, zero.pion, interleaving)...)
							connected <- err
						}()
						w, err = e.Accept(ctx)
					} else {
						go func() {
							var err error
							p.Association, err = pion.ServerWithOptions(pionOptionsZero[pion.ServerOption](wire, zero.pion, interleaving)...)
							connected <- err
						}()
						w, err = e.Connect(ctx, sctp.Addr{Addrs: []netip.AddrPort{conn.LocalAddr().(*net.UDPAddr).AddrPort()}, Port: pionPort})
					}
					if err != nil {
						t.Fatalf("weft: %v", err)
					}
					if err := <-connected; err != nil {
						t.Fatalf("pion: %v", err)
					}
					exchange(t, ctx, w, p)
					if x := w.Extensions(); x.ZeroChecksum != (zero.weft && zero.pion) || x.Interleaving != interleaving {
						t.Errorf("extensions in use: %+v", x)
					}
					wire.mu.Lock()
					if leaves := zero.weft && zero.pion; leaves != (wire.got.zero > 10) {
						t.Errorf("pion got %+v", wire.got)
					}
					if zero.weft != (wire.sent.zero > 10) {
						t.Errorf("pion sent %+v", wire.sent)
					}
					wire.mu.Unlock()
					if bad := tr.Stats().BadPackets; bad > 0 {
						t.Errorf("%d packets were refused", bad)
					}
					// A graceful end, begun by the end that dialled.
					if p.dialled {
						if err := p.Shutdown(ctx); err != nil {
							t.Errorf("pion: Shutdown: %v", err)
						}
						if _, _, err := w.Recv(ctx, make([]byte, 1)); !errors.Is(err, io.EOF) {
							t.Errorf("weft: Recv: %v", err)
						}
					} else if err := w.Shutdown(ctx); err != nil {
						t.Errorf("weft: Shutdown: %v", err)
					}
					p.Close()
				})
			}
		}
	}
}

// pionOptionsZero is pionOptions with what the tests vary.
func pionOptionsZero[T any](c net.Conn, zero, interleaving bool) []T {
	all := pionOptions[T](c)
	for _, o := range []pion.AssociationOption{pion.WithEnableZeroChecksum(zero), pion.WithEnableInterleaving(interleaving)} {
		all = append(all, o.(T))
	}
	return all
}
