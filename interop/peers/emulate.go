package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weftstack/weft/internal/bench"
)

// network is an emulated network of `weft net`.
type network struct {
	hosts             int
	rate, delay, loss string
	queue             string
	seed              int
	cc                string // congestion control of TCP
	env               []string
	on                int // the only host to run on; -1: all
}

// run runs commands on the hosts and returns what they print.
func (n *network) run(ctx context.Context, t *tools, commands ...[]string) (string, error) {
	args := []string{"net", "-hosts", fmt.Sprint(n.hosts), "-rate", n.rate, "-delay", n.delay, "-loss", n.loss, "-seed", fmt.Sprint(n.seed)}
	if n.queue != "" {
		args = append(args, "-queue", n.queue)
	}
	if n.cc != "" {
		args = append(args, "-tcp", n.cc)
	}
	if n.on >= 0 {
		args = append(args, "-on", fmt.Sprint(n.on))
	}
	for _, e := range n.env {
		args = append(args, "-x", e)
	}
	args = append(args, "--")
	for i, c := range commands {
		if i > 0 {
			args = append(args, ":")
		}
		args = append(args, c...)
	}
	cmd := command(ctx, t.weft, args...)
	// weft net takes its hosts down when it is asked to end.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", errors.Join(ctx.Err(), fmt.Errorf("weft net: %w: %.400s", err, errs.String()))
	}
	return string(out), nil
}

// lastJSON parses the last line.
func lastJSON(out string, v any) error {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), v); err != nil {
		return fmt.Errorf("%.300q: %w", out, err)
	}
	return nil
}

// congestionControls returns which of the wanted algorithms of TCP this kernel
// has.
func congestionControls(want ...string) []string {
	data, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		return nil
	}
	var have []string
	for _, cc := range want {
		for _, name := range strings.Fields(string(data)) {
			if name == cc {
				have = append(have, cc)
			}
		}
	}
	return have
}

// openMPI returns the words that start ranks on all hosts from host 0, which
// reaches the others' namespaces by an agent in place of ssh.
func openMPI(t *tools, hosts int) ([]string, error) {
	agent := filepath.Join(t.dir, "agent")
	// All hosts share this machine's files: each gets a directory of its own for
	// what Open MPI keeps there.
	script := `#!/bin/sh
host=$1; shift
TMPDIR=$TMPDIR/${host##*.}; export TMPDIR
mkdir -p "$TMPDIR"
exec ip netns exec "$(echo "$WEFT_NET_NAMES" | cut -d, -f"${host##*.}")" sh -c "$*"
`
	if err := os.WriteFile(agent, []byte(script), 0o755); err != nil {
		return nil, err
	}
	var names []string
	for h := range hosts {
		names = append(names, fmt.Sprintf("10.77.0.%d", h+1))
	}
	const subnet = "10.77.0.0/24"
	return []string{"mpirun.openmpi", "--mca", "plm_rsh_agent", agent, "--mca", "btl", "tcp,self", "--mca", "pml", "ob1",
		"--mca", "btl_tcp_if_include", subnet, "--mca", "oob_tcp_if_include", subnet, "--host", strings.Join(names, ","), "-np", fmt.Sprint(hosts)}, nil
}

// openMPIEnv lets Open MPI run as root, and keep its files among ours.
func (t *tools) openMPIEnv() []string {
	return []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "TMPDIR=" + t.dir}
}

// tally counts runs and those that others disturbed.
type tally struct{ runs, noisy int }

// run runs f and counts it.
func (c *tally) run(f func() error) error {
	others, err := watch(f)
	c.runs++
	if others > bench.Noisy {
		c.noisy++
	}
	return err
}
