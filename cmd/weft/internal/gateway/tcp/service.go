package tcp

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/gateway/intercept"
	"github.com/weftstack/weft/cmd/weft/internal/gateway/socks5"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/stream"
)

const (
	// peerTimeout is after how long without an answer the connections with a gateway are reset.
	peerTimeout = 10 * time.Second
	// startTime bounds the start.
	startTime = 10 * time.Second
	// maxUsersFile is the length in bytes of the longest file of users.
	maxUsersFile = 4 << 20
)

// Options are the flags for TCP of `weft gateway`.
type Options struct {
	Listen    string // address for connections that rules lead here; empty: none
	Mode      string
	Source    bool
	Rules     bool
	Install   bool
	SOCKS     string // address for SOCKS5; empty: none
	Users     string // file
	Anybody   bool
	NoConnect bool
}

// Flags registers the flags.
func Flags(fs *flag.FlagSet) *Options {
	o := &Options{}
	fs.StringVar(&o.Listen, "tcp", "", "`address` for TCP connections of programs that rules of the packet filter lead here, such as :5749 (Linux)")
	fs.StringVar(&o.Mode, "tcp-mode", string(intercept.Redirect), "`how` rules do it: redirect or tproxy")
	fs.BoolVar(&o.Source, "tcp-source", false, "connect to destinations from the address of the original program (with -tcp-mode tproxy; root)")
	fs.BoolVar(&o.Rules, "tcp-rules", false, "print the rules for -tcp, and end")
	fs.BoolVar(&o.Install, "tcp-install", false, "install the rules for -tcp in this network namespace, and remove them at the end (root)")
	fs.StringVar(&o.SOCKS, "socks", "", "`address` of a SOCKS5 port to other sites, such as 127.0.0.1:1080")
	fs.StringVar(&o.Users, "socks-users", "", "`file` with lines \"user password\" of those who may use -socks")
	fs.BoolVar(&o.Anybody, "socks-any", false, "let -socks listen beyond the loopback without -socks-users")
	fs.BoolVar(&o.NoConnect, "tcp-refuse", false, "do not connect to hosts of this site for other sites")
	return o
}

// Check finds what the flag package cannot.
func (o *Options) Check() error {
	m := intercept.Mode(o.Mode)
	switch {
	case m != intercept.Redirect && m != intercept.TProxy:
		return fmt.Errorf("-tcp-mode %q: want redirect or tproxy", o.Mode)
	case o.Source && m != intercept.TProxy:
		return errors.New("-tcp-source: only with -tcp-mode tproxy, whose rules bring the answers back")
	case (o.Rules || o.Install || o.Source) && o.Listen == "":
		return errors.New("-tcp-rules, -tcp-install and -tcp-source: only with -tcp ADDRESS")
	case (o.Users != "" || o.Anybody) && o.SOCKS == "":
		return errors.New("-socks-users and -socks-any: only with -socks ADDRESS")
	case o.Listen != "" && !o.Rules && runtime.GOOS != "linux":
		return fmt.Errorf("-tcp: %w; -socks works everywhere", intercept.ErrUnsupported)
	}
	if o.Listen != "" {
		if _, err := o.port(); err != nil {
			return err
		}
	}
	if o.SOCKS != "" {
		return checkSOCKS(o.SOCKS, o.Users != "", o.Anybody)
	}
	return nil
}

func (o *Options) port() (uint16, error) {
	_, text, err := net.SplitHostPort(o.Listen)
	var port int
	if err == nil {
		port, err = net.LookupPort("tcp", text)
	}
	if err != nil || port == 0 {
		return 0, fmt.Errorf("-tcp %q: want [ADDRESS]:PORT, such as :5749", o.Listen)
	}
	return uint16(port), nil
}

// Config says what the gateway is part of.
type Config struct {
	// Gateway is the number of this gateway, Own its site, Others the other sites.
	Gateway uint16
	Own     Site
	Others  []Site
	// Job and Key are those of the gateways' own processes, LAN the addresses of the site's gateways for
	// processes, this one's first.
	Job uint32
	Key []byte
	LAN []sctp.Addr
	Log *slog.Logger

	// peerTimeout is shorter in tests.
	peerTimeout time.Duration
}

func (o *Options) rules(c *Config) *intercept.Rules {
	port, _ := o.port()
	name := fmt.Sprintf("weft_tcp_%d_%d", c.Own.Number, c.Gateway)
	r := &intercept.Rules{Name: name, Mode: intercept.Mode(o.Mode), Port: port}
	for _, s := range c.Others {
		r.Ranges = append(r.Ranges, s.Ranges...)
	}
	return r
}

// Text returns the rules, as -tcp-rules prints them.
func (o *Options) Text(c *Config) (string, error) { return o.rules(c).Text() }

// On reports whether there is anything to do: a port for programs of this site, or ranges of it that other
// sites may want connections to.
func (o *Options) On(c *Config) bool {
	return o.Listen != "" || o.SOCKS != "" || len(c.Own.Ranges) > 0 && !o.NoConnect
}

// Service carries TCP connections for a gateway.
type Service struct {
	proxy     *proxy
	node      *relay.Node
	transport *sctp.Transport
	listeners []net.Listener
	remove    func() error
	log       *slog.Logger
}

// Start begins to carry connections. The relay of the gateway must be running: the service is a process of the site.
func (o *Options) Start(ctx context.Context, c Config) (s *Service, err error) {
	s = &Service{log: c.Log}
	c.peerTimeout = cmp.Or(c.peerTimeout, peerTimeout)
	defer func() {
		if err != nil {
			s.Close()
			s = nil
		}
	}()
	var users socks5.Users
	if o.Users != "" {
		if users, err = readUsers(o.Users); err != nil {
			return s, err
		}
	}
	// Any address of this host: gateways of the site are reached by the routes of processes.
	local := netip.IPv4Unspecified()
	if len(c.LAN) > 0 && len(c.LAN[0].Addrs) > 0 && c.LAN[0].Addrs[0].Addr().Is6() {
		local = netip.IPv6Unspecified()
	}
	addrs := []netip.AddrPort{netip.AddrPortFrom(local, 0)}
	if s.transport, err = sctp.NewTransport(sctp.TransportConfig{LocalAddrs: addrs}); err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	s.node, err = relay.NewNode(ctx, relay.NodeConfig{
		Address: relay.Address{Site: c.Own.Number, Node: GatewayNode, Process: c.Gateway}, Job: c.Job, Key: c.Key,
		Gateways: c.LAN, Transport: s.transport, PeerTimeout: c.peerTimeout, Log: c.Log,
	})
	if err != nil {
		return s, fmt.Errorf("tcp: no gateway of the site answers: %w", err)
	}
	own := c.Own
	if o.NoConnect {
		own.Ranges = nil
	}
	allow := func(a relay.Address) bool {
		return a.Node == GatewayNode && slices.ContainsFunc(c.Others, func(s Site) bool {
			return s.Number == a.Site && slices.Contains(s.Gateways, a.Process)
		})
	}
	ep, err := stream.New(stream.Config{Node: s.node, MaxConns: 2 * MaxConns, Log: c.Log, Allow: allow})
	if err != nil {
		return s, err
	}
	s.proxy = newProxy(ep, own, c.Others, o.Source, c.Log)
	if o.Listen != "" {
		l, err := intercept.Listen(ctx, intercept.Mode(o.Mode), o.Listen)
		if err != nil {
			return s, fmt.Errorf("-tcp %s: %w", o.Listen, err)
		}
		s.serve(l, s.proxy.takeIn(intercept.Mode(o.Mode)))
	}
	if o.SOCKS != "" {
		l, err := net.Listen("tcp", o.SOCKS)
		if err != nil {
			return s, fmt.Errorf("-socks %s: %w", o.SOCKS, err)
		}
		s.serve(l, s.proxy.socks(users))
	}
	if o.Install {
		if s.remove, err = o.rules(&c).Install(); err != nil {
			return s, fmt.Errorf("-tcp-install: %w", err)
		}
	}
	return s, nil
}

func (s *Service) serve(l net.Listener, handle func(*net.TCPConn)) {
	s.listeners = append(s.listeners, l)
	s.proxy.tasks.Go(func() { s.proxy.serve(l, handle) })
}

// SOCKSAddr returns the address of the SOCKS5 port, which is the last listener.
func (s *Service) SOCKSAddr() net.Addr { return s.listeners[len(s.listeners)-1].Addr() }

// Close removes the rules, and resets all connections.
func (s *Service) Close() {
	if s.remove != nil {
		if err := s.remove(); err != nil && s.log != nil {
			s.log.Error("rules are left behind", slog.Any("error", err))
		}
	}
	if s.proxy != nil {
		s.proxy.close()
	}
	if s.node != nil {
		_ = s.node.Close()
	}
	if s.transport != nil {
		_ = s.transport.Close()
	}
}

// Stats is a snapshot of a service.
type Stats struct {
	Counters
	// Active are the connections that are carried, Bytes those of the streams: sent to and received from
	// other sites.
	Active                   int
	BytesSent, BytesReceived uint64
}

// Stats returns a snapshot.
func (s *Service) Stats() Stats {
	e := s.proxy.ep.Stats()
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	return Stats{s.proxy.counters, e.Conns, e.BytesSent, e.BytesReceived}
}

// readUsers reads a file that nobody else may read.
func readUsers(name string) (socks5.Users, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("-socks-users: %w", err)
	}
	if mode := st.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, fmt.Errorf("-socks-users: %s has mode %04o: others may read it; want 0600 (chmod 600 %[1]s)", name, mode)
	}
	if !st.Mode().IsRegular() || st.Size() > maxUsersFile {
		return nil, fmt.Errorf("-socks-users: %s is no file of at most %d bytes", name, maxUsersFile)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("-socks-users: %w", err)
	}
	u, err := socks5.ParseUsers(name, string(b))
	if err != nil {
		return nil, fmt.Errorf("-socks-users: %w", err)
	}
	return u, nil
}
