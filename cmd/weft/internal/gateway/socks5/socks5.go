// Package socks5 is the server's side of SOCKS5 (RFC 1928) with the command CONNECT, and of its authentication by user
// and password (RFC 1929).
package socks5

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

const (
	version     = 5
	authVersion = 1 // RFC 1929, 2

	methodNone     = 0x00
	methodPassword = 0x02
	methodRefused  = 0xff

	commandConnect = 1

	addressIPv4   = 1
	addressDomain = 3
	addressIPv6   = 4
)

// Reply is the status of a request (RFC 1928, 6).
type Reply byte

// The replies.
const (
	Succeeded            Reply = 0
	GeneralFailure       Reply = 1
	NotAllowed           Reply = 2
	NetworkUnreachable   Reply = 3
	HostUnreachable      Reply = 4
	ConnectionRefused    Reply = 5
	TTLExpired           Reply = 6
	CommandNotSupported  Reply = 7
	AddressNotSupported  Reply = 8
	authenticationFailed       = 1 // of RFC 1929
)

var (
	// ErrProtocol is returned for a client that does not speak SOCKS5 as the RFC says.
	ErrProtocol = errors.New("socks5: protocol error")
	// ErrAuth is returned for a client whose methods, user or password are not accepted.
	ErrAuth = errors.New("socks5: authentication failed")
)

// Target is what a client wants to be connected with: Addr, or Domain if that is not valid.
type Target struct {
	Addr   netip.AddrPort
	Domain string
	Port   uint16
}

// String returns host and port.
func (t Target) String() string {
	if t.Addr.IsValid() {
		return t.Addr.String()
	}
	return fmt.Sprintf("%s:%d", t.Domain, t.Port)
}

// Users maps names to hashes of passwords. A nil map means that clients need no password.
type Users map[string][sha256.Size]byte

// maxUsers bounds the users of a file.
const maxUsers = 10_000

// ParseUsers reads lines "user password" (or user:password). Lines that are empty or begin with # are skipped.
func ParseUsers(name, text string) (Users, error) {
	u := make(Users)
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.IndexAny(line, " \t:")
		if at <= 0 || strings.TrimSpace(line[at+1:]) == "" {
			return nil, fmt.Errorf("%s:%d: want a user and a password", name, i+1)
		}
		user, password := line[:at], strings.TrimSpace(line[at+1:])
		switch {
		case len(user) > 255 || len(password) > 255: // RFC 1929, 2
			return nil, fmt.Errorf("%s:%d: user or password of more than 255 bytes", name, i+1)
		case len(u) >= maxUsers:
			return nil, fmt.Errorf("%s:%d: more than %d users", name, i+1, maxUsers)
		}
		if _, ok := u[user]; ok {
			return nil, fmt.Errorf("%s:%d: user %q for the second time", name, i+1, user)
		}
		u[user] = sha256.Sum256([]byte(password))
	}
	if len(u) == 0 {
		return nil, fmt.Errorf("%s: no users", name)
	}
	return u, nil
}

func (u Users) allows(user, password string) bool {
	want, known := u[user]
	got := sha256.Sum256([]byte(password))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && known
}

// Negotiate talks to a client until it has said what it wants to be connected with. Nothing behind the request is
// read. A client that is not accepted has been told so when it returns; it is to be disconnected. The caller sets
// deadlines, and sends the reply to the request with Answer.
func Negotiate(c io.ReadWriter, users Users) (Target, error) {
	if err := greet(c, users); err != nil {
		return Target{}, err
	}
	return request(c)
}

// greet agrees on a method (RFC 1928, 3), and authenticates.
func greet(c io.ReadWriter, users Users) error {
	var b [255]byte
	if _, err := io.ReadFull(c, b[:2]); err != nil {
		return err
	}
	if b[0] != version {
		return fmt.Errorf("%w: version %d, want %d", ErrProtocol, b[0], version)
	}
	methods := b[:b[1]]
	if _, err := io.ReadFull(c, methods); err != nil {
		return err
	}
	want := byte(methodNone)
	if users != nil {
		want = methodPassword
	}
	if !strings.Contains(string(methods), string([]byte{want})) {
		_, _ = c.Write([]byte{version, methodRefused})
		return fmt.Errorf("%w: the client does not offer method %d", ErrAuth, want)
	}
	if _, err := c.Write([]byte{version, want}); err != nil || users == nil {
		return err
	}
	// RFC 1929, 2: version, length and user, length and password.
	if _, err := io.ReadFull(c, b[:1]); err != nil {
		return err
	}
	if b[0] != authVersion {
		return fmt.Errorf("%w: authentication of version %d, want %d", ErrProtocol, b[0], authVersion)
	}
	user, err := text(c)
	if err != nil {
		return err
	}
	password, err := text(c)
	if err != nil {
		return err
	}
	if !users.allows(user, password) {
		_, _ = c.Write([]byte{authVersion, authenticationFailed})
		return fmt.Errorf("%w: user %q", ErrAuth, user)
	}
	_, err = c.Write([]byte{authVersion, 0})
	return err
}

// text reads a length and as many bytes.
func text(r io.Reader) (string, error) {
	var b [256]byte
	if _, err := io.ReadFull(r, b[:1]); err != nil {
		return "", err
	}
	n := int(b[0])
	if _, err := io.ReadFull(r, b[1:1+n]); err != nil {
		return "", err
	}
	return string(b[1 : 1+n]), nil
}

// request reads a request (RFC 1928, 4).
func request(c io.ReadWriter) (t Target, err error) {
	var b [4]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return t, err
	}
	if b[0] != version || b[2] != 0 {
		return t, fmt.Errorf("%w: request of version %d, reserved byte %d", ErrProtocol, b[0], b[2])
	}
	var host netip.Addr
	switch b[3] {
	case addressIPv4:
		var a [4]byte
		_, err = io.ReadFull(c, a[:])
		host = netip.AddrFrom4(a)
	case addressIPv6:
		var a [16]byte
		_, err = io.ReadFull(c, a[:])
		host = netip.AddrFrom16(a).Unmap()
	case addressDomain:
		t.Domain, err = text(c)
	default:
		_ = Answer(c, AddressNotSupported)
		return t, fmt.Errorf("%w: address type %d", ErrProtocol, b[3])
	}
	if err != nil {
		return t, err
	}
	var port [2]byte
	if _, err := io.ReadFull(c, port[:]); err != nil {
		return t, err
	}
	t.Port = uint16(port[0])<<8 | uint16(port[1])
	if host.IsValid() {
		t.Addr = netip.AddrPortFrom(host, t.Port)
	} else if t.Domain == "" || strings.ContainsRune(t.Domain, 0) {
		_ = Answer(c, HostUnreachable)
		return t, fmt.Errorf("%w: domain %q", ErrProtocol, t.Domain)
	}
	if b[1] != commandConnect {
		_ = Answer(c, CommandNotSupported)
		return t, fmt.Errorf("%w: command %d, only CONNECT is served", ErrProtocol, b[1])
	}
	return t, nil
}

// Answer sends the reply to a request. The address in it, of the far end's socket, is unknown here: it is 0.0.0.0:0.
func Answer(w io.Writer, r Reply) error {
	_, err := w.Write([]byte{version, byte(r), 0, addressIPv4, 0, 0, 0, 0, 0, 0})
	return err
}
