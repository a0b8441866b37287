package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/weftstack/weft/internal/units"
)

// summary is the result as -json prints it.
type summary struct {
	Ranks    int         `json:"ranks"`
	Tasks    int         `json:"tasks"`
	Bytes    int64       `json:"bytes"`
	Seconds  float64     `json:"seconds"`
	Verified bool        `json:"verified"`
	SHA256   string      `json:"sha256"`
	TaskSize int64       `json:"task_size"`
	Tags     int         `json:"tags"`
	Fanout   int         `json:"fanout"`
	MBPerS   float64     `json:"mb_per_s"`
	Hist     [256]uint64 `json:"histogram"`
}

// report prints the result, and writes the table where one is asked for.
func report(w io.Writer, o *options, r *result) error {
	if o.table != "" {
		if err := writeTable(w, o, r); err != nil {
			return err
		}
	}
	s := summary{
		Ranks: r.ranks, Tasks: r.tasks, Bytes: r.bytes, Seconds: r.seconds, Verified: r.verified,
		SHA256: hex.EncodeToString(r.sha[:]), TaskSize: int64(o.task), Tags: o.tags, Fanout: o.fanout,
		MBPerS: float64(r.bytes) / 1e6 / max(r.seconds, 1e-9), Hist: r.hist,
	}
	if o.json {
		return json.NewEncoder(w).Encode(&s)
	}
	out := bufio.NewWriter(w)
	input := o.input
	if input == "" {
		input = fmt.Sprintf("synthetic, seed %d", o.seed)
	}
	fmt.Fprintf(out, "input:    %s\n", input)
	fmt.Fprintf(out, "ranks:    %d\n", s.Ranks)
	fmt.Fprintf(out, "tasks:    %d of %v, %d tags, fanout %d\n", s.Tasks, o.task, o.tags, o.fanout)
	fmt.Fprintf(out, "bytes:    %d (%v)\n", s.Bytes, units.Bytes(s.Bytes))
	fmt.Fprintf(out, "seconds:  %.3f (%.1f MB/s)\n", s.Seconds, s.MBPerS)
	fmt.Fprintf(out, "sha256:   %s\n", s.SHA256)
	digestTable(out, o, r, brief)
	histogram(out, r, brief)
	fmt.Fprintf(out, "verified: %t\n", s.Verified)
	return out.Flush()
}

// brief is how many rows the summary shows of a table; -table writes all.
const brief = 8

// writeTable writes the whole tables to the file that -table names.
func writeTable(stdout io.Writer, o *options, r *result) error {
	to := stdout
	if o.table != "-" {
		f, err := os.Create(o.table)
		if err != nil {
			return err
		}
		defer f.Close()
		to = f
	}
	out := bufio.NewWriter(to)
	digestTable(out, o, r, r.tasks)
	histogram(out, r, len(r.hist))
	return out.Flush()
}

// digestTable prints the first rows of the table of digests.
func digestTable(w io.Writer, o *options, r *result, rows int) {
	fmt.Fprintf(w, "%8s %12s  %s\n", "task", "offset", "sha256")
	for i, d := range r.digests {
		if i == rows {
			fmt.Fprintf(w, "%8s %d more; -table writes all\n", "…", r.tasks-rows)
			return
		}
		fmt.Fprintf(w, "%8d %12d  %x\n", i, int64(i)*int64(o.task), d)
	}
}

// histogram prints the first rows of the whole input's byte histogram, eight
// values a row, where any of them occurs.
func histogram(w io.Writer, r *result, rows int) {
	fmt.Fprintf(w, "%8s  %s\n", "byte", "occurrences of it and of the seven after it")
	const perRow = 8
	shown := 0
	for first := 0; first < len(r.hist); first += perRow {
		row := r.hist[first : first+perRow]
		if rowSum(row) == 0 {
			continue
		}
		if shown == rows {
			fmt.Fprintf(w, "%8s more; -table writes all\n", "…")
			return
		}
		shown++
		fmt.Fprintf(w, "    0x%02x ", first)
		for _, n := range row {
			fmt.Fprintf(w, " %9d", n)
		}
		fmt.Fprintln(w)
	}
}

func rowSum(row []uint64) (sum uint64) {
	for _, n := range row {
		sum += n
	}
	return sum
}
