package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weftstack/weft/internal/sites"
)

// loopbackSites are two sites on the loopback interface of a network of their own, with a gateway each.
type loopbackSites struct{ ns, file string }

// newLoopbackSites starts the gateways.
func newLoopbackSites(t *testing.T) *loopbackSites {
	t.Helper()
	m := newMultinet(t, true) // its second namespace has loopback only
	m.ip("-n", m.peer, "link", "set", "lo", "mtu", "1500")
	dir := t.TempDir()
	lo := &loopbackSites{m.peer, filepath.Join(dir, "sites")}
	const text = `jobs key-file jobs.key
site s1
  hosts h1
  gateway a lan 127.0.0.1:5747 wan 127.0.0.1:5748 status 127.0.0.1:9101
site s2
  hosts h2
  gateway a lan 127.0.0.1:5757 wan 127.0.0.1:5758 status 127.0.0.1:9102
leg s1 s2 key-file leg.key
`
	if err := os.WriteFile(lo.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"jobs.key", "leg.key"} {
		if err := sites.WriteKey(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, site := range []string{"s1", "s2"} {
		cmd := lo.command(within(t), tool(t, "weft"), "gateway", "-sites", lo.file, "-site", site)
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1") // as weft net starts them
		var said lockedBuffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		shows(t, "gateway of "+site, &said)
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	}
	for _, status := range []string{"127.0.0.1:9101", "127.0.0.1:9102"} {
		if said, err := lo.command(within(t), tool(t, "weft"), "gateway", "status", "-wait", patience.String(), status).CombinedOutput(); err != nil {
			t.Fatalf("gateway at %s: %v: %s", status, err, said)
		}
	}
	return lo
}

// command runs a program in the network.
func (lo *loopbackSites) command(ctx context.Context, words ...string) *exec.Cmd {
	return commandIn(ctx, "ip", append([]string{"netns", "exec", lo.ns}, words...)...)
}

// flow runs both ends of a flow, "relay" or "direct".
func (lo *loopbackSites) flow(t *testing.T, way, what string) (r patternResult, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(within(t), siteJobTime)
	defer cancel()
	end := func(site int) *exec.Cmd {
		cmd := lo.command(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s", envFlow, way, lo.file, what), envFlowPeer+"=127.0.0.2:9899",
			fmt.Sprintf("WEFT_NET_SITE=%d", site), fmt.Sprintf("WEFT_NET_ADDRS=127.0.0.%d", site), "GOMAXPROCS=1")
		return cmd
	}
	second := end(2)
	second.Stderr = os.Stderr
	if err := second.Start(); err != nil {
		return r, err
	}
	defer func() { second.Process.Kill(); second.Wait() }()
	out, err := end(1).Output()
	if err != nil {
		return r, err
	}
	return r, lastResult(string(out), &r)
}
