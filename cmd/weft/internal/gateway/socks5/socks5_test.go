package socks5

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// client is what a client sends, and what it gets.
type client struct {
	io.Reader
	got bytes.Buffer
}

func (c *client) Write(b []byte) (int, error) { return c.got.Write(b) }

func say(parts ...string) *client { return &client{Reader: strings.NewReader(strings.Join(parts, ""))} }

// Whole conversations: what the client sends, what it gets, and what becomes of it. Behind each request there is more,
// which must not be read.
func TestNegotiate(t *testing.T) {
	users, err := ParseUsers("users", "# staff\nalice secret word\nbob:pw\n\n")
	if err != nil {
		t.Fatal(err)
	}
	const rest = "the first bytes of the connection"
	long := strings.Repeat("x", 255)
	for _, tt := range []struct {
		name   string
		users  Users
		say    string
		answer string
		want   string // host and port, or an error
	}{
		{"IPv4", nil, "\x05\x01\x00\x05\x01\x00\x01\x0a\x02\x00\x01\x00\x50", "\x05\x00", "10.2.0.1:80"},
		{"IPv6", nil, "\x05\x02\x00\x01\x05\x01\x00\x04\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x01\x00", "\x05\x00", "[fd00::2]:256"},
		{"IPv4 in IPv6", nil, "\x05\x01\x00\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x02\x00\x01\x00\x50", "\x05\x00", "10.2.0.1:80"},
		{"domain", nil, "\x05\x01\x00\x05\x01\x00\x03\x03n.x\xff\xff", "\x05\x00", "n.x:65535"},
		{"longest domain", nil, "\x05\x01\x00\x05\x01\x00\x03\xff" + long + "\x00\x01", "\x05\x00", long + ":1"},
		{"password", users, "\x05\x02\x00\x02\x01\x05alice\x0bsecret word\x05\x01\x00\x01\x0a\x02\x00\x01\x00\x50", "\x05\x02\x01\x00", "10.2.0.1:80"},
		{"other form of line", users, "\x05\x01\x02\x01\x03bob\x02pw\x05\x01\x00\x01\x0a\x02\x00\x01\x00\x50", "\x05\x02\x01\x00", "10.2.0.1:80"},
		{"wrong password", users, "\x05\x01\x02\x01\x05alice\x06secret", "\x05\x02\x01\x01", `authentication failed: user "alice"`},
		{"unknown user", users, "\x05\x01\x02\x01\x03eve\x00", "\x05\x02\x01\x01", `authentication failed: user "eve"`},
		{"password of another", users, "\x05\x01\x02\x01\x03bob\x0bsecret word", "\x05\x02\x01\x01", `authentication failed: user "bob"`},
		{"authentication of version 2", users, "\x05\x01\x02\x02", "\x05\x02", "version 2, want 1"},
		{"no password where one is wanted", users, "\x05\x01\x00", "\x05\xff", "does not offer method 2"},
		{"password where none is wanted", nil, "\x05\x01\x02", "\x05\xff", "does not offer method 0"},
		{"no methods", nil, "\x05\x00", "\x05\xff", "does not offer method 0"},
		{"SOCKS4", nil, "\x04\x01\x00\x50", "", "version 4, want 5"},
		{"HTTP", nil, "GET / HTTP/1.1\r\n", "", "version 71"},
		{"BIND", nil, "\x05\x01\x00\x05\x02\x00\x01\x0a\x02\x00\x01\x00\x50", "\x05\x00\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00", "command 2"},
		{"UDP ASSOCIATE", nil, "\x05\x01\x00\x05\x03\x00\x01\x0a\x02\x00\x01\x00\x50", "\x05\x00\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00", "command 3"},
		{"address type", nil, "\x05\x01\x00\x05\x01\x00\x02", "\x05\x00\x05\x08\x00\x01\x00\x00\x00\x00\x00\x00", "address type 2"},
		{"empty domain", nil, "\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50", "\x05\x00\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00", `domain ""`},
		{"zero in the domain", nil, "\x05\x01\x00\x05\x01\x00\x03\x02a\x00\x00\x50", "\x05\x00\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00", "domain"},
		{"reserved byte", nil, "\x05\x01\x00\x05\x01\x01\x01\x0a\x02\x00\x01\x00\x50", "\x05\x00", "reserved byte 1"},
		{"version of the request", nil, "\x05\x01\x00\x04\x01\x00\x01\x0a\x02\x00\x01\x00\x50", "\x05\x00", "request of version 4"},
	} {
		c := say(tt.say, rest)
		got, err := Negotiate(c, tt.users)
		left, _ := io.ReadAll(c.Reader)
		switch {
		case c.got.String() != tt.answer:
			t.Errorf("%s: answer %q, want %q", tt.name, c.got.String(), tt.answer)
		case err != nil && (!strings.Contains(err.Error(), tt.want) || !errors.Is(err, ErrProtocol) && !errors.Is(err, ErrAuth)):
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		case err == nil && (got.String() != tt.want || string(left) != rest):
			t.Errorf("%s: %v, want %s; %q is left", tt.name, got, tt.want, left)
		}
		for n := range len(tt.say) { // a client that stops at any byte
			if _, err := Negotiate(say(tt.say[:n]), tt.users); err == nil {
				t.Errorf("%s: accepted after %d of %d bytes", tt.name, n, len(tt.say))
			}
		}
	}
}

func TestParseUsers(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "no users",
		"alice":                               "file:1: want a user and a password",
		"alice a\n\nbob":                      "file:3: want a user",
		":x":                                  "file:1",
		"a b\na c":                            `file:2: user "a" for the second time`,
		strings.Repeat("u", 256) + " x":       "more than 255 bytes",
		"u " + strings.Repeat("p", 256):       "more than 255 bytes",
		strings.Repeat("#\n", 3) + "onlyuser": "file:4",
	} {
		if _, err := ParseUsers("file", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	var many strings.Builder
	for i := range maxUsers + 1 {
		many.WriteString(strings.Repeat("u", 1+i%200) + string(rune('a'+i%26)) + strings.Repeat("v", i/200) + " x\n")
	}
	if _, err := ParseUsers("file", many.String()); err == nil || !strings.Contains(err.Error(), "more than 10000 users") {
		t.Errorf("many users: %v", err)
	}
}

// FuzzNegotiate: whatever a client sends, the server ends, reads no more than the longest conversation, and connects
// only after a whole request.
func FuzzNegotiate(f *testing.F) {
	f.Add(false, []byte("\x05\x01\x00\x05\x01\x00\x01\x0a\x02\x00\x01\x00\x50"))
	f.Add(true, []byte("\x05\x02\x00\x02\x01\x05alice\x06secret\x05\x01\x00\x03\x03n.x\x00\x50"))
	f.Add(false, []byte("\x05\x01\x00\x05\x01\x00\x04\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x01\x00"))
	users, err := ParseUsers("", "alice secret")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, auth bool, b []byte) {
		var u Users
		if auth {
			u = users
		}
		c := say(string(b))
		got, err := Negotiate(c, u)
		left, _ := io.ReadAll(c.Reader)
		read := len(b) - len(left)
		const longest = 2 + 255 + 1 + 2*256 + 4 + 256 + 2
		if read > longest {
			t.Errorf("%d bytes were read, at most %d have a meaning", read, longest)
		}
		if err != nil {
			return
		}
		if !got.Addr.IsValid() && got.Domain == "" || got.Addr.IsValid() && got.Addr.Port() != got.Port {
			t.Errorf("target %+v", got)
		}
		if b[0] != version || auth && !bytes.Contains(b[:read], []byte("\x05alice\x06secret")) {
			t.Errorf("connects after %q", b[:read])
		}
	})
}
