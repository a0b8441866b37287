package ddpmpa

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// TestSilentPeers has peers that connect and say nothing, half a frame, or an
// octet now and then: startup ends in time, and with it the connection (RFC
// 5044, Section 7.1.2, rules 8 and 10).
func TestSilentPeers(t *testing.T) {
	request := AppendFrame(nil, &Frame{Revision: 1, Private: make([]byte, MaxPrivate)})
	reply := AppendFrame(nil, &Frame{Reply: true, Revision: 1, Private: make([]byte, MaxPrivate)})
	for _, tt := range []struct {
		name    string
		said    int // octets of the frame, at once
		trickle bool
	}{{"silent", 0, false}, {"half a frame", 300, false}, {"an octet at a time", 0, true}} {
		for _, respond := range []bool{false, true} {
			ca, cb := tcpPair(t)
			frame := reply
			if respond {
				frame = request
			}
			cb.Write(frame[:tt.said])
			stop := make(chan struct{})
			trickled := make(chan struct{})
			go func() {
				defer close(trickled)
				for tick := time.NewTicker(2 * time.Millisecond); tt.trickle; {
					select {
					case <-tick.C:
						if len(frame) > 1 {
							cb.Write(frame[:1])
							frame = frame[1:]
						}
					case <-stop:
						return
					}
				}
			}()
			p := Params{Timeout: 50 * time.Millisecond}
			start := time.Now()
			var err error
			if respond {
				_, err = Respond(t.Context(), ca, p)
			} else {
				_, _, err = Initiate(t.Context(), ca, p)
			}
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, os.ErrDeadlineExceeded) ||
				!strings.Contains(err.Error(), ca.RemoteAddr().String()) || !errors.Is(err, FaultLost) || errors.Is(err, ErrNoReply) {
				t.Errorf("%s, responder %v: %v after %v", tt.name, respond, err, time.Since(start))
			}
			if _, err := ca.Write(nil); !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s, responder %v: the connection is open", tt.name, respond)
			}
			close(stop)
			<-trickled
		}
	}
}

func TestPrivateDataLimits(t *testing.T) {
	// RFC 5044, Section 7.1.1: 0 to 512 octets.
	for _, n := range []int{0, 1, MaxPrivate} {
		ca, cb := tcpPair(t)
		done := make(chan *Request, 1)
		go func() {
			r, err := Respond(testContext(t), cb, Params{})
			if err != nil {
				t.Error(err)
			}
			done <- r
		}()
		go func() {
			r := <-done
			if r == nil || len(r.Private) != n {
				t.Errorf("%d octets: %+v", n, r)
				return
			}
			if err := r.Accept(newEar(t), func(*Channel) error { return nil }, r.Enhanced, make([]byte, n)); err != nil {
				t.Error(err)
			}
		}()
		ch, f, err := Initiate(testContext(t), ca, Params{Private: make([]byte, n)})
		if err != nil || len(f.Private) != n {
			t.Fatalf("%d octets: %d back, %v", n, len(f.Private), err)
		}
		ch.Kill()
		cb.Close()
	}
	// The reply may come in any pieces, and what follows it is left alone.
	ca, cb := tcpPair(t)
	go func() {
		for _, b := range append(AppendFrame(nil, &Frame{Reply: true, Revision: 1, Private: []byte("abc")}), "rest"...) {
			cb.Write([]byte{b})
		}
	}()
	ch, f, err := Initiate(testContext(t), ca, Params{})
	if err != nil || string(f.Private) != "abc" {
		t.Fatalf("%+v, %v", f, err)
	}
	rest := make([]byte, 4)
	if _, err := io.ReadFull(ca, rest); err != nil || string(rest) != "rest" {
		t.Errorf("%q, %v", rest, err)
	}
	ch.Kill()
}
