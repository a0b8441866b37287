package intercept

import (
	"net/netip"
	"strings"
	"testing"
)

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, s := range texts {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}

// The rules as they are printed: a table that replaces a former one in one transaction, with chains for connections
// that the host forwards and for those of its own programs.
func TestRules(t *testing.T) {
	r := Rules{Name: "weft_tcp_1_2", Mode: Redirect, Port: 5749, Ranges: prefixes("10.2.1.0/16", "fd02::/32", "10.3.0.0/16")}
	got, err := r.Text()
	if err != nil {
		t.Fatal(err)
	}
	const redirect = `# To take the rules in, as root:
nft -f - <<'END'
table inet weft_tcp_1_2
delete table inet weft_tcp_1_2
table inet weft_tcp_1_2 {
	chain forwarded {
		type nat hook prerouting priority -100; policy accept;
		ip daddr { 10.2.0.0/16, 10.3.0.0/16 } meta l4proto tcp redirect to :5749
		ip6 daddr { fd02::/32 } meta l4proto tcp redirect to :5749
	}
	chain own {
		type nat hook output priority -100; policy accept;
		ip daddr { 10.2.0.0/16, 10.3.0.0/16 } meta l4proto tcp redirect to :5749
		ip6 daddr { fd02::/32 } meta l4proto tcp redirect to :5749
	}
}
END
# To remove them:
# nft delete table inet weft_tcp_1_2
# The same for hosts without nft; with -D in place of -A they are removed:
# iptables -t nat -A PREROUTING -p tcp -d 10.2.0.0/16,10.3.0.0/16 -m comment --comment weft_tcp_1_2 -j REDIRECT --to-ports 5749
# iptables -t nat -A OUTPUT -p tcp -d 10.2.0.0/16,10.3.0.0/16 -m comment --comment weft_tcp_1_2 -j REDIRECT --to-ports 5749
# ip6tables -t nat -A PREROUTING -p tcp -d fd02::/32 -m comment --comment weft_tcp_1_2 -j REDIRECT --to-ports 5749
# ip6tables -t nat -A OUTPUT -p tcp -d fd02::/32 -m comment --comment weft_tcp_1_2 -j REDIRECT --to-ports 5749
`
	if got != redirect {
		t.Errorf("got\n%s\nwant\n%s", got, redirect)
	}
	r.Mode, r.Ranges = TProxy, prefixes("10.2.0.0/16")
	got, err = r.Text()
	if err != nil {
		t.Fatal(err)
	}
	const tproxy = `# To take the rules in, as root:
nft -f - <<'END'
table inet weft_tcp_1_2
delete table inet weft_tcp_1_2
table inet weft_tcp_1_2 {
	chain forwarded {
		type filter hook prerouting priority -150; policy accept;
		ip daddr { 10.2.0.0/16 } meta l4proto tcp socket transparent 1 meta mark set 0x5746 accept
		ip daddr { 10.2.0.0/16 } meta l4proto tcp tproxy ip to :5749 meta mark set 0x5746 accept
	}
	chain own {
		type route hook output priority -150; policy accept;
		ip daddr { 10.2.0.0/16 } meta l4proto tcp meta mark set 0x5746
	}
}
END
ip -4 rule add fwmark 0x5746 lookup 22342
ip -4 route add local 0.0.0.0/0 dev lo table 22342
# To remove them:
# nft delete table inet weft_tcp_1_2
# ip -4 rule del fwmark 0x5746 lookup 22342
# ip -4 route del local 0.0.0.0/0 dev lo table 22342
`
	if got != tproxy {
		t.Errorf("got\n%s\nwant\n%s", got, tproxy)
	}
	for _, bad := range []struct {
		r    Rules
		want string
	}{
		{Rules{Mode: Redirect, Port: 1}, "no ranges"},
		{Rules{Mode: Redirect, Ranges: r.Ranges}, "no port"},
		{Rules{Mode: "x", Port: 1, Ranges: r.Ranges}, `mode "x"`},
	} {
		if _, err := bad.r.Text(); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%+v: %v, want %s", bad.r, err, bad.want)
		}
		if _, err := bad.r.Install(); err == nil {
			t.Errorf("%+v was installed", bad.r)
		}
	}
}
