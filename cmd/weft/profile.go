package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/weftstack/weft/mpi"
)

// rankFiles names a scratch file of each rank.
func (j *job) rankFiles(ext string) []string {
	files := make([]string, j.n)
	for i := range files {
		files[i] = filepath.Join(j.scratch, fmt.Sprintf("rank-%d.%s", i, ext))
	}
	return files
}

// toolEnv is what asks a rank to profile itself.
func (j *job) toolEnv(rank int) []string {
	var env []string
	if j.profile {
		env = append(env, "WEFT_PROFILE="+j.rankFiles("profile")[rank])
	}
	if j.trace {
		env = append(env, "WEFT_TRACE="+j.rankFiles("trace")[rank])
	}
	return env
}

// maxReport bounds the profile of one rank.
const maxReport = 64 << 20

// readProfiles reads what the ranks found. Ranks that did not finalize have
// written nothing; their number is returned.
func readProfiles(files []string) (*mpi.JobProfile, int, error) {
	var reports []mpi.ProfileReport
	missing := 0
	for _, name := range files {
		text, err := readBounded(name, maxReport)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
			missing++
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		var r mpi.ProfileReport
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, 0, fmt.Errorf("profile %s: %w", name, err)
		}
		reports = append(reports, r)
	}
	p, err := mpi.MergeProfiles(reports)
	return p, missing, err
}

func readBounded(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s is longer than %d bytes", name, limit)
	}
	return text, err
}

// printProfile prints the profile of a job.
func printProfile(w io.Writer, files []string, asJSON bool) error {
	p, missing, err := readProfiles(files)
	if err != nil {
		return err
	}
	if missing > 0 {
		fmt.Fprintf(os.Stderr, "weft run: %d ranks have left no profile: they did not call mpi.Init and Finalize\n", missing)
	}
	if asJSON {
		return json.NewEncoder(w).Encode(p)
	}
	_, err = p.WriteTo(w)
	return err
}

// traceEvent is an event in the file of a rank.
type traceEvent struct {
	text    []byte
	ts, dur float64
}

// Limits of traces.
const (
	maxTraceLine = 64 << 10
	maxLanes     = 1 << 12
)

// mergeTraces writes the events of all ranks as one array, rank by rank in the
// order of time. It returns how many calls there are. The end of a file may be
// missing.
func mergeTraces(w io.Writer, files []string) (int, error) {
	out := bufio.NewWriter(w)
	count, sep := 0, "[\n"
	for _, name := range files {
		meta, events, err := readTrace(name)
		if err != nil {
			return 0, err
		}
		lanes := assignLanes(events)
		count += len(events)
		for _, line := range meta {
			fmt.Fprintf(out, "%s%s", sep, line)
			sep = ",\n"
		}
		for i, e := range events {
			line := e.text
			if lanes[i] > 0 {
				line = bytes.Replace(line, []byte(`"tid":0`), fmt.Appendf(nil, `"tid":%d`, lanes[i]), 1)
			}
			fmt.Fprintf(out, "%s%s", sep, line)
			sep = ",\n"
		}
	}
	if sep == "[\n" {
		out.WriteString(sep)
	}
	out.WriteString("\n]\n")
	return count, out.Flush()
}

// readTrace returns the lines of one rank's file: those about the rank, and
// its calls by the time they began.
func readTrace(name string) (meta [][]byte, events []traceEvent, err error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxTraceLine)
	for lines.Scan() {
		text := bytes.TrimSuffix(bytes.TrimSpace(lines.Bytes()), []byte{','})
		var e struct {
			Ph, Name string
			Ts, Dur  float64
		}
		if len(text) < 2 || text[0] != '{' || json.Unmarshal(text, &e) != nil {
			continue // brackets, and an end that was cut off
		}
		text = bytes.Clone(text)
		switch {
		case e.Ph == "X":
			events = append(events, traceEvent{text, e.Ts, e.Dur})
		case e.Name != "trace_end":
			meta = append(meta, text)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, fmt.Errorf("trace %s: %w", name, err)
	}
	slices.SortStableFunc(events, func(a, b traceEvent) int {
		return cmp.Or(cmp.Compare(a.ts, b.ts), cmp.Compare(b.dur, a.dur))
	})
	return meta, events, nil
}

// assignLanes gives calls that overlap different lines: on one line a call
// may only lie within another.
func assignLanes(events []traceEvent) []int {
	lanes := make([]int, len(events))
	var open [][]float64 // by lane, when the calls around end
	for i, e := range events {
		for lane := 0; ; lane++ {
			if lane == len(open) {
				open = append(open, nil)
			}
			ends := open[lane]
			for len(ends) > 0 && ends[len(ends)-1] <= e.ts {
				ends = ends[:len(ends)-1]
			}
			open[lane] = ends
			if len(ends) == 0 || ends[len(ends)-1] >= e.ts+e.dur || lane == maxLanes {
				open[lane], lanes[i] = append(ends, e.ts+e.dur), lane
				break
			}
		}
	}
	return lanes
}
