package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
)

// A siteJob is a job over emulated sites.
type siteJob struct {
	sites, hosts int // hosts of each site
	gateways     int // of each site; 0: a direct route and no gateways
	wan          string
	mode         string // of the sites file; empty: piecewise
	legs         string // empty: all
	cross        string // empty: none
	tcp          string // congestion control of the hosts' TCP; empty: the kernel's default
	on           int    // the host that runs the command; negative: all
	env          []string
	flags        []string
	seed         int
	after        string // what a shell does after mpirun
}

// siteLAN is the link of a host.
const siteLAN = "1gbit 25us"

// words returns the command line of weft net, up to the command.
func (j *siteJob) words() []string {
	words := []string{"net", "-sites", fmt.Sprint(j.sites), "-hosts", fmt.Sprint(j.hosts), "-lan", siteLAN, "-wan", j.wan, "-seed", fmt.Sprint(j.seed + 1)}
	if j.gateways > 0 {
		words = append(words, "-gateways", fmt.Sprint(j.gateways))
	} else {
		words = append(words, "-gateways", "0", "-routed", "yes")
	}
	for _, f := range []struct{ name, value string }{{"mode", j.mode}, {"legs", j.legs}, {"cross", j.cross}, {"tcp", j.tcp}} {
		if f.value != "" {
			words = append(words, "-"+f.name, f.value)
		}
	}
	if j.on >= 0 {
		words = append(words, "-on", fmt.Sprint(j.on))
	}
	for _, e := range j.env {
		words = append(words, "-x", e)
	}
	return append(words, j.flags...)
}

// run runs a command on the hosts and returns what it prints.
func (j *siteJob) run(t testing.TB, limit time.Duration, command ...string) (string, error) {
	t.Helper()
	p, err := j.start(t, limit, command...)
	if err != nil {
		return "", err
	}
	return p.wait()
}

// A siteProcess is a weft net that runs.
type siteProcess struct {
	cmd       *exec.Cmd
	cancel    context.CancelFunc
	out, errs bytes.Buffer
	socket    string

	mu   sync.Mutex
	conn net.Conn
	in   *bufio.Scanner
}

// start starts a command on the hosts.
func (j *siteJob) start(t testing.TB, limit time.Duration, command ...string) (*siteProcess, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(within(t), limit)
	p := &siteProcess{cancel: cancel, socket: filepath.Join(t.TempDir(), "ctl")}
	words := append(j.words(), "-control", p.socket, "--")
	p.cmd = commandIn(ctx, tool(t, "weft"), append(words, command...)...)
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(os.Interrupt) } // it takes its namespaces down
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errs
	if err := p.cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	return p, nil
}

// wait waits for the end.
func (p *siteProcess) wait() (string, error) {
	err := p.cmd.Wait()
	p.cancel()
	if p.conn != nil {
		p.conn.Close()
	}
	if err != nil {
		err = fmt.Errorf("%w: %s%s", err, p.out.String(), p.errs.String())
	}
	return p.out.String(), err
}

// control has the emulator do something; it waits for the emulator to be there.
func (p *siteProcess) control(line string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for deadline := time.Now().Add(patience); p.conn == nil; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("unix", p.socket)
		if err == nil {
			p.conn, p.in = conn, bufio.NewScanner(conn)
			p.in.Buffer(nil, 1<<20)
		} else if time.Now().After(deadline) {
			return "", err
		}
	}
	p.conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintln(p.conn, line)
	if !p.in.Scan() {
		return "", fmt.Errorf("%q is not answered: %v", line, p.in.Err())
	}
	if strings.HasPrefix(p.in.Text(), "error") {
		return "", fmt.Errorf("%q: %s", line, p.in.Text())
	}
	return p.in.Text(), nil
}

// lastResult decodes the last line of an output that has seconds.
func lastResult(out string, to any) error {
	for _, line := range slices.Backward(strings.Split(strings.TrimSpace(out), "\n")) {
		if !strings.Contains(strings.ToLower(line), `"seconds":`) {
			continue
		}
		if err := json.Unmarshal([]byte(line), to); err != nil {
			return fmt.Errorf("%w: %.300q", err, out)
		}
		return nil
	}
	return fmt.Errorf("no result: %.300q", out)
}

// openMPIPatterns compiles the patterns for Open MPI.
func openMPIPatterns(t testing.TB) string {
	t.Helper()
	path := filepath.Join(tools.dir, "patterns-openmpi")
	tools.mu.Lock()
	defer tools.mu.Unlock()
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cc, err := exec.LookPath("mpicc.openmpi")
	if err != nil {
		testenv.Lacking(t, "mpicc.openmpi not found: install Debian's libopenmpi-dev and openmpi-bin")
	}
	if said, err := command(t, cc, "-O2", "-Wall", "-Werror", "-o", path, "testdata/sites/patterns.c").CombinedOutput(); err != nil {
		t.Fatalf("mpicc.openmpi: %v\n%s", err, said)
	}
	return path
}

// openMPIAgent takes the place of ssh: it runs a command in the namespace of the host whose
// address it gets. All hosts share this machine's files, so each gets a directory of its own.
const openMPIAgent = `#!/bin/sh
host=$1; shift
TMPDIR=$TMPDIR/$host; export TMPDIR
mkdir -p "$TMPDIR"
site=${host#10.77.}; site=${site%.*}
exec ip netns exec "${WEFT_NET_NAMES%%s1h1*}s${site}h${host##*.}" sh -c "$*"
`

// openMPI runs a pattern with Open MPI over TCP, on hosts with a direct route.
func (j *siteJob) openMPI(t testing.TB, limit time.Duration, words string) (r patternResult, err error) {
	t.Helper()
	out, err := j.openMPIOut(t, limit, words)
	if err != nil {
		return r, err
	}
	return r, lastResult(out, &r)
}

// openMPIOut is openMPI and returns all that is printed.
func (j *siteJob) openMPIOut(t testing.TB, limit time.Duration, words string) (out string, err error) {
	t.Helper()
	dir := t.TempDir()
	agent := filepath.Join(dir, "agent")
	if err := os.WriteFile(agent, []byte(openMPIAgent), 0o755); err != nil {
		return "", err
	}
	if j.gateways > 0 {
		return "", errors.New("Open MPI needs a direct route")
	}
	with := *j
	with.on = 0
	with.env = append([]string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "TMPDIR=" + dir}, j.env...)
	var hosts []string
	for s := range j.sites {
		for h := range j.hosts {
			hosts = append(hosts, fmt.Sprintf("10.77.%d.%d", s+1, h+1))
		}
	}
	const nets = "10.77.0.0/16"
	run := []string{"mpirun.openmpi", "--mca", "plm_rsh_agent", agent, "--mca", "btl", "tcp,self", "--mca", "pml", "ob1", "--mca", "mpi_yield_when_idle", "1",
		"--mca", "btl_tcp_if_include", nets, "--mca", "oob_tcp_if_include", nets, "--host", strings.Join(hosts, ","), "-np", fmt.Sprint(len(hosts)), openMPIPatterns(t)}
	command := append(run, strings.Fields(words)...)
	if j.after != "" {
		command = append([]string{"/bin/sh", "-c", `"$@" || exit; ` + j.after, "sh"}, command...)
	}
	return with.run(t, limit, command...)
}
