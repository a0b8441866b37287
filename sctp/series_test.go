package sctp_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// A series arrives as its messages, also where packets are lost, and its owner is told
// once, after all of them.
func TestSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 5, sctptest.Link{Delay: time.Millisecond, Loss: 0.05}, nil, nil)
		const unit, count, each = 1000, 100, 8
		body, headers := make([]byte, unit*count-300), make([]byte, count*each)
		for i := range body {
			body[i] = byte(i / unit)
		}
		for i := range headers {
			headers[i] = byte(i/each) ^ 0xff
		}
		var owner counted
		opts := sctp.SendOptions{Stream: 3, PPID: 77, Unordered: true, Owner: &owner}
		if err := p.a.TrySendSeries(sctp.Series{Body: body, Unit: unit, Headers: headers}, opts); err != nil {
			t.Fatal(err)
		}
		if s := p.a.Stats(); s.MessagesSent != count || s.BytesSent != uint64(len(body)+len(headers)) {
			t.Errorf("sent %d messages of %d bytes, want %d of %d", s.MessagesSent, s.BytesSent, count, len(body)+len(headers))
		}
		buf, seen := make([]byte, 2*unit), [count]bool{}
		for range count {
			got, info := recvMessage(t, p.b, buf)
			i, want := int(got[0]^0xff), unit
			if i == count-1 {
				want -= 300
			}
			if seen[i] || info.Stream != 3 || info.PPID != 77 || !info.Unordered ||
				!bytes.Equal(got[:each], headers[i*each:][:each]) || !bytes.Equal(got[each:], body[i*unit:][:want]) {
				t.Fatalf("message %d (seen: %v): %d bytes %x, %+v", i, seen[i], len(got), got[:each+1], info)
			}
			seen[i] = true
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if owner.n != 1 {
			t.Errorf("Released was called %d times, want once", owner.n)
		}
	})
}

func TestSeriesRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 5, sctptest.Link{Delay: time.Millisecond}, &sctp.Config{SendBuffer: 10000}, nil)
		var owner counted
		good := sctp.SendOptions{Unordered: true, Owner: &owner}
		body := make([]byte, 2000)
		for _, tt := range []struct {
			name string
			s    sctp.Series
			f    func(o *sctp.SendOptions)
			want error
		}{
			{"no owner", sctp.Series{Body: body, Unit: 1000}, func(o *sctp.SendOptions) { o.Owner = nil }, sctp.ErrOptions},
			{"ordered", sctp.Series{Body: body, Unit: 1000}, func(o *sctp.SendOptions) { o.Unordered = false }, sctp.ErrOptions},
			{"header", sctp.Series{Body: body, Unit: 1000}, func(o *sctp.SendOptions) { o.Header = body[:2] }, sctp.ErrOptions},
			{"policy", sctp.Series{Body: body, Unit: 1000}, func(o *sctp.SendOptions) { o.PR = sctp.LimitedRetransmissions }, sctp.ErrOptions},
			{"unit 0", sctp.Series{Body: body}, nil, sctp.ErrOptions},
			{"nothing", sctp.Series{Unit: 1}, nil, sctp.ErrEmpty},
			{"headers that do not divide", sctp.Series{Body: body, Unit: 1000, Headers: body[:3]}, nil, sctp.ErrOptions},
			{"over MaxSeries", sctp.Series{Body: make([]byte, sctp.MaxSeries+1), Unit: 1000}, func(o *sctp.SendOptions) { o.Force = true }, sctp.ErrOptions},
			{"no such stream", sctp.Series{Body: body, Unit: 1000}, func(o *sctp.SendOptions) { o.Stream = 60000 }, sctp.ErrNoStream},
			{"as it should be", sctp.Series{Body: body, Unit: 1000}, nil, nil},
			{"no room", sctp.Series{Body: make([]byte, 10000), Unit: 1000}, nil, sctp.ErrWouldBlock},
			{"no room, forced", sctp.Series{Body: make([]byte, 10000), Unit: 1000}, func(o *sctp.SendOptions) { o.Force = true }, nil},
		} {
			o := good
			if tt.f != nil {
				tt.f(&o)
			}
			if err := p.a.TrySendSeries(tt.s, o); err != tt.want {
				t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if owner.n != 2 {
			t.Errorf("Released was called %d times, want 2", owner.n)
		}
	})
}
