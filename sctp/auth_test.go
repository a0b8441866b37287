package sctp_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/sctp/wire"
)

func TestAuthenticatedData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		auth := func() *sctp.AuthConfig {
			return &sctp.AuthConfig{
				Chunks: []wire.ChunkType{wire.ChunkData, wire.ChunkIData, wire.ChunkSack},
				Keys:   []sctp.AuthKey{{ID: 1, Secret: []byte("secret")}}, Active: 1,
			}
		}
		keys := make(chan uint16, 10)
		cb := &sctp.Config{Auth: auth(), OnNotify: func(_ *sctp.Association, n sctp.Notification) {
			if n.Kind == sctp.NotifyAuthKey {
				keys <- n.Key
			}
		}}
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond, Loss: 0.05}, &sctp.Config{Auth: auth()}, cb)
		if !p.a.Authenticated() || !p.b.Authenticated() {
			t.Fatal("not authenticated")
		}
		ctx := context.Background()
		buf := make([]byte, 200_000)
		send := func() {
			t.Helper()
			if err := p.a.Send(ctx, pattern(100_000), sctp.SendOptions{}); err != nil {
				t.Fatal(err)
			}
			recvMessage(t, p.b, buf)
		}
		send()
		for _, a := range []*sctp.Association{p.a, p.b} {
			if err := a.SetAuthKey(2, []byte("another")); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.a.UseAuthKey(2); err != nil {
			t.Fatal(err)
		}
		send()
		for k := range keys {
			if k == 2 {
				break
			}
		}
		if err := p.a.DeleteAuthKey(1); err != nil {
			t.Error(err)
		}
		for _, err := range []error{p.a.DeleteAuthKey(2), p.a.DeleteAuthKey(7), p.a.UseAuthKey(7)} {
			if !errors.Is(err, sctp.ErrNoKey) {
				t.Errorf("a key that is not there or in use: %v", err)
			}
		}
	})
}

func TestAuthNeedsBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, &sctp.Config{Auth: &sctp.AuthConfig{}}, nil)
		if p.a.Authenticated() {
			t.Error("authenticated with a peer that is not")
		}
		if err := p.b.SetAuthKey(1, nil); !errors.Is(err, sctp.ErrNotSupported) {
			t.Errorf("SetAuthKey without Config.Auth: %v", err)
		}
	})
}
