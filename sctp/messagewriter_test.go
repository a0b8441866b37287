package sctp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// A message is written in pieces of any size and received as one, with and without
// interleaving, ordered and unordered, larger than both buffers.
func TestMessageWriter(t *testing.T) {
	for _, plain := range []bool{false, true} {
		cfg := &sctp.Config{NoInterleaving: plain, SendBuffer: 100_000, RecvBuffer: 200_000}
		p := newLoopbackPair(t, sctp.TransportConfig{}, cfg, cfg)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		for i, sizes := range [][]int{{1}, {1, 1}, {2}, {0, 3, 0}, {1000, 1, 1, 70_000}, {300_000}, {700_000, 5, 1_500_000}} {
			o := sctp.SendOptions{Stream: uint16(i), PPID: uint32(100 + i), Unordered: i%2 == 1}
			if i >= 3 {
				o.Header = []byte("a header of some length")
			}
			done := make(chan error, 1)
			want := append([]byte(nil), o.Header...)
			total := 0
			for _, n := range sizes {
				total += n
			}
			body := pattern(total)
			want = append(want, body...)
			go func() {
				w, err := p.a.OpenMessage(ctx, o)
				if err != nil {
					done <- err
					return
				}
				for _, n := range sizes {
					if k, err := w.Write(body[:n]); k != n || err != nil {
						done <- errors.Join(err, errors.New("short write"))
						return
					}
					body = body[n:]
				}
				done <- w.Close()
			}()
			buf := make([]byte, len(want)+1)
			got, info := recvMessage(t, p.b, buf)
			if err := <-done; err != nil {
				t.Fatalf("%v: %v", sizes, err)
			}
			if !bytes.Equal(got, want) || info.Stream != o.Stream || info.PPID != o.PPID || info.Unordered != o.Unordered {
				t.Errorf("%v: %d bytes came out as %d, info %+v", sizes, len(want), len(got), info)
			}
		}
		if s := p.a.Stats(); s.MessagesSent != 7 {
			t.Errorf("%d messages sent, want 7", s.MessagesSent)
		}
	}
}

// What is written at once goes in chunks as large as packets take them, also with
// a send buffer of the default size.
func TestMessageWriterFillsPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, &sctp.Config{MTU: 9000}, nil)
		w, err := p.a.OpenMessage(t.Context(), sctp.SendOptions{})
		if err != nil {
			t.Fatal(err)
		}
		msg := pattern(1_000_000)
		if n, err := w.Write(msg); n != len(msg) || err != nil {
			t.Fatal(n, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, _ := recvMessage(t, p.b, make([]byte, len(msg))); !bytes.Equal(got, msg) {
			t.Errorf("%d bytes came, %d were written", len(got), len(msg))
		}
		if n := p.a.Stats().ChunksSent; n > 150 {
			t.Errorf("%d bytes went in %d chunks", len(msg), n)
		}
	})
}

// What was written is with the peer before more is written, but for a byte.
func TestMessageWriterSendsAtOnce(t *testing.T) {
	cfg := &sctp.Config{}
	got := make(chan sctp.Piece, 10)
	cfg.OnPiece = func(_ *sctp.Association, p *sctp.Piece) {
		c := *p
		c.Data = bytes.Clone(p.Data)
		got <- c
	}
	p := newLoopbackPair(t, sctp.TransportConfig{}, nil, cfg)
	w, err := p.a.OpenMessage(context.Background(), sctp.SendOptions{Stream: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		write, want string
		begin, end  bool
	}{{"hello", "hell", true, false}, {", ", "o,", false, false}, {"world", " worl", false, false}, {"", "d", false, true}} {
		if x.write != "" {
			if _, err := io.WriteString(w, x.write); err != nil {
				t.Fatal(err)
			}
		} else if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case c := <-got:
			if string(c.Data) != x.want || c.Begin != x.begin || c.End != x.end || c.Stream != 3 {
				t.Errorf("after %q came %q, begin %v, end %v", x.write, c.Data, c.Begin, c.End)
			}
		case <-time.After(5 * time.Minute):
			t.Fatalf("nothing came after %q", x.write)
		}
	}
}

// Sends on the stream are refused as long as the message is open; others go on
// with interleaving, and wait without it.
func TestMessageWriterAndOthers(t *testing.T) {
	for _, plain := range []bool{false, true} {
		p := newLoopbackPair(t, sctp.TransportConfig{}, &sctp.Config{NoInterleaving: plain}, nil)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		w, err := p.a.OpenMessage(ctx, sctp.SendOptions{Stream: 1})
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, "one")
		if _, err := p.a.OpenMessage(ctx, sctp.SendOptions{Stream: 1}); err != sctp.ErrMessageOpen {
			t.Errorf("a second message: %v", err)
		}
		if err := p.a.Send(ctx, []byte("no"), sctp.SendOptions{Stream: 1}); err != sctp.ErrMessageOpen {
			t.Errorf("Send: %v", err)
		}
		if err := p.a.Send(ctx, []byte("other"), sctp.SendOptions{Stream: 2}); err != nil {
			t.Errorf("Send on another stream: %v", err)
		}
		first, second := "other", "one, two"
		if plain {
			first, second = second, first
		} else if got, _ := recvMessage(t, p.b, make([]byte, 100)); string(got) != first {
			t.Errorf("received %q while a message was open", got)
		}
		io.WriteString(w, ", two")
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if plain {
			if got, _ := recvMessage(t, p.b, make([]byte, 100)); string(got) != first {
				t.Errorf("received %q, want %q", got, first)
			}
		}
		if got, _ := recvMessage(t, p.b, make([]byte, 100)); string(got) != second {
			t.Errorf("received %q, want %q", got, second)
		}
		if err := p.a.Send(ctx, []byte("yes"), sctp.SendOptions{Stream: 1}); err != nil {
			t.Errorf("Send after the end: %v", err)
		}
	}
}

// The errors of a MessageWriter.
func TestMessageWriterErrors(t *testing.T) {
	p := newLoopbackPair(t, sctp.TransportConfig{}, &sctp.Config{OutStreams: 5}, nil)
	ctx := context.Background()
	for _, x := range []struct {
		o    sctp.SendOptions
		want error
	}{
		{sctp.SendOptions{Stream: 5}, sctp.ErrNoStream},
		{sctp.SendOptions{PR: sctp.Timed, Lifetime: time.Second}, sctp.ErrOptions},
		{sctp.SendOptions{Lifetime: time.Second}, sctp.ErrOptions},
		{sctp.SendOptions{Owner: &released{}}, sctp.ErrOptions},
		{sctp.SendOptions{Header: make([]byte, sctp.MaxHeader+1)}, sctp.ErrMessageTooLong},
	} {
		if _, err := p.a.OpenMessage(ctx, x.o); err != x.want {
			t.Errorf("OpenMessage(%+v): %v, want %v", x.o, err, x.want)
		}
	}
	w, err := p.a.OpenMessage(ctx, sctp.SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != sctp.ErrEmpty {
		t.Errorf("Close of nothing: %v", err)
	}
	if err := w.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
	w, err = p.a.OpenMessage(ctx, sctp.SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "begun")
	p.a.Abort("over")
	var abort *sctp.AbortError
	if n, err := io.WriteString(w, "more"); n != 0 || !errors.As(err, &abort) {
		t.Errorf("Write after an abort: %d, %v", n, err)
	}
	if err := w.Close(); !errors.As(err, &abort) {
		t.Errorf("Close after an abort: %v", err)
	}
	if _, err := p.a.OpenMessage(ctx, sctp.SendOptions{}); !errors.As(err, &abort) {
		t.Errorf("OpenMessage after an abort: %v", err)
	}

	q := newLoopbackPair(t, sctp.TransportConfig{}, &sctp.Config{NoFragmentation: true}, nil)
	if _, err := q.a.OpenMessage(ctx, sctp.SendOptions{}); err != sctp.ErrMessageTooLong {
		t.Errorf("without fragmentation: %v", err)
	}
}

type released struct{}

func (*released) Released(error) {}

// The send buffer holds a Write up until its context is done, but not Close. It does
// not hold up the message that all others wait for.
func TestMessageWriterWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: 10 * time.Millisecond}, &sctp.Config{SendBuffer: 20_000, NoInterleaving: true},
			&sctp.Config{RecvBuffer: 5000})
		ctx, cancel := context.WithCancel(t.Context())
		w, err := p.a.OpenMessage(ctx, sctp.SendOptions{Stream: 1})
		if err != nil {
			t.Fatal(err)
		}
		msg := pattern(100_000)
		go func() {
			time.Sleep(time.Minute)
			cancel()
		}()
		n, err := w.Write(msg)
		if err != context.Canceled || n < 5000 || n > 40_000 {
			t.Errorf("Write: %d, %v", n, err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if got, _ := recvMessage(t, p.b, make([]byte, len(msg))); !bytes.Equal(got, msg[:n]) {
			t.Errorf("%d bytes came, %d were written", len(got), n)
		}

		// Messages that wait for the end of another fill the buffer.
		if w, err = p.a.OpenMessage(t.Context(), sctp.SendOptions{Stream: 1}); err != nil {
			t.Fatal(err)
		}
		w.Write(msg[:2])
		for err == nil {
			err = p.a.TrySend(msg[:500], sctp.SendOptions{Stream: 2})
		}
		if err != sctp.ErrWouldBlock {
			t.Error(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := w.Write(msg[2:])
			done <- errors.Join(err, w.Close())
		}()
		if got, info := recvMessage(t, p.b, make([]byte, len(msg))); !bytes.Equal(got, msg) || info.Stream != 1 {
			t.Errorf("%d bytes came, %d were written", len(got), len(msg))
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, info := recvMessage(t, p.b, make([]byte, 500)); info.Stream != 2 {
			t.Errorf("stream %d", info.Stream)
		}
	})
}

// A shutdown, of either side, before the end of a message ends the association with
// an ABORT, after what was written.
func TestShutdownOfOpenMessage(t *testing.T) {
	for _, byPeer := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var got []byte
			cb := &sctp.Config{OnPiece: func(_ *sctp.Association, p *sctp.Piece) { got = append(got, p.Data...) }}
			if byPeer {
				cb = nil
			}
			p := newPair(t, 2, sctptest.Link{Delay: 10 * time.Millisecond}, nil, cb)
			w, err := p.a.OpenMessage(t.Context(), sctp.SendOptions{})
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(w, "begun")
			end := p.a
			if byPeer {
				synctest.Wait()
				end = p.b
			}
			err = end.Shutdown(t.Context())
			var abort *sctp.AbortError
			if !errors.As(err, &abort) || abort.ByPeer != byPeer || abort.Reason != "a message was not ended" {
				t.Errorf("Shutdown: %v", err)
			}
			if _, err := w.Write([]byte("more")); !errors.As(err, &abort) {
				t.Errorf("Write: %v", err)
			}
			synctest.Wait() // the upcall may come after the acknowledgement
			if !byPeer && string(got) != "begu" {
				t.Errorf("the peer got %q", got)
			}
		})
	}
}
