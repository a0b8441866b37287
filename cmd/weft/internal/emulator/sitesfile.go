package emulator

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/weftstack/weft/internal/sites"
)

const (
	sitesFileName = "sites"    // in the directory that has the keys, too
	jobsKeyName   = "jobs.key" // the key for jobs
	lanPort       = 5747       // of gateways, for processes of the site
	wanPort       = 5748       // of gateways, for those of other sites
	statusPort    = 9100       // of gateways, plus what is last in the address in a WAN: one for each
)

// siteName returns the name of a site, from 0, in the sites file.
func siteName(site int) string { return fmt.Sprintf("s%d", site+1) }

// gatewayName returns the name of a gateway, from 0, in the sites file.
func gatewayName(gateway int) string { return string(rune('a' + gateway)) }

// legKeyName returns the name of the file of a leg's key.
func legKeyName(l sitePair) string {
	return fmt.Sprintf("%s-%s.key", siteName(l.a), siteName(l.b))
}

// sitesText returns the sites file of the plan's network.
func (p *plan) sitesText(o *options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by weft net: %d sites of %d hosts.\n", p.sites.Sites, p.sites.Hosts)
	fmt.Fprintf(&b, "jobs key-file %s\nmode %s\n", jobsKeyName, o.mode)
	for site := range p.sites.Sites {
		fmt.Fprintf(&b, "site %s\n  hosts", siteName(site))
		for _, n := range p.nodes {
			if n.kind == kindHost && n.site == site {
				b.WriteString(" " + n.name)
			}
		}
		b.WriteByte('\n')
		for _, n := range p.nodes {
			if n.kind == kindGateway && n.site == site {
				fmt.Fprintf(&b, "  gateway %s lan %s wan", gatewayName(n.number), at(n.ifaces[0], lanPort))
				for _, f := range n.ifaces[1:] {
					b.WriteString(" " + at(f, wanPort))
				}
				b.WriteString(" status " + p.statusAddr(n.site, n.number) + "\n")
			}
		}
		if !o.overlap {
			fmt.Fprintf(&b, "  tcp %s\n", p.addrs.lanPrefix(site))
		}
	}
	for _, l := range o.legs {
		fmt.Fprintf(&b, "leg %s %s key-file %s", siteName(l.a), siteName(l.b), legKeyName(l))
		if o.wanLegs > 1 {
			fmt.Fprintf(&b, " associations %d", o.wanLegs)
		}
		if o.legCC != "" {
			b.WriteString(" congestion " + o.legCC)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// statusAddr returns where a gateway tells its state, on its own host.
func (p *plan) statusAddr(site, gateway int) string {
	return fmt.Sprintf("127.0.0.1:%d", statusPort+int(p.addrs.wanGateway(site, gateway, 0)[3]))
}

// at returns the address of an interface with a port.
func at(f planInterface, port uint16) string {
	return netip.AddrPortFrom(netip.AddrFrom4(f.addr), port).String()
}

// sitesDir returns a directory for the sites file, and a function that removes it if it was
// made here.
func sitesDir(dir string) (path string, remove func(), err error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", nil, err
		}
		dir, err = filepath.Abs(dir)
		return dir, func() {}, err
	}
	dir, err = os.MkdirTemp("", "weft-net-")
	return dir, func() { os.RemoveAll(dir) }, err
}

// writeSites writes the sites file and new keys into a directory, which must not have any.
func (o *options) writeSites(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, sitesFileName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(o.plan().sitesText(o))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	keys := []string{jobsKeyName}
	for _, l := range o.legs {
		keys = append(keys, legKeyName(l))
	}
	for _, name := range keys {
		if err := sites.WriteKey(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// hasSitesFile reports whether there is a sites file: sites without gateways have none.
func (o *options) hasSitesFile() bool { return o.sites > 0 && o.gateways > 0 }

// sitesFile returns the path of the sites file.
func (o *options) sitesFile() string { return filepath.Join(o.dir, sitesFileName) }

// withSitesFile returns the commands with the path of the sites file for arguments that are @.
func (o *options) withSitesFile(commands [][]string) [][]string {
	if !o.hasSitesFile() {
		return commands
	}
	all := make([][]string, len(commands))
	for i, c := range commands {
		all[i] = append([]string(nil), c...)
		for k := range all[i] {
			if k > 0 && all[i][k] == "@" {
				all[i][k] = o.sitesFile()
			}
		}
	}
	return all
}

// gatewayArgs returns the arguments with which this program is a gateway.
func (o *options) gatewayArgs(site, gateway int) []string {
	return []string{"gateway", "-sites", o.sitesFile(), "-site", siteName(site), "-gateway", gatewayName(gateway)}
}

// siteEnv returns what a host of a site has in its environment.
func (o *options) siteEnv(n *planNode, gateways []string) []string {
	return []string{
		fmt.Sprintf("WEFT_NET_SITE=%d", n.site+1), fmt.Sprintf("WEFT_NET_NODE=%d", n.number+1),
		"WEFT_NET_GATEWAYS=" + strings.Join(gateways, ","),
	}
}
