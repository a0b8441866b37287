package pmi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// service is what publishes names: the launcher, or a server of its own.
type service interface {
	Publish(ctx context.Context, name, port string) error
	Unpublish(ctx context.Context, name, port string) error
	Lookup(ctx context.Context, name string) (string, error)
}

func TestNamesArePublished(t *testing.T) {
	names := new(Names)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go names.ServeNames(t.Context(), l, "secret")
	services := map[string]service{"server": NameClient(l.Addr().String() + "/secret")}
	for _, extended := range []bool{false, true} {
		s := NewServer(1, fmt.Sprint("kvs_", extended))
		s.Names = new(Names)
		if extended {
			t.Setenv(EnvWatch, s.Name())
		}
		c := joined(t, s, 1)
		services[fmt.Sprint("launcher extended=", extended)] = c
	}
	for which, s := range services {
		t.Run(which, func(t *testing.T) {
			ctx := t.Context()
			name := "name"
			if !strings.Contains(which, "false") {
				name = "a name = with spaces"
			} else if err := s.Publish(ctx, "two words", "port"); !errors.Is(err, ErrRefused) {
				t.Errorf("a name that PMI-1 cannot express: %v", err)
			}
			if _, err := s.Lookup(ctx, name); !errors.Is(err, ErrRefused) {
				t.Errorf("before: %v", err)
			}
			if err := s.Publish(ctx, name, "port:1"); err != nil {
				t.Error(err)
			}
			if err := s.Publish(ctx, name, "port:2"); !errors.Is(err, ErrRefused) {
				t.Errorf("twice: %v", err)
			}
			if p, err := s.Lookup(ctx, name); p != "port:1" || err != nil {
				t.Errorf("found %q, %v", p, err)
			}
			if err := s.Unpublish(ctx, name, "port:2"); !errors.Is(err, ErrRefused) {
				t.Errorf("of another port: %v", err)
			}
			if err := s.Unpublish(ctx, name, "port:1"); err != nil {
				t.Error(err)
			}
			for _, name := range []string{"", strings.Repeat("x", MaxName+1)} {
				if err := s.Publish(ctx, name, "port"); !errors.Is(err, ErrRefused) {
					t.Errorf("name of %d bytes: %v", len(name), err)
				}
			}
		})
	}
}

func TestNamesAreBounded(t *testing.T) {
	n := new(Names)
	for i := range MaxNames {
		if err := n.Publish(fmt.Sprint(i), "port"); err != nil {
			t.Fatal(err)
		}
	}
	if n.Publish("one more", "port") == nil {
		t.Error("more than MaxNames names are taken")
	}
	if n.Unpublish("0", "") != nil || n.Publish("one more", "port") != nil {
		t.Error("no room after Unpublish")
	}
	if n.Unpublish("one more", "") != nil || n.Publish(strings.Repeat("x", MaxName+1), "port") == nil || n.Publish("x", strings.Repeat("x", MaxName+1)) == nil {
		t.Error("a name longer than MaxName is taken")
	}
}

func TestNameServerRefusesStrangers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go new(Names).ServeNames(t.Context(), l, "secret")
	for _, address := range []NameClient{NameClient(l.Addr().String() + "/guess"), NameClient(l.Addr().String()), "", "127.0.0.1:1/x"} {
		if err := address.Publish(t.Context(), "name", "port"); err == nil {
			t.Errorf("%q: published", address)
		}
	}
	for _, line := range []string{"cmd=lookup_name service=x\n", "cmd=initack weft_token=secret\ncmd=dance\n", strings.Repeat("x", MaxLine+1)} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = conn.Write([]byte(line)) // it may have closed by then
		b := make([]byte, 100)
		n, err := conn.Read(b)
		if err == nil && strings.HasPrefix(string(b[:n]), "cmd=initack rc=0") {
			n, err = conn.Read(b)
		}
		if err == nil {
			t.Errorf("%.40q: answered %q", line, b[:n])
		}
	}
}

// pipes is a listener that is given its connections.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Clients that do not show the token are bounded, and keep no others out.
func TestNameClientsAreBounded(t *testing.T) {
	l := make(pipes)
	ended := make(chan error, 1)
	go func() { ended <- new(Names).ServeNames(t.Context(), l, "secret") }()
	dial := func() net.Conn {
		here, there := net.Pipe()
		l <- there
		return here
	}
	var idle []net.Conn
	for range maxNameClients + 2 {
		c := dial()
		defer c.Close()
		idle = append(idle, c)
	}
	if _, err := idle[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the oldest idle client of %d: %v, want its end", len(idle), err)
	}
	c := dial()
	defer c.Close()
	b := make([]byte, 100)
	if _, err := c.Write([]byte("cmd=initack weft_token=secret\n")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(b); err != nil || !strings.HasPrefix(string(b[:n]), "cmd=initack rc=0") {
		t.Errorf("a client behind idle ones: answered %q, %v", b[:n], err)
	}
	c.Close()
	for _, c := range idle {
		c.Close()
	}
	close(l)
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
