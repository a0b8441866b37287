package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the text of the C program
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// benchSource is the same tests for another MPI.
//
//go:embed benchc/bench.c
var benchSource []byte

// benchCompared are the tests that compare runs if none is named.
var benchCompared = []string{"latency", "bw", "bibw", "put_latency", "get_latency", "put_bw", "get_bw",
	"barrier", "bcast", "allreduce", "allgather", "alltoall", "reduce"}

// comparedBench is a test run on both, as -json prints it.
type comparedBench struct {
	Test   string        `json:"test"`
	Column string        `json:"column"`
	Weft   string        `json:"weft"`  // transport
	Other  string        `json:"other"` // name of the other MPI
	Ranks  int           `json:"ranks"`
	Rows   []comparedRun `json:"rows"`
}

type comparedRun struct {
	Size  int     `json:"size"`
	Weft  float64 `json:"weft"`
	Other float64 `json:"other"`
	// Ratio is how many times as good weft is as the other: of rates weft's
	// by the other's, of times the other's by weft's.
	Ratio float64 `json:"ratio"`
}

// otherMPI is an installed MPI.
type otherMPI struct {
	name, mpirun, program string
	args, env             []string // to use TCP only
}

// benchCompare runs tests with weft and with another MPI.
func benchCompare(ctx context.Context, o *benchOptions) error {
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
		t := findBench(name)
		if t.blocking() == nil {
			return fmt.Errorf("%s has no form for another MPI", name)
		}
		c, err := compareBench(ctx, o, t, other)
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
func (t *benchTest) blocking() *benchTest {
	if strings.HasPrefix(t.title, "MPI Non-blocking") || t.text != nil || t.head != nil {
		return nil
	}
	return t
}

// findMPI compiles the C program and finds out how to keep to TCP.
func findMPI(ctx context.Context, o *benchOptions, dir string) (*otherMPI, error) {
	for _, tool := range []string{o.mpcc, o.mpirun} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("no other MPI to compare with: %w", err)
		}
	}
	source := filepath.Join(dir, "bench.c")
	if err := os.WriteFile(source, benchSource, 0o666); err != nil {
		return nil, err
	}
	m := &otherMPI{mpirun: o.mpirun, program: filepath.Join(dir, "bench")}
	if out, err := exec.CommandContext(ctx, o.mpcc, "-O2", "-o", m.program, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", o.mpcc, err, bytes.TrimSpace(out))
	}
	out, err := exec.CommandContext(ctx, o.mpirun, "--version").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w\n%s", o.mpirun, err, bytes.TrimSpace(out))
	}
	m.name = firstLine(out)
	switch {
	case bytes.Contains(out, []byte("Open MPI")), bytes.Contains(out, []byte("OpenRTE")):
		m.args = []string{"--allow-run-as-root", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
			"--mca", "btl_tcp_if_include", "lo", "--mca", "osc", "rdma,pt2pt"}
		if o.n > runtime.NumCPU() {
			m.args = append(m.args, "--oversubscribe")
		}
		m.name = strings.TrimPrefix(m.name, "mpirun (") // "mpirun (Open MPI) 5.0"
		m.name = strings.Replace(m.name, ")", "", 1)
	case bytes.Contains(out, []byte("HYDRA")):
		m.name = "MPICH"
		m.env = []string{"MPIR_CVAR_NOLOCAL=1", "FI_PROVIDER=tcp", "UCX_TLS=tcp,self"}
	}
	return m, nil
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte{'\n'})
	return string(bytes.TrimSpace(line))
}

// run runs one test with sizes, short or long, that have the same counts.
func (m *otherMPI) run(ctx context.Context, o *benchOptions, t *benchTest, lo, hi int) (map[int]float64, error) {
	warmup, iters := t.counts(o, hi)
	args := append([]string{"-n", strconv.Itoa(o.n)}, m.args...)
	args = append(args, m.program, t.name, strconv.Itoa(lo), strconv.Itoa(hi), strconv.Itoa(iters), strconv.Itoa(warmup), strconv.Itoa(o.window))
	cmd := exec.CommandContext(ctx, m.mpirun, args...)
	cmd.Env = append(os.Environ(), m.env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", m.mpirun, err, bytes.TrimSpace(errs.Bytes()))
	}
	return parseBench(out)
}

// parseBench reads lines of a size and a value.
func parseBench(out []byte) (map[int]float64, error) {
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

// compareBench runs a test on both.
func compareBench(ctx context.Context, o *benchOptions, t *benchTest, m *otherMPI) (*comparedBench, error) {
	args := []string{"-json", "-i", strconv.Itoa(o.iters), "-x", strconv.Itoa(o.warmup), "-W", strconv.Itoa(o.window)}
	sizes := t.sizes(o)
	if len(sizes) == 0 {
		return nil, errors.New("no sizes")
	}
	if !t.single {
		args = append(args, "-m", fmt.Sprintf("%d:%d", sizes[0], sizes[len(sizes)-1]))
	}
	cmd, err := benchCommand(ctx, o, append(args, t.name))
	if err != nil {
		return nil, err
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, bytes.TrimSpace(errs.Bytes()))
	}
	var ours benchResult
	if err := json.Unmarshal(out, &ours); err != nil {
		return nil, err
	}
	theirs := make(map[int]float64)
	for i := 0; i < len(sizes); {
		j := i
		for j < len(sizes) && (sizes[j] > benchLarge) == (sizes[i] > benchLarge) {
			j++
		}
		part, err := m.run(ctx, o, t, sizes[i], sizes[j-1])
		if err != nil {
			return nil, err
		}
		for size, v := range part {
			theirs[size] = v
		}
		i = j
	}
	c := &comparedBench{Test: t.name, Column: ours.Columns[0], Weft: ours.Transport, Other: m.name, Ranks: ours.Ranks}
	for _, row := range ours.Rows {
		their, ok := theirs[row.Size]
		if !ok {
			return nil, fmt.Errorf("the other MPI has no value for %d bytes", row.Size)
		}
		r := comparedRun{Size: row.Size, Weft: row.Values[0], Other: their}
		a, b := r.Weft, r.Other
		if !isRate(c.Column) {
			a, b = b, a
		}
		if b > 0 {
			r.Ratio = a / b
		}
		c.Rows = append(c.Rows, r)
	}
	return c, nil
}

// isRate tells rates, of which more is better, from times.
func isRate(column string) bool { return strings.Contains(column, "MB/s") }

func (c *comparedBench) print(t *benchTest) {
	fmt.Printf("# %s, %d ranks: weft %s and %s over TCP, %s\n", t.title, c.Ranks, c.Weft, c.Other, c.Column)
	fmt.Printf("%-*s%*s%*s%*s\n", benchSizeWidth, "# Size", benchWidth, "weft", benchWidth, "other", benchWidth, "times as good")
	for _, r := range c.Rows {
		fmt.Printf("%-*d%*.2f%*.2f%*.2f\n", benchSizeWidth, r.Size, benchWidth, r.Weft, benchWidth, r.Other, benchWidth, r.Ratio)
	}
}
