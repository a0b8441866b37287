package sctp

import (
	"bytes"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// A short message needs no block of memory: its record has room for it.
func TestShortMessagesAreHeaders(t *testing.T) {
	msg := bytes.Repeat([]byte("x"), MaxHeader+1)
	for _, c := range []struct {
		n     int
		opts  SendOptions
		block bool
		owner bool
	}{
		{n: 1},
		{n: MaxHeader},
		{n: MaxHeader + 1, block: true, owner: true},
		{n: 1, opts: SendOptions{Header: []byte("h")}, block: true, owner: true},
		{n: MaxHeader, opts: SendOptions{Owner: unchanged{}}, owner: true},
		{n: 0},
	} {
		var m tx.Message
		own := newMessage(&m, msg[:c.n], &c.opts)
		if (own != nil) != c.block || (m.Owner != nil) != c.owner {
			t.Errorf("%d bytes after %q: block %v, owner %v", c.n, c.opts.Header, own, m.Owner)
		}
		want := string(c.opts.Header) + string(msg[:c.n])
		if got := string(m.Header) + string(m.Body); got != want {
			t.Errorf("%d bytes after %q: message %q, want %q", c.n, c.opts.Header, got, want)
		}
		own.Put()
	}
}

// unchanged is the owner of a message that stays unchanged.
type unchanged struct{}

func (unchanged) Released(error) {}
