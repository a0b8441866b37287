package sctp_test

import (
	"context"
	"errors"
	"strings"
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

// RFC 6458, Section 5.3.8: every message is authenticated with the key it names, also
// when packets are lost, and a key is kept as long as it is needed.
func TestMessagesNameTheirKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		auth := func() *sctp.AuthConfig {
			return &sctp.AuthConfig{
				Chunks: []wire.ChunkType{wire.ChunkData, wire.ChunkIData},
				Keys:   []sctp.AuthKey{{ID: 1, Secret: []byte("one")}, {ID: 2, Secret: []byte("two")}, {ID: 3, Secret: []byte("three")}}, Active: 1,
			}
		}
		keys := make(chan uint16, 10_000)
		cb := &sctp.Config{Auth: auth(), OnNotify: func(_ *sctp.Association, n sctp.Notification) {
			if n.Kind == sctp.NotifyAuthKey {
				keys <- n.Key
			}
		}}
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond, Loss: 0.05}, &sctp.Config{Auth: auth()}, cb)
		ctx := context.Background()
		go func() {
			for i := range 300 {
				o := sctp.SendOptions{Stream: uint16(i % 5), UseAuthKey: i%4 != 0, AuthKey: uint16(i % 4)}
				if err := p.a.Send(ctx, pattern(1+i*i%5000), o); err != nil {
					t.Error(err)
				}
			}
		}()
		buf := make([]byte, 5001)
		for range 300 {
			recvMessage(t, p.b, buf)
		}
		seen := map[uint16]int{}
		for len(keys) > 0 {
			seen[<-keys]++
		}
		if seen[1] < 5 || seen[2] < 5 || seen[3] < 5 {
			t.Errorf("the peer was told of changes to the keys %v", seen)
		}
		p.net.Cut(addrA, addrB)
		if err := p.a.Send(ctx, buf, sctp.SendOptions{UseAuthKey: true, AuthKey: 3}); err != nil {
			t.Fatal(err)
		}
		if err := p.a.DeleteAuthKey(3); err != sctp.ErrNoKey {
			t.Errorf("a key that a message needs: %v", err)
		}
		p.net.Restore(addrA, addrB)
		recvMessage(t, p.b, buf)
		time.Sleep(time.Minute) // the last SACK may be lost
		if err := p.a.DeleteAuthKey(3); err != nil {
			t.Error(err)
		}
		if err := p.a.Send(ctx, buf, sctp.SendOptions{UseAuthKey: true, AuthKey: 3}); err != sctp.ErrNoKey {
			t.Errorf("a key that was deleted: %v", err)
		}
		// The peer asks for nothing to be authenticated.
		q := newPair(t, 2, sctptest.Link{}, &sctp.Config{Auth: auth()}, &sctp.Config{Auth: &sctp.AuthConfig{}})
		if err := q.a.Send(ctx, buf, sctp.SendOptions{UseAuthKey: true, AuthKey: 1}); err != sctp.ErrNotSupported {
			t.Errorf("user messages are not authenticated: %v", err)
		}
	})
}

// RFC 6458, Sections 6.1.8 and 8.3.4: a deactivated key takes no new messages, and it
// is told when those are done with that name it.
func TestDeactivatedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		auth := func() *sctp.AuthConfig {
			return &sctp.AuthConfig{
				Chunks: []wire.ChunkType{wire.ChunkData, wire.ChunkIData},
				Keys:   []sctp.AuthKey{{ID: 1, Secret: []byte("one")}, {ID: 2, Secret: []byte("two")}, {ID: 3, Secret: []byte("three")}}, Active: 1,
			}
		}
		free := make(chan uint16, 10)
		ca := &sctp.Config{Auth: auth(), OnNotify: func(_ *sctp.Association, n sctp.Notification) {
			if n.Kind == sctp.NotifyAuthKeyFree {
				free <- n.Key
			}
		}}
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, ca, &sctp.Config{Auth: auth()})
		ctx := context.Background()
		second := sctp.SendOptions{UseAuthKey: true, AuthKey: 2}
		p.net.Cut(addrA, addrB)
		if err := p.a.Send(ctx, []byte("under way"), second); err != nil {
			t.Fatal(err)
		}
		for _, id := range []uint16{2, 3} {
			if err := p.a.DeactivateAuthKey(id); err != nil {
				t.Fatal(err)
			}
		}
		for _, err := range []error{p.a.Send(ctx, []byte("no"), second), p.a.UseAuthKey(2), p.a.DeactivateAuthKey(1),
			p.a.DeactivateAuthKey(7), p.a.DeleteAuthKey(2)} {
			if err != sctp.ErrNoKey {
				t.Errorf("a key that is deactivated, not there or in use: %v", err)
			}
		}
		synctest.Wait()
		if n := len(free); n != 1 || <-free != 3 {
			t.Errorf("told of %d keys, want the one that nothing was sent with", n)
		}
		p.net.Restore(addrA, addrB)
		recvMessage(t, p.b, make([]byte, 100))
		time.Sleep(time.Second)
		if n := len(free); n != 1 || <-free != 2 {
			t.Fatalf("told of %d keys, want the one that is not needed any more", n)
		}
		if err := p.a.SetAuthKey(2, []byte("two")); err != nil {
			t.Fatal(err)
		}
		if err := p.a.Send(ctx, []byte("again"), second); err != nil {
			t.Errorf("a key that was set again: %v", err)
		}
		recvMessage(t, p.b, make([]byte, 100))
		time.Sleep(time.Second)
		if len(free) > 0 {
			t.Errorf("told of key %d, which is active", <-free)
		}
	})
}

// What cannot be used of a Config for authentication is refused: a key that is left out in
// silence would have the association use another one.
func TestAuthConfigIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := memTransport(t, sctptest.NewNetwork(1).NewHost(addrA))
		many := make([]sctp.AuthKey, 65)
		for i := range many {
			many[i].ID = uint16(i)
		}
		for name, tc := range map[string]struct {
			auth sctp.AuthConfig
			want string // part of the error, if any
		}{
			"empty":           {sctp.AuthConfig{}, ""},
			"two keys":        {sctp.AuthConfig{Keys: many[:2], Active: 1}, ""},
			"most keys":       {sctp.AuthConfig{Keys: many[:64]}, ""},
			"too many keys":   {sctp.AuthConfig{Keys: many}, "65 shared keys: at most 64"},
			"longest secret":  {sctp.AuthConfig{Keys: []sctp.AuthKey{{Secret: make([]byte, 1024)}}}, ""},
			"long secret":     {sctp.AuthConfig{Keys: []sctp.AuthKey{{Secret: make([]byte, 1025)}}}, "key 0 has 1025 bytes: at most 1024"},
			"same ID":         {sctp.AuthConfig{Keys: []sctp.AuthKey{{ID: 3}, {ID: 3}}, Active: 3}, "two shared keys 3"},
			"unknown active":  {sctp.AuthConfig{Keys: many[:2], Active: 2}, "active shared key 2"},
			"active, no keys": {sctp.AuthConfig{Active: 1}, "active shared key 1"},
			"INIT":            {sctp.AuthConfig{Chunks: []wire.ChunkType{wire.ChunkData, wire.ChunkInit}}, "type 1 cannot be authenticated"},
			"unknown HMAC":    {sctp.AuthConfig{HMACs: []uint16{2}}, "HMAC 2"},
		} {
			e, err := tr.Listen(0, &sctp.Config{Auth: &tc.auth})
			if (err == nil) != (tc.want == "") || err != nil && (!errors.Is(err, sctp.ErrConfig) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: %v, want %q", name, err, tc.want)
			}
			if e != nil {
				e.Close()
			}
		}
	})
}
