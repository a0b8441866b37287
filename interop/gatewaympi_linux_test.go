package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/internal/testenv"
)

// envTCPJob has this test binary, on the first host of two sites, start their gateways with -tcp and run a job of the MPI
// library that it names; with envTCPDirect without gateways. Its arguments are the sites file, weft, the agent in
// place of ssh, and the program with its own.
const (
	envTCPJob    = "WEFT_INTEROP_TCPJOB"
	envTCPDirect = "WEFT_INTEROP_TCPDIRECT"
)

func init() {
	playRole(envTCPJob, func(library string) error {
		return tcpJob(library, os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
	})
}

// tcpGatewayStatus is what the test reads of a gateway's status.
type tcpGatewayStatus struct {
	TCP struct {
		Connected, Dialed, Failed, Forbidden uint64
		BytesSent                            uint64 `json:"bytes_sent"`
		BytesReceived                        uint64 `json:"bytes_received"`
	}
}

func tcpJob(library, file, weft, agent string, program []string) error {
	if os.Getenv(envTCPDirect) != "" {
		return runMPI(library, agent, program)
	}
	f, err := sites.Read(file)
	if err != nil {
		return err
	}
	namespaces := strings.Split(os.Getenv("WEFT_NET_GATEWAYS"), ",")
	in := func(ns string, words ...string) *exec.Cmd {
		return exec.Command("ip", append([]string{"netns", "exec", ns}, words...)...)
	}
	status := func(i int) (s tcpGatewayStatus, err error) {
		at := f.Sites[i].Gateways[0].Status.String()
		out, err := in(namespaces[i], weft, "gateway", "status", "-json", "-wait", "20s", at).Output()
		if err == nil {
			err = json.Unmarshal(out, &s)
		}
		return s, err
	}
	for i, ns := range namespaces {
		cmd := in(ns, weft, "gateway", "-sites", file, "-site", f.Sites[i].Name, "-tcp", ":5749", "-tcp-install", "-tcp-mode", "tproxy", "-tcp-source")
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}()
	}
	for i := range namespaces {
		if _, err := status(i); err != nil {
			return fmt.Errorf("gateway %d: %w", i, err)
		}
	}
	if err := runMPI(library, agent, program); err != nil {
		return err
	}
	var all [2]tcpGatewayStatus
	for i := range all {
		if all[i], err = status(i); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

// runMPI runs a program on all hosts until it has printed its result. Then it is killed: MPI_Finalize of MPICH 4.0 over UCX
// may never return, with a direct network, too.
func runMPI(library, agent string, program []string) error {
	names := strings.Split(os.Getenv("WEFT_NET_NAMES"), ",")
	var hosts []string
	for _, n := range names {
		var site, host int
		if _, err := fmt.Sscanf(n[strings.LastIndex(n, "-")+1:], "s%dh%d", &site, &host); err != nil {
			return fmt.Errorf("namespace %q: %w", n, err)
		}
		hosts = append(hosts, fmt.Sprintf("10.77.%d.%d", site, host))
	}
	ranks, list := strconv.Itoa(len(hosts)), strings.Join(hosts, ",")
	words := []string{"mpirun.openmpi", "--mca", "plm_rsh_agent", agent, "--mca", "btl", "tcp,self", "--mca", "pml", "ob1",
		"--mca", "mpi_yield_when_idle", "1", "--mca", "btl_tcp_if_include", "10.77.0.0/16", "--mca", "oob_tcp_if_include", "10.77.0.0/16",
		"--host", list, "-np", ranks}
	if library == "mpich" { // UCX looks for its devices in /sys, which ip mounts for the namespace
		words = []string{"ip", "netns", "exec", names[0], "mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", agent,
			"-iface", "weft0", "-hosts", list, "-ppn", "1", "-n", ranks}
	}
	words = append(words, program...)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "MPIR_CVAR_NOLOCAL=1",
		"UCX_TLS=tcp,self", "UCX_NET_DEVICES=weft0", "UCX_LOG_LEVEL=error")
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	defer func() {
		for _, pid := range append(descendants(cmd.Process.Pid), cmd.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	for end := time.Now().Add(tcpJobTime); ; time.Sleep(20 * time.Millisecond) {
		for line := range strings.Lines(out.String()) {
			if strings.HasSuffix(line, " seconds\n") {
				fmt.Print(line)
				return nil
			}
		}
		select {
		case err := <-done:
			return fmt.Errorf("%s has ended without a result: %w\n%s", words[0], err, out.String())
		default:
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s has no result after %v\n%s", words[0], tcpJobTime, out.String())
		}
	}
}

// tcpJobTime bounds a job on a busy machine: it takes some seconds on another one.
const tcpJobTime = time.Minute

// descendants returns the processes that a process has started, and those that they have.
func descendants(pid int) (list []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	children := make(map[int][]int)
	for _, name := range all {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		child, err := strconv.Atoi(strings.Split(name, "/")[2])
		at := strings.LastIndexByte(string(b), ')')
		fields := strings.Fields(string(b[at+1:]))
		if err != nil || at < 0 || len(fields) < 2 {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], child)
	}
	var add func(int)
	add = func(pid int) {
		for _, c := range children[pid] {
			list = append(list, c)
			add(c)
		}
	}
	add(pid)
	return list
}

// tcpAgent takes the place of ssh, for mpirun and Hydra.
const tcpAgent = `#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
TMPDIR=$TMPDIR/$host; export TMPDIR
mkdir -p "$TMPDIR"
site=${host#10.77.}; site=${site%.*}
exec ip netns exec "${WEFT_NET_NAMES%%s1h1*}s${site}h${host##*.}" sh -c "$*"
`

// TestGatewayMPI runs programs of Open MPI and MPICH, which know nothing of gateways, on the hosts of two sites whose network
// loses packets: the gateways take in their TCP connections.
func TestGatewayMPI(t *testing.T) {
	bounded(t)
	testenv.Slow(t, "jobs of two other libraries")
	testenv.Networks(t)
	for _, what := range []string{"nft", "mpirun.openmpi", "mpicc.openmpi", "mpiexec.hydra", "mpicc.mpich"} {
		if _, err := exec.LookPath(what); err != nil {
			testenv.Lacking(t, "%s not found: install Debian's nftables, openmpi-bin, libopenmpi-dev, mpich and libmpich-dev", what)
		}
	}
	dir := t.TempDir()
	agent := filepath.Join(dir, "agent")
	if err := os.WriteFile(agent, []byte(tcpAgent), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, library := range []string{"openmpi", "mpich"} {
		program := filepath.Join(dir, library)
		if said, err := command(t, "mpicc."+library, "-O2", "-o", program, "testdata/twosites.c").CombinedOutput(); err != nil {
			t.Fatalf("mpicc.%s: %v\n%s", library, err, said)
		}
		run := func(t *testing.T, words []string, flags ...string) (result, rest string) {
			args := append([]string{"net", "-sites", "2", "-hosts", "2", "-tcp", "cubic", "-daemons", "no", "-on", "0",
				"-x", envTCPJob + "=" + library, "-x", "TMPDIR=" + dir}, flags...)
			out, errs, code := weft(t, append(append(args, "--", os.Args[0], "@", tool(t, "weft"), agent, program), words...)...)
			result, rest, _ = strings.Cut(out, "\n")
			if code != 0 || !strings.HasPrefix(result, words[0]+" of 4 ranks: ") {
				t.Fatalf("%s, %s: status %d: %s%s", library, words[0], code, out, errs)
			}
			return result, rest
		}
		t.Run(library, func(t *testing.T) {
			if os.Getenv(envTCPFigures) != "" {
				tcpFigures(t, run)
				return
			}
			const count, size = 16, 128 << 10
			for _, words := range [][]string{{"ring", "10", "1000"}, {"bandwidth", strconv.Itoa(count), strconv.Itoa(size)}} {
				result, text := run(t, words, "-wan", "1gbit 9ms loss 1%")
				var s [2]tcpGatewayStatus
				if err := json.Unmarshal([]byte(text), &s); err != nil {
					t.Fatalf("%s: %v: %s", words[0], err, text)
				}
				least := uint64(1000)
				if words[0] == "bandwidth" {
					least = 2 * count * size
				}
				a, b := s[0].TCP, s[1].TCP
				if a.BytesSent < least || b.BytesReceived < least || a.Connected+b.Connected < 2 || a.Failed+b.Failed+a.Forbidden+b.Forbidden != 0 {
					t.Errorf("%s: the gateways have carried %+v and %+v", words[0], a, b)
				}
				t.Logf("%s, %d connections", result, a.Connected+b.Connected)
			}
		})
	}
}

// envTCPFigures has TestGatewayMPI measure, in some minutes, in place of the test: medians of some seeds, with and
// without gateways.
const envTCPFigures = "WEFT_INTEROP_TCPFIGURES"

// tcpFigures logs the table of docs/gateways.md.
func tcpFigures(t *testing.T, run func(t *testing.T, words []string, flags ...string) (result, rest string)) {
	const seeds = 3
	for _, wan := range []string{"1gbit 9ms", "1gbit 9ms loss 1%"} {
		for _, words := range [][]string{{"ring", "50", "1000"}, {"bandwidth", "32", "262144"}} {
			line := fmt.Sprintf("%s, %s:", wan, words[0])
			for _, way := range []struct {
				name  string
				flags []string
			}{
				{"direct", []string{"-routed", "yes", "-x", envTCPDirect + "=1"}},
				{"gateways", nil},
				{"gateways, 4 associations", []string{"-associations", "4"}},
			} {
				var took []float64
				for seed := range seeds {
					result, _ := run(t, words, append([]string{"-wan", wan, "-seed", strconv.Itoa(seed + 1)}, way.flags...)...)
					var s float64
					if _, err := fmt.Sscanf(result[strings.Index(result, ": ")+2:], "%f", &s); err != nil {
						t.Fatal(err)
					}
					took = append(took, s)
				}
				slices.Sort(took)
				line += fmt.Sprintf(" %s %.2f s;", way.name, took[seeds/2])
			}
			t.Log(line)
		}
	}
}
