package sctp_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
)

// A peer whose stack answers while its program does not read holds an association that was
// closed for a bounded time only, whoever began the shutdown. Its program learns that data
// is missing.
func TestBackgroundCloseEnds(t *testing.T) {
	const buffer = 64 << 10
	for _, tc := range []struct {
		name  string
		cfg   sctp.Config
		close func(a *sctp.Association)
		after time.Duration
	}{
		{"Close", sctp.Config{}, func(a *sctp.Association) { a.Close() }, sctp.DefaultLinger},
		{"Close, Config.Linger", sctp.Config{Linger: 10 * time.Second}, func(a *sctp.Association) { a.Close() }, 10 * time.Second},
		{"Conn.Close", sctp.Config{}, func(a *sctp.Association) { sctp.NewConn(a).Close() }, sctp.DefaultLinger},
		{"Shutdown whose context ends", sctp.Config{}, func(a *sctp.Association) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			if err := a.Shutdown(ctx); err != context.DeadlineExceeded {
				t.Errorf("Shutdown = %v", err)
			}
		}, time.Hour + sctp.DefaultLinger},
		{"AutoClose", sctp.Config{AutoClose: time.Minute}, func(*sctp.Association) {}, time.Minute + sctp.DefaultLinger},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := tc.cfg
				cfg.SendBuffer = buffer
				p, c, _ := connPair(t, &cfg, &sctp.Config{RecvBuffer: buffer})
				fill(t, c)
				p.a.Send(context.Background(), []byte("x"), sctp.SendOptions{Force: true})
				began := time.Now()
				tc.close(p.a)
				select {
				case <-p.a.Done():
				case <-time.After(10 * time.Hour):
					t.Error("the association is still there")
					p.a.Abort("")
					return
				}
				if d := time.Since(began); d < tc.after || d > tc.after+time.Second {
					t.Errorf("it ended after %v, want %v", d, tc.after)
				}
				if err := p.a.Err(); !errors.Is(err, sctp.ErrTimeout) {
					t.Errorf("it ended with %v, want ErrTimeout", err)
				}
				_, err := io.Copy(io.Discard, sctp.NewConn(p.b))
				var abort *sctp.AbortError
				if !errors.As(err, &abort) || !abort.ByPeer {
					t.Errorf("the peer read until %v, want an AbortError", err)
				}
			})
		})
	}
}

// A peer that reads, however slowly, gets everything; and with a negative Config.Linger
// one that does not read for long.
func TestBackgroundCloseDeliversToSlowReaders(t *testing.T) {
	for _, tc := range []struct {
		name   string
		linger time.Duration
		pause  time.Duration // before it reads
		bytes  int           // that it reads each second then
	}{
		{"slow", 0, 0, 1000},
		{"late", -1, 24 * time.Hour, 100_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, a, b := connPair(t, &sctp.Config{Linger: tc.linger, SendBuffer: 1 << 20}, &sctp.Config{RecvBuffer: 64 << 10})
				want := fill(t, a)
				a.Close()
				time.Sleep(tc.pause)
				got := 0
				for buf := make([]byte, tc.bytes); ; time.Sleep(time.Second) {
					n, err := io.ReadFull(b, buf)
					got += n
					if err == io.EOF || err == io.ErrUnexpectedEOF {
						break
					}
					if err != nil {
						t.Fatalf("Read after %d of %d bytes: %v", got, want, err)
					}
				}
				if got != want {
					t.Errorf("%d of %d bytes arrived", got, want)
				}
				<-a.Association().Done()
				if err := a.Association().Err(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
