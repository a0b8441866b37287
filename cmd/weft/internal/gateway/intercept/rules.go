// Package intercept takes in the TCP connections of unmodified programs to ranges of addresses: rules of the kernel's
// packet filter lead them to a port of this process, which learns where they wanted to go. It needs Linux, and root
// (CAP_NET_ADMIN) for the rules.
package intercept

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Mode is how connections are taken in.
type Mode string

// The modes.
const (
	// Redirect translates the destination (REDIRECT); the kernel remembers the original one (SO_ORIGINAL_DST).
	Redirect Mode = "redirect"
	// TProxy leaves packets as they are, and delivers them to a transparent socket (TPROXY). The far side can
	// then connect from the original source.
	TProxy Mode = "tproxy"
)

// ErrUnsupported is returned on systems other than Linux.
var ErrUnsupported = errors.New("connections can be taken in on Linux only")

const (
	// tproxyMark marks packets that belong to transparent sockets, and tproxyTable is the routing table by
	// which they are delivered to this host.
	tproxyMark  = 0x5746
	tproxyTable = 22342
)

// Rules are the rules for the connections that one gateway takes in.
type Rules struct {
	// Name names the table: letters, digits and underscores.
	Name string
	Mode Mode
	// Port is that of the listener.
	Port uint16
	// Ranges are the destinations: those of other sites.
	Ranges []netip.Prefix
}

// split returns the ranges of IPv4 and of IPv6.
func (r *Rules) split() (v4, v6 []netip.Prefix) {
	for _, p := range r.Ranges {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	return v4, v6
}

func (r *Rules) check() error {
	if r.Mode != Redirect && r.Mode != TProxy {
		return fmt.Errorf("mode %q, want %s or %s", r.Mode, Redirect, TProxy)
	}
	if r.Port == 0 {
		return errors.New("no port to lead connections to")
	}
	if len(r.Ranges) == 0 {
		return errors.New("no ranges of other sites: give them in lines \"tcp\" of the sites file")
	}
	return nil
}

func list(prefixes []netip.Prefix) string {
	var words []string
	for _, p := range prefixes {
		words = append(words, p.Masked().String())
	}
	return strings.Join(words, ", ")
}

// NFT returns the rules as input of nft. A former table of the name is replaced, in the same transaction.
func (r *Rules) NFT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %s\ndelete table inet %s\ntable inet %s {\n", r.Name, r.Name, r.Name)
	v4, v6 := r.split()
	chain := func(name, kind, hook, priority string, line func(family, dst string)) {
		fmt.Fprintf(&b, "\tchain %s {\n\t\ttype %s hook %s priority %s; policy accept;\n", name, kind, hook, priority)
		if len(v4) > 0 {
			line("ip", "ip daddr { "+list(v4)+" }")
		}
		if len(v6) > 0 {
			line("ip6", "ip6 daddr { "+list(v6)+" }")
		}
		b.WriteString("\t}\n")
	}
	switch r.Mode {
	case Redirect:
		rule := func(_, dst string) { fmt.Fprintf(&b, "\t\t%s meta l4proto tcp redirect to :%d\n", dst, r.Port) }
		chain("forwarded", "nat", "prerouting", "-100", rule) // dstnat
		chain("own", "nat", "output", "-100", rule)
	case TProxy:
		chain("forwarded", "filter", "prerouting", "-150", func(family, dst string) { // mangle
			fmt.Fprintf(&b, "\t\t%s meta l4proto tcp socket transparent 1 meta mark set %#x accept\n", dst, tproxyMark)
			fmt.Fprintf(&b, "\t\t%s meta l4proto tcp tproxy %s to :%d meta mark set %#x accept\n", dst, family, r.Port, tproxyMark)
		})
		chain("own", "route", "output", "-150", func(_, dst string) {
			fmt.Fprintf(&b, "\t\t%s meta l4proto tcp meta mark set %#x\n", dst, tproxyMark)
		})
	}
	b.WriteString("}\n")
	return b.String()
}

// Routes returns the commands of iproute2, without the word ip, that deliver marked packets to this host, and those
// that take them back. Only mode TProxy has any.
func (r *Rules) Routes() (add, remove []string) {
	if r.Mode != TProxy {
		return nil, nil
	}
	v4, v6 := r.split()
	for _, f := range []struct {
		flag, all string
		any       bool
	}{{"-4", "0.0.0.0/0", len(v4) > 0}, {"-6", "::/0", len(v6) > 0}} {
		if f.any {
			rule, route := fmt.Sprintf("fwmark %#x lookup %d", tproxyMark, tproxyTable), fmt.Sprintf("local %s dev lo table %d", f.all, tproxyTable)
			add = append(add, f.flag+" rule add "+rule, f.flag+" route add "+route)
			remove = append(remove, f.flag+" rule del "+rule, f.flag+" route del "+route)
		}
	}
	return add, remove
}

// IPTables returns the rules as commands of iptables, for hosts without nft. Only mode Redirect has them.
func (r *Rules) IPTables() []string {
	if r.Mode != Redirect {
		return nil
	}
	v4, v6 := r.split()
	var lines []string
	for _, f := range []struct {
		command string
		ranges  []netip.Prefix
	}{{"iptables", v4}, {"ip6tables", v6}} {
		for _, chain := range []string{"PREROUTING", "OUTPUT"} {
			if len(f.ranges) > 0 {
				lines = append(lines, fmt.Sprintf("%s -t nat -A %s -p tcp -d %s -m comment --comment %s -j REDIRECT --to-ports %d",
					f.command, chain, strings.ReplaceAll(list(f.ranges), " ", ""), r.Name, r.Port))
			}
		}
	}
	return lines
}

// Text returns what -tcp-rules prints.
func (r *Rules) Text() (string, error) {
	if err := r.check(); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# To take the rules in, as root:\nnft -f - <<'END'\n%sEND\n", r.NFT())
	add, remove := r.Routes()
	for _, c := range add {
		fmt.Fprintln(&b, "ip "+c)
	}
	fmt.Fprintf(&b, "# To remove them:\n# nft delete table inet %s\n", r.Name)
	for _, c := range remove {
		fmt.Fprintln(&b, "# ip "+c)
	}
	if lines := r.IPTables(); len(lines) > 0 {
		b.WriteString("# The same for hosts without nft; with -D in place of -A they are removed:\n")
		for _, l := range lines {
			fmt.Fprintln(&b, "# "+l)
		}
	}
	return b.String(), nil
}
