package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weftstack/weft/internal/bench"
	"golang.org/x/sys/unix"
)

// load is what a measurement does.
type load struct {
	trip bool // round trips; else one way
	size int
}

func (l load) word() string {
	if l.trip {
		return "trip"
	}
	return "bulk"
}

// outcome is what one measurement found.
type outcome struct {
	gbps, mmsgs float64 // bits and millions of messages per second, one way
	p50, p99    float64 // µs, of a round trip
	cpu         float64 // seconds per GB, both ends
}

// contender is a stack to measure.
type contender struct {
	name, note string
	mpi        bool
	run        func(ctx context.Context, s *settings, t *tools, l load) (outcome, error)
}

// errMissing wraps why a contender cannot run here.
var errMissing = errors.New("left out")

func contenders() []contender {
	return []contender{
		{"udp", "raw datagrams of 1,500 bytes with GSO and GRO: no protocol", false, weftPerf("udp")},
		{"tcp", "Go, one connection", false, weftPerf("tcp")},
		{"weft-sctp", "`weft perf sctp`", false, weftPerf("sctp")},
		{"quic-go", "with TLS, as QUIC always is; a stream of bytes", false, goPair("quic")},
		{"pion-sctp", "over UDP, 4 MiB buffers", false, goPair("pion")},
		{"usrsctp", "over UDP encapsulation, 4 MiB buffers", false, usrsctpPair},
		{"weft-mpi", "`weft perf mpi`, spins 5 ms before it parks", true, weftPerf("mpi")},
		{"openmpi", "BTL tcp, spins", true, mpiPair("openmpi")},
		{"mpich", "UCX over TCP, spins", true, mpiPair("mpich")},
	}
}

// perfJSON is the part of what `weft perf -json` prints that is used here.
type perfJSON struct {
	Gbps     float64 `json:"gbps"`
	MsgsPerS float64 `json:"msgs_per_s"`
	CPU      float64 `json:"cpu_s_per_gb"`
	Latency  *struct {
		P50 float64 `json:"p50"`
		P99 float64 `json:"p99"`
	} `json:"latency_us"`
}

// weftPerf measures a mode of `weft perf`.
func weftPerf(mode string) func(context.Context, *settings, *tools, load) (outcome, error) {
	return func(ctx context.Context, s *settings, t *tools, l load) (outcome, error) {
		args := []string{"perf", "-json", "-time", s.time.String(), "-size", strconv.Itoa(l.size), "-mtu", "1500"}
		if l.trip {
			args = append(args, "-latency")
		}
		cmd := command(ctx, t.weft, append(args, mode)...)
		var r perfJSON
		if err := runJSON(cmd, &r); err != nil {
			return outcome{}, err
		}
		o := outcome{gbps: r.Gbps, mmsgs: r.MsgsPerS / 1e6, cpu: r.CPU}
		if r.Latency != nil {
			o.p50, o.p99 = r.Latency.P50, r.Latency.P99
		}
		return o, nil
	}
}

// runJSON runs a command and parses the last line that it prints.
func runJSON(cmd *exec.Cmd, v any) error {
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w: %.300s", cmd.Args[0], err, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), v); err != nil {
		return fmt.Errorf("%s printed %.300q: %w", cmd.Args[0], out, err)
	}
	return nil
}

// goPair measures a Go stack of this program between two processes of it.
func goPair(name string) func(context.Context, *settings, *tools, load) (outcome, error) {
	return func(ctx context.Context, s *settings, t *tools, l load) (outcome, error) {
		start := func(role ...string) (*process, string, error) {
			cmd := command(ctx, t.self)
			cmd.Env = append(os.Environ(), envRole+"="+strings.Join(role, " "))
			return startProcess(cmd)
		}
		size := strconv.Itoa(l.size)
		server, addr, err := start("server", name, l.word(), size)
		if err != nil {
			return outcome{}, err
		}
		defer server.end()
		client, _, err := start("client", name, l.word(), size, addr)
		if err != nil {
			return outcome{}, err
		}
		defer client.end()
		return measurePair(ctx, s, l, server, client)
	}
}

// usrsctpPair measures usrsctp between two processes of csrc/usrsctp.c.
func usrsctpPair(ctx context.Context, s *settings, t *tools, l load) (outcome, error) {
	path, err := t.compile(ctx, "usrsctp", "usrsctp", "gcc", "-lusrsctp", "-lpthread")
	if err != nil {
		return outcome{}, fmt.Errorf("%w: %w", errMissing, err)
	}
	a, b, err := freePorts()
	if err != nil {
		return outcome{}, err
	}
	size := strconv.Itoa(l.size)
	server, _, err := startProcess(command(ctx, path, "server", l.word(), size, a, b))
	if err != nil {
		return outcome{}, err
	}
	defer server.end()
	client, _, err := startProcess(command(ctx, path, "client", l.word(), size, b, a))
	if err != nil {
		return outcome{}, err
	}
	defer client.end()
	return measurePair(ctx, s, l, server, client)
}

// freePorts returns two UDP ports that are free just now.
func freePorts() (string, string, error) {
	var ports []string
	for range 2 {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return "", "", err
		}
		defer c.Close()
		ports = append(ports, strconv.Itoa(c.LocalAddr().(*net.UDPAddr).Port))
	}
	return ports[0], ports[1], nil
}

// mpiPair measures an MPI library between two ranks of csrc/mpi.c.
func mpiPair(library string) func(context.Context, *settings, *tools, load) (outcome, error) {
	return func(ctx context.Context, s *settings, t *tools, l load) (outcome, error) {
		path, err := t.compile(ctx, "mpi-"+library, "mpi", "mpicc."+library)
		if err != nil {
			return outcome{}, fmt.Errorf("%w: %w", errMissing, err)
		}
		args := []string{"-np", "2", path, l.word(), strconv.Itoa(l.size), fmt.Sprint(s.time.Seconds())}
		if library == "openmpi" {
			args = append([]string{"--oversubscribe", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo", "--mca", "pml", "ob1"}, args...)
		}
		cmd := command(ctx, "mpirun."+library, args...)
		cmd.Env = append(os.Environ(), mpiEnv...)
		var r mpiJSON
		if err := runJSON(cmd, &r); err != nil {
			return outcome{}, err
		}
		o := outcome{p50: r.P50, p99: r.P99, gbps: float64(r.Bytes) * 8 / r.Seconds / 1e9, mmsgs: float64(r.Msgs) / r.Seconds / 1e6}
		if r.Bytes > 0 {
			o.cpu = r.CPU / (float64(r.Bytes) / 1e9)
		}
		return o, nil
	}
}

// mpiEnv lets Open MPI run as root, and keeps MPICH from sharing memory.
var mpiEnv = []string{
	"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
	"MPIR_CVAR_NOLOCAL=1", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo", "UCX_LOG_LEVEL=error",
}

// mpiJSON is what csrc/mpi.c prints.
type mpiJSON struct {
	Seconds, CPU  float64
	Msgs, Bytes   uint64
	P50, P99, Max float64
	Trips         uint64
}

// command returns a command that is killed with all that it started when ctx is
// done.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

// warmup is how long a pair runs before it is measured.
const warmup = 300 * time.Millisecond

// measurePair has two ends that are under load counted.
func measurePair(ctx context.Context, s *settings, l load, server, client *process) (outcome, error) {
	time.Sleep(warmup)
	read := func() (sc, cc counts, err error) {
		if sc, err = server.ask(); err == nil {
			cc, err = client.ask()
		}
		return sc, cc, err
	}
	s0, c0, err := read()
	if err != nil {
		return outcome{}, err
	}
	start := time.Now()
	var o outcome
	// On a busy machine nothing at all may happen in a short time: then longer.
	for {
		select {
		case <-time.After(s.time):
		case <-ctx.Done():
			return o, fmt.Errorf("nothing arrived in %v: %w", time.Since(start), ctx.Err())
		}
		s1, c1, err := read()
		if err != nil {
			return o, err
		}
		took, gb := time.Since(start).Seconds(), float64(s1.Bytes-s0.Bytes)/1e9
		if gb > 0 && (!l.trip || c1.Trips > 0) {
			return outcome{
				p50: c1.P50, p99: c1.P99, gbps: gb * 8 / took, mmsgs: gb * 1e3 / float64(l.size) / took,
				cpu: (s1.CPU - s0.CPU + c1.CPU - c0.CPU) / gb,
			}, nil
		}
	}
}

// process is one end of a measurement.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startProcess starts one, waits until it is ready, and returns what it said
// then.
func startProcess(cmd *exec.Cmd) (*process, string, error) {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	p := &process{cmd, in, bufio.NewReader(out)}
	line, err := p.out.ReadString('\n')
	said, ok := strings.CutPrefix(strings.TrimSpace(line), "ready")
	if err != nil || !ok {
		p.end()
		return nil, "", fmt.Errorf("%s did not start: %q", cmd.Path, line)
	}
	return p, strings.TrimSpace(said), nil
}

func (p *process) ask() (counts, error) {
	var c counts
	if _, err := io.WriteString(p.in, "counts\n"); err != nil {
		return c, err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return c, fmt.Errorf("%s ended: %w", p.cmd.Path, err)
	}
	return c, json.Unmarshal(line, &c)
}

// end closes the end's input, upon which it ends.
func (p *process) end() {
	p.in.Close()
	timer := time.AfterFunc(2*time.Second, func() { p.cmd.Cancel() })
	p.cmd.Wait()
	timer.Stop()
}

// watch runs f and tells how many processors others used meanwhile. f has no process
// running when it returns.
func watch(f func() error) (others float64, err error) {
	// Daemons that f leaves to others, as Open MPI's on each host, are left to this
	// process, so that what they used is its own.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, os.NewSyscallError("prctl", err)
	}
	busy, own, start := bench.ReadSystemCPU(), bench.CPUSeconds()+bench.ChildrenCPUSeconds(), time.Now()
	err = f()
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return busy.Others(bench.CPUSeconds()+bench.ChildrenCPUSeconds()-own, time.Since(start)), err
}
