package sctp

import (
	"bytes"
	"net"
	"testing"
	"time"
)

// udpConns returns two connected UDP sockets.
func udpConns(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	a, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	aa := a.LocalAddr().(*net.UDPAddr)
	b, err := net.DialUDP("udp4", nil, aa) // before a's port is free for it
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	a2, err := net.DialUDP("udp4", aa, b.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*net.UDPConn{a2, b} {
		c.SetReadBuffer(4 << 20)
		c.SetWriteBuffer(4 << 20)
	}
	return a2, b
}

// pair returns two associated associations over UDP; both are clients unless server is set.
func pair(t testing.TB, server bool, opts ...AssociationOption) (*Association, *Association) {
	t.Helper()
	ca, cb := udpConns(t)
	type result struct {
		a   *Association
		err error
	}
	ch := make(chan result, 1)
	go func() {
		var r result
		if server {
			o := []ServerOption{WithNetConn(cb), WithName("b")}
			for _, x := range opts {
				o = append(o, x)
			}
			r.a, r.err = ServerWithOptions(o...)
		} else {
			o := []ClientOption{WithNetConn(cb), WithName("b")}
			for _, x := range opts {
				o = append(o, x)
			}
			r.a, r.err = ClientWithOptions(o...)
		}
		ch <- r
	}()
	o := []ClientOption{WithNetConn(ca), WithName("a")}
	for _, x := range opts {
		o = append(o, x)
	}
	a, err := ClientWithOptions(o...)
	if err != nil {
		t.Fatal(err)
	}
	r := <-ch
	if r.err != nil {
		t.Fatal(r.err)
	}
	t.Cleanup(func() {
		a.Close()
		r.a.Close()
	})
	return a, r.a
}

func TestEcho(t *testing.T) {
	for _, server := range []bool{false, true} {
		a, b := pair(t, server, WithMaxMessageSize(1<<20))
		s, err := a.OpenStream(7, PayloadTypeWebRTCBinary)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 64, 1200, 65536, 1 << 20} {
			msg := bytes.Repeat([]byte{byte(n >> 3), 2, 3}, n)[:n]
			if _, err := s.Write(msg); err != nil {
				t.Fatal(err)
			}
			if n == 1 {
				go func() {
					e, err := b.AcceptStream()
					if err != nil {
						t.Error(err)
						return
					}
					buf := make([]byte, 1<<20)
					for {
						n, ppi, err := e.ReadSCTP(buf)
						if err != nil {
							return
						}
						if _, err := e.WriteSCTP(buf[:n], ppi); err != nil {
							t.Error(err)
						}
					}
				}()
			}
			s.SetReadDeadline(time.Now().Add(10 * time.Second))
			got := make([]byte, 1<<20)
			k, ppi, err := s.ReadSCTP(got)
			if err != nil || ppi != PayloadTypeWebRTCBinary || !bytes.Equal(got[:k], msg) {
				t.Fatalf("%d bytes: got %d, %v, %v", n, k, ppi, err)
			}
		}
	}
}
