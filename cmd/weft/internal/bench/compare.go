package bench

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the text of the C program
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// source is the same tests for another MPI.
//
//go:embed benchc/bench.c
var source []byte

// comparedTests are the tests that compare runs if none is named.
var comparedTests = []string{"latency", "bw", "bibw", "put_latency", "get_latency", "put_bw", "get_bw",
	"barrier", "bcast", "allreduce", "allgather", "alltoall", "reduce"}

// comparedTest is a test run on both, as -json prints it.
type comparedTest struct {
	Test   string        `json:"test"`
	Column string        `json:"column"`
	Weft   string        `json:"weft"`   // transport
	Shared bool          `json:"shared"` // through memory that the ranks share
	Other  string        `json:"other"`  // name of the other MPI
	Ranks  int           `json:"ranks"`
	Rows   []comparedRun `json:"rows"`
}

type comparedRun struct {
	Size  int     `json:"size"`
	Weft  float64 `json:"weft"`
	Other float64 `json:"other"` // over TCP
	// Ratio is how many times as good weft is as the other: of rates weft's
	// by the other's, of times the other's by weft's.
	Ratio float64 `json:"ratio"`
	// If weft goes through memory, what it does over the network, and relative to the
	// other over TCP; what the other does through memory, and weft relative to that.
	Network      float64 `json:"network,omitempty"`
	NetworkRatio float64 `json:"network_ratio,omitempty"`
	Memory       float64 `json:"other_memory,omitempty"`
	MemoryRatio  float64 `json:"memory_ratio,omitempty"`
}

// otherMPI is an installed MPI.
type otherMPI struct {
	name, mpirun, program string
	args, env             []string // to run it at all
	netArgs, netEnv       []string // to use TCP only
}

// compare runs tests with weft and with another MPI.
func compare(ctx context.Context, o *options) error {
	dir, err := os.MkdirTemp("", "weft-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	other, err := findMPI(ctx, o, dir)
	if err != nil {
		return err
	}
	for _, name := range o.names {
		t := findTest(name)
		if t.blocking() == nil {
			return fmt.Errorf("%s is not implemented for another MPI", name)
		}
		c, err := compareTest(ctx, o, t, other)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if o.json {
			if err := json.NewEncoder(os.Stdout).Encode(c); err != nil {
				return err
			}
			continue
		}
		c.print(t)
	}
	return nil
}

// blocking returns t, or nil for a nonblocking collective and for what concerns
// processes.
func (t *test) blocking() *test {
	if strings.HasPrefix(t.title, "MPI Non-blocking") || t.text != nil || t.head != nil {
		return nil
	}
	return t
}

// findMPI compiles the C program and finds out how to keep to TCP.
func findMPI(ctx context.Context, o *options, dir string) (*otherMPI, error) {
	for _, tool := range []string{o.mpcc, o.mpirun} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("no other MPI to compare with: %w", err)
		}
	}
	file := filepath.Join(dir, "bench.c")
	if err := os.WriteFile(file, source, 0o666); err != nil {
		return nil, err
	}
	m := &otherMPI{mpirun: o.mpirun, program: filepath.Join(dir, "bench")}
	if out, err := exec.CommandContext(ctx, o.mpcc, "-O2", "-o", m.program, file).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", o.mpcc, err, bytes.TrimSpace(out))
	}
	out, err := exec.CommandContext(ctx, o.mpirun, "--version").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w\n%s", o.mpirun, err, bytes.TrimSpace(out))
	}
	m.name = firstLine(out)
	switch {
	case bytes.Contains(out, []byte("Open MPI")), bytes.Contains(out, []byte("OpenRTE")):
		m.args = []string{"--allow-run-as-root"}
		m.netArgs = []string{"--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
			"--mca", "btl_tcp_if_include", "lo", "--mca", "osc", "rdma,pt2pt"}
		if o.n > runtime.NumCPU() {
			m.args = append(m.args, "--oversubscribe")
		}
		m.name = strings.TrimPrefix(m.name, "mpirun (") // "mpirun (Open MPI) 5.0"
		m.name = strings.Replace(m.name, ")", "", 1)
	case bytes.Contains(out, []byte("HYDRA")):
		m.name = "MPICH"
		m.netEnv = []string{"MPIR_CVAR_NOLOCAL=1", "FI_PROVIDER=tcp", "UCX_TLS=tcp,self"}
	}
	if o.bind != "" {
		m.args = append(m.args, "-bind-to", o.bind) // Open MPI and Hydra have the same words
	}
	return m, nil
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte{'\n'})
	return string(bytes.TrimSpace(line))
}

// run runs one test, over TCP or as that MPI likes it.
func (m *otherMPI) run(ctx context.Context, o *options, t *test, tcp bool) (map[int]float64, error) {
	sizes := t.sizes(o)
	out := make(map[int]float64)
	for i := 0; i < len(sizes); {
		j := i
		for j < len(sizes) && (sizes[j] > largeSize) == (sizes[i] > largeSize) {
			j++
		}
		part, err := m.runSome(ctx, o, t, sizes[i], sizes[j-1], tcp)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, part)
		i = j
	}
	return out, nil
}

// runSome runs it with sizes, short or long, that have the same counts.
func (m *otherMPI) runSome(ctx context.Context, o *options, t *test, lo, hi int, tcp bool) (map[int]float64, error) {
	warmup, iters := t.counts(o, hi)
	args := append([]string{"-n", strconv.Itoa(o.n)}, m.args...)
	env := append(os.Environ(), m.env...)
	if tcp {
		args, env = append(args, m.netArgs...), append(env, m.netEnv...)
	}
	args = append(args, m.program, t.name, strconv.Itoa(lo), strconv.Itoa(hi), strconv.Itoa(iters), strconv.Itoa(warmup),
		strconv.Itoa(o.window))
	cmd := exec.CommandContext(ctx, m.mpirun, args...)
	cmd.Env = env
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", m.mpirun, err, bytes.TrimSpace(errs.Bytes()))
	}
	return parseOutput(out)
}

// parseOutput reads lines of a size and a value.
func parseOutput(out []byte) (map[int]float64, error) {
	values := make(map[int]float64)
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		var size int
		var v float64
		if n, err := fmt.Sscan(lines.Text(), &size, &v); n != 2 {
			return nil, fmt.Errorf("the other MPI printed %q: %w", lines.Text(), err)
		}
		values[size] = v
	}
	if len(values) == 0 {
		return nil, errors.New("the other MPI printed nothing")
	}
	return values, lines.Err()
}

// compareTest runs a test on both.
func compareTest(ctx context.Context, o *options, t *test, m *otherMPI) (*comparedTest, error) {
	ours, err := runTest(ctx, o, t)
	if err != nil {
		return nil, err
	}
	theirs, err := m.run(ctx, o, t, true)
	if err != nil {
		return nil, err
	}
	network := &result{}
	var memory map[int]float64
	if ours.Shared {
		if network, err = runTest(ctx, o, t, "WEFT_SHARED=0"); err != nil {
			return nil, err
		}
		if memory, err = m.run(ctx, o, t, false); err != nil {
			return nil, err
		}
	}
	c := &comparedTest{Test: t.name, Column: ours.Columns[0], Weft: ours.Transport, Shared: ours.Shared, Other: m.name,
		Ranks: ours.Ranks}
	for i, row := range ours.Rows {
		their, ok := theirs[row.Size]
		if !ok {
			return nil, fmt.Errorf("the other MPI has no value for %d bytes", row.Size)
		}
		r := comparedRun{Size: row.Size, Weft: row.Values[0], Other: their, Memory: memory[row.Size]}
		r.Ratio = c.ratio(r.Weft, r.Other)
		r.MemoryRatio = c.ratio(r.Weft, r.Memory)
		if i < len(network.Rows) {
			r.Network = network.Rows[i].Values[0]
			r.NetworkRatio = c.ratio(r.Network, r.Other)
		}
		c.Rows = append(c.Rows, r)
	}
	return c, nil
}

// runTest runs a test with weft.
func runTest(ctx context.Context, o *options, t *test, env ...string) (*result, error) {
	args := []string{"-json", "-i", strconv.Itoa(o.iters), "-x", strconv.Itoa(o.warmup), "-W", strconv.Itoa(o.window)}
	sizes := t.sizes(o)
	if len(sizes) == 0 {
		return nil, errors.New("no sizes to compare")
	}
	if !t.single {
		args = append(args, "-m", fmt.Sprintf("%d:%d", sizes[0], sizes[len(sizes)-1]))
	}
	cmd, err := command(ctx, o, append(args, t.name))
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, bytes.TrimSpace(errs.Bytes()))
	}
	var res result
	return &res, json.Unmarshal(out, &res)
}

// ratio is how many times as good a is as b, 0 if that cannot be told.
func (c *comparedTest) ratio(a, b float64) float64 {
	if !isRate(c.Column) {
		a, b = b, a
	}
	if a <= 0 || b <= 0 {
		return 0
	}
	return a / b
}

// isRate tells rates, of which more is better, from times.
func isRate(column string) bool { return strings.Contains(column, "MB/s") }

// comparedWidth is the width of the columns of compare.
const comparedWidth = 14

func (c *comparedTest) print(t *test) {
	fmt.Printf("# %s, %d ranks: weft %s and %s, %s\n", t.title, c.Ranks, c.Weft, c.Other, c.Column)
	heads := []string{"weft", "other, TCP", "times as good"}
	if c.Shared {
		fmt.Printf("# weft and the other through memory that the ranks share, and over the network\n")
		heads = []string{"weft, memory", "other, memory", "times as good", "other, TCP", "times as good", "weft, SCTP",
			"times as good"}
	}
	fmt.Printf("%-*s", sizeWidth, "# Size")
	for _, h := range heads {
		fmt.Printf("  %*s", comparedWidth, h)
	}
	fmt.Println()
	for _, r := range c.Rows {
		values := []float64{r.Weft, r.Other, r.Ratio}
		if c.Shared {
			values = []float64{r.Weft, r.Memory, r.MemoryRatio, r.Other, r.Ratio, r.Network, r.NetworkRatio}
		}
		fmt.Printf("%-*d", sizeWidth, r.Size)
		for _, v := range values {
			fmt.Printf("  %*.2f", comparedWidth, v)
		}
		fmt.Println()
	}
}
