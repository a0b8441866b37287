package pmi

import (
	"bufio"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/weftstack/weft/internal/accept"
)

// Limits of a name service.
const (
	// MaxNames bounds the names that are published at a time.
	MaxNames = 4096
	// MaxName bounds the length of a name, and of what is published under it, in
	// bytes.
	MaxName = 256
	// maxNameClients bounds the connections to ServeNames at a time whose clients
	// have not shown the token. One more closes the oldest.
	maxNameClients = 256
)

// Names is a table of published names. The zero table is empty; its methods are
// safe for concurrent use.
type Names struct {
	mu    sync.Mutex
	ports map[string]string
}

// Publish enters a name that is not in the table.
func (n *Names) Publish(name, port string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, there := n.ports[name]
	switch {
	case name == "" || len(name) > MaxName || len(port) > MaxName:
		return errors.New("name or port too long")
	case there:
		return errors.New("name is published already")
	case len(n.ports) >= MaxNames:
		return errors.New("too many names")
	case n.ports == nil:
		n.ports = make(map[string]string)
	}
	n.ports[name] = port
	return nil
}

// Unpublish removes a name, which must be that of the port unless that is empty.
func (n *Names) Unpublish(name, port string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p, ok := n.ports[name]; !ok || port != "" && p != port {
		return errors.New("name is not published")
	}
	delete(n.ports, name)
	return nil
}

// Lookup returns what is published under a name.
func (n *Names) Lookup(name string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	port, ok := n.ports[name]
	if !ok {
		return "", errors.New("no such name")
	}
	return port, nil
}

// isNames reports whether a command is about names.
func isNames(cmd string) bool {
	return cmd == "publish_name" || cmd == "unpublish_name" || cmd == "lookup_name"
}

// answer carries out one command about names.
func (n *Names) answer(m message) string {
	name, err := m.text("service")
	port, perr := m.text("port")
	if err == nil {
		err = perr
	}
	cmd := strings.TrimSuffix(m.cmd, "_name") + "_result"
	if err == nil {
		switch m.cmd {
		case "publish_name":
			err = n.Publish(name, port)
		case "unpublish_name":
			err = n.Unpublish(name, port)
		case "lookup_name":
			if port, err = n.Lookup(name); err == nil && m.args[encodedKey] != "" {
				port = valueCode.EncodeToString([]byte(port))
			}
		}
	}
	reply := "cmd=" + cmd + " " + result(err)
	if m.cmd == "lookup_name" && err == nil {
		reply += " port=" + port
	}
	return reply
}

// text returns a value that may be encoded.
func (m message) text(key string) (string, error) {
	v := m.args[key]
	if m.args[encodedKey] == "" {
		return v, nil
	}
	b, err := valueCode.DecodeString(v)
	return string(b), err
}

// nameCommand writes a command about names.
func nameCommand(cmd, name, port string, encoded bool) (string, error) {
	if name == "" || len(name) > MaxName || len(port) > MaxName {
		return "", fmt.Errorf("%w %s: name or port is empty or longer than %d bytes", ErrRefused, cmd, MaxName)
	}
	line := "cmd=" + cmd
	if encoded {
		line += " " + encodedKey + "=1"
		name, port = valueCode.EncodeToString([]byte(name)), valueCode.EncodeToString([]byte(port))
	} else if strings.ContainsAny(name+port, " \n\r") {
		return "", fmt.Errorf("%w %s: %q has spaces", ErrRefused, cmd, clip(name))
	}
	line += " service=" + name
	if port != "" {
		line += " port=" + port
	}
	return line, nil
}

// Publish makes the launcher enter a name for Lookup.
func (c *Client) Publish(ctx context.Context, name, port string) error {
	_, err := c.names(ctx, "publish_name", name, port)
	return err
}

// Unpublish undoes Publish.
func (c *Client) Unpublish(ctx context.Context, name, port string) error {
	_, err := c.names(ctx, "unpublish_name", name, port)
	return err
}

// Lookup returns what some process has published under a name.
func (c *Client) Lookup(ctx context.Context, name string) (string, error) {
	m, err := c.names(ctx, "lookup_name", name, "")
	if err != nil {
		return "", err
	}
	return m.found(c.extended)
}

func (c *Client) names(ctx context.Context, cmd, name, port string) (message, error) {
	line, err := nameCommand(cmd, name, port, c.extended)
	if err != nil {
		return message{}, err
	}
	return c.call(ctx, line, strings.TrimSuffix(cmd, "_name")+"_result")
}

// found returns the port in a reply.
func (m message) found(encoded bool) (string, error) {
	port := m.args["port"]
	if port == "" || m.args["info"] != "" && m.args["info"] != "ok" { // Hydra says info
		return "", fmt.Errorf("%w lookup: no such name", ErrRefused)
	}
	if !encoded {
		return port, nil
	}
	b, err := valueCode.DecodeString(port)
	if err != nil || len(b) > MaxName {
		return "", fmt.Errorf("%w: port %q", ErrProtocol, clip(port))
	}
	return string(b), nil
}

// ServeNames answers name clients that connect to l and know the token. It
// returns when l is closed or ctx is done.
func (n *Names) ServeNames(ctx context.Context, l net.Listener, token string) error {
	s := accept.Server{MaxUnproven: maxNameClients, ProofTimeout: helloTimeout}
	return s.Serve(ctx, l, func(conn net.Conn, proven func() bool) { n.serve(ctx, conn, token, proven) })
}

// serve answers one client, whose first line has the token.
func (n *Names) serve(ctx context.Context, conn net.Conn, token string, proven func() bool) {
	r := bufio.NewReaderSize(conn, MaxLine)
	for known := false; ; {
		m, err := readMessage(r)
		if err != nil {
			return
		}
		var reply string
		switch {
		case !known:
			if m.cmd != "initack" || subtle.ConstantTimeCompare([]byte(m.args["weft_token"]), []byte(token)) != 1 || !proven() {
				return
			}
			defer conn.Close()
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			known, reply = true, "cmd=initack rc=0"
		case isNames(m.cmd):
			reply = n.answer(m)
		default:
			return
		}
		conn.SetDeadline(time.Now().Add(helloTimeout)) // clients ask at once
		if _, err := io.WriteString(conn, reply+"\n"); err != nil {
			return
		}
	}
}

// EnvNames names a name service that several jobs share, as ADDRESS/TOKEN.
const EnvNames = "WEFT_NAMESERVER"

// NameClient talks to ServeNames: it is the value of EnvNames. Each call makes a
// connection of its own.
type NameClient string

// Publish enters a name.
func (c NameClient) Publish(ctx context.Context, name, port string) error {
	_, err := c.call(ctx, "publish_name", name, port)
	return err
}

// Unpublish removes a name.
func (c NameClient) Unpublish(ctx context.Context, name, port string) error {
	_, err := c.call(ctx, "unpublish_name", name, port)
	return err
}

// Lookup returns what is published under a name.
func (c NameClient) Lookup(ctx context.Context, name string) (string, error) {
	m, err := c.call(ctx, "lookup_name", name, "")
	if err != nil {
		return "", err
	}
	return m.found(true)
}

func (c NameClient) call(ctx context.Context, cmd, name, port string) (message, error) {
	line, err := nameCommand(cmd, name, port, true)
	if err != nil {
		return message{}, err
	}
	addr, token, ok := strings.Cut(string(c), "/")
	if !ok || strings.ContainsAny(token, " \n=") {
		return message{}, fmt.Errorf("pmi: %s=%q is not ADDRESS/TOKEN", EnvNames, clip(addr))
	}
	ctx, cancel := context.WithTimeout(ctx, 2*helloTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return message{}, fmt.Errorf("pmi: name service: %w", err)
	}
	defer conn.Close()
	p := newClient(conn, 0, 1)
	if _, err := p.call(ctx, "cmd=initack weft_token="+token, "initack"); err != nil {
		return message{}, fmt.Errorf("pmi: name service: %w", err)
	}
	return p.call(ctx, line, strings.TrimSuffix(cmd, "_name")+"_result")
}
