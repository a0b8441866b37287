package stream_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/stream"
)

// A request arrives as it was sent, and what the other end says about it.
func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, nil)
		defer p.close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, n := range []int{0, 1, stream.MaxRequest} {
			request := pattern(n, 1)
			go func() {
				r, err := p.b.Accept(ctx)
				if err != nil || !bytes.Equal(r.Bytes(), request) || r.Origin() != p.a.Address() {
					t.Errorf("request of %d bytes: %v", n, err)
					return
				}
				if err := r.Refuse(ctx, stream.CodeUser+3, strings.Repeat("no", 400)); err != nil {
					t.Error(err)
				}
			}()
			_, err := p.a.Dial(ctx, p.b.Address(), request)
			var refused *stream.RefusedError
			if !errors.As(err, &refused) || refused.Code != stream.CodeUser+3 || len(refused.Text) != 512 {
				t.Errorf("Dial: %v", err)
			}
		}
		_, err := p.a.Dial(ctx, p.b.Address(), make([]byte, stream.MaxRequest+1))
		wantErr(t, "Dial with a long request", err, stream.ErrConfig)
		_, err = p.a.Dial(ctx, p.a.Address(), nil)
		wantErr(t, "Dial to the own process", err, stream.ErrConfig)

		// A Dial that is given up takes its request back.
		short, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		_, err = p.a.Dial(short, p.b.Address(), nil)
		wantErr(t, "Dial that nobody answers", err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		r, err := p.b.Accept(ctx)
		wantNil(t, err)
		_, err = r.Accept(ctx)
		wantErr(t, "Accept of what was given up", err, stream.ErrReset)
		wantErr(t, "Refuse of what was given up", r.Refuse(ctx, stream.CodeUser, ""), stream.ErrReset)
		if a, b := p.a.Stats(), p.b.Stats(); a.RefusedByPeer != 3 || b.Refused != 3 || a.Conns != 1 || b.Conns != 1 {
			t.Errorf("%+v\n%+v", a, b)
		}
	})
}

// The limits of connections, of those that wait, and of who may connect.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(*relay.NodeConfig, *stream.Config)
		most int
		code stream.Code
		text string
	}{
		{"MaxConns", func(_ *relay.NodeConfig, c *stream.Config) { c.MaxConns = 10 }, 10, stream.CodeBusy, "too many connections"},
		{"Backlog", nil, stream.Backlog, stream.CodeBusy, "too many connections wait"},
		{"Allow", func(_ *relay.NodeConfig, c *stream.Config) {
			c.Allow = func(a relay.Address) bool { return a.Site != 1 }
		}, 0, stream.CodeForbidden, "not allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, 1, lan, wan)
				defer w.Close()
				a, b := w.end(1, 1, nil), w.end(2, 1, tt.set)
				defer a.close()
				defer b.close()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				results := make(chan error, 2*stream.Backlog)
				for range tt.most {
					go func() { _, err := a.Dial(ctx, b.Address(), nil); results <- err }()
				}
				time.Sleep(time.Second)
				if len(results) > 0 {
					t.Fatalf("Dial within the limit: %v", <-results)
				}
				_, err := a.Dial(ctx, b.Address(), nil)
				var refused *stream.RefusedError
				if !errors.As(err, &refused) || refused.Code != tt.code || refused.Text != tt.text {
					t.Errorf("Dial beyond the limit: %v", err)
				}
				if s := b.Stats(); s.Conns != tt.most || s.Refused != 1 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, func(_ *relay.NodeConfig, c *stream.Config) { c.MaxConns = 1 })
		defer p.close()
		_, err := p.a.Dial(t.Context(), p.b.Address(), nil)
		wantErr(t, "Dial beyond MaxConns", err, stream.ErrLimit)
	})
}

// Close of an endpoint ends calls, and resets connections.
func TestCloseEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, nil)
		defer p.close()
		results := make(chan error, 3)
		go func() { _, err := p.a.Accept(t.Context()); results <- err }()
		go func() { _, err := p.a.Dial(t.Context(), p.b.Address(), nil); results <- err }()
		go func() { _, err := p.c.Read(make([]byte, 1)); results <- err }()
		time.Sleep(time.Second)
		wantNil(t, p.a.Close())
		for range 3 {
			wantErr(t, "call that waited", <-results, stream.ErrClosed)
		}
		_, err := p.a.Dial(t.Context(), p.b.Address(), nil)
		wantErr(t, "Dial", err, stream.ErrClosed)
		time.Sleep(time.Second)
		_, err = p.d.Read(make([]byte, 1))
		wantErr(t, "Read of the other end", err, stream.ErrReset)
	})
	if _, err := stream.New(stream.Config{}); !errors.Is(err, stream.ErrConfig) {
		t.Errorf("New without a node: %v", err)
	}
}
