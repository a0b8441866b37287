package launch

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

// rankFiles names a scratch file of each rank that the job begins with.
func (j *job) rankFiles(ext string) []string { return rankSet{n: j.n}.files(j.scratch, ext) }

// rankSet is the ranks that the job begins with, or those of one Spawn.
type rankSet struct {
	index int // 0: those that the job begins with
	n     int
}

// file names a scratch file of a rank.
func (s rankSet) file(dir, ext string, rank int) string {
	if s.index == 0 {
		return filepath.Join(dir, fmt.Sprintf("rank-%d.%s", rank, ext))
	}
	return filepath.Join(dir, fmt.Sprintf("spawned-%d-%d.%s", s.index, rank, ext))
}

func (s rankSet) files(dir, ext string) []string {
	files := make([]string, s.n)
	for i := range files {
		files[i] = s.file(dir, ext, i)
	}
	return files
}

// rankSets returns the ranks that the job has had.
func (j *job) rankSets() []rankSet {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]rankSet{{n: j.n}}, j.started...)
}

// toolEnv is what asks a process to profile itself.
func (j *job) toolEnv(p *proc) []string {
	set := rankSet{p.g.index, p.g.n}
	var env []string
	if j.profile {
		env = append(env, "WEFT_PROFILE="+set.file(j.scratch, "profile", p.rank))
	}
	if j.trace {
		env = append(env, "WEFT_TRACE="+set.file(j.scratch, "trace", p.rank))
	}
	return env
}

// maxProcessMessage bounds the profile of one rank.
const maxReport = 64 << 20

// readProfiles reads what the ranks found. It returns how many have written nothing, and
// how many did not come to write the end of it.
func readProfiles(files []string) (p *mpi.JobProfile, missing, partial int, err error) {
	var reports []mpi.ProfileReport
	for _, name := range files {
		text, err := readBounded(name, maxReport)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
			missing++
			continue
		}
		if err != nil {
			return nil, 0, 0, err
		}
		var r mpi.ProfileReport
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, 0, 0, fmt.Errorf("profile %s: %w", name, err)
		}
		if r.Partial {
			partial++
		}
		reports = append(reports, r)
	}
	p, err = mpi.MergeProfiles(reports)
	return p, missing, partial, err
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

// printProfile prints the profile of a job, and of what it has spawned.
func (j *job) printProfile(w io.Writer, asJSON bool) error {
	var all *mpi.JobProfile
	missing, partial := 0, 0
	for _, set := range j.rankSets() {
		p, m, part, err := readProfiles(set.files(j.scratch, "profile"))
		if err != nil {
			return err
		}
		missing, partial = missing+m, partial+part
		if all == nil {
			all = p
		} else {
			all.Spawned = append(all.Spawned, p)
		}
	}
	if missing > 0 {
		fmt.Fprintf(os.Stderr, "weft run: no profile of %d ranks: they did not call mpi.Init, or exited within a second of it\n", missing)
	}
	if partial > 0 {
		fmt.Fprintf(os.Stderr, "weft run: %d ranks exited without Finalize: their profiles may lack the last second\n",
			partial)
	}
	if asJSON {
		return json.NewEncoder(w).Encode(all)
	}
	_, err := all.WriteTo(w)
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

// track is the file of a rank, and where its events are to be seen: spawned ranks
// have the numbers of others.
type track struct {
	file  string
	rank  int
	pid   int    // of the track
	label string // name of the track; empty: as it is
}

// tracks returns those of all ranks.
func (j *job) tracks() []track {
	var out []track
	for _, set := range j.rankSets() {
		for rank, file := range set.files(j.scratch, "trace") {
			t := track{file: file, rank: rank, pid: len(out)}
			if set.index > 0 {
				t.label = fmt.Sprintf("spawned rank %d:%d", set.index, rank)
			}
			out = append(out, t)
		}
	}
	return out
}

// place moves an event of the rank to the track.
func (t track) place(line []byte) []byte {
	if t.label == "" {
		return line
	}
	line = bytes.Replace(line, fmt.Appendf(nil, `"pid":%d,`, t.rank), fmt.Appendf(nil, `"pid":%d,`, t.pid), 1)
	return bytes.Replace(line, fmt.Appendf(nil, `"args":{"name":"rank %d"}`, t.rank),
		fmt.Appendf(nil, `"args":{"name":%q}`, t.label), 1)
}

// mergeTraces writes the events of all ranks as one array, rank by rank in the
// order of time. It returns how many calls there are. The end of a file may be
// missing.
func mergeTraces(w io.Writer, tracks []track) (int, error) {
	out := bufio.NewWriter(w)
	count, sep := 0, "[\n"
	for _, t := range tracks {
		meta, events, err := readTrace(t.file)
		if err != nil {
			return 0, err
		}
		lanes := assignLanes(events)
		count += len(events)
		for _, line := range meta {
			fmt.Fprintf(out, "%s%s", sep, t.place(line))
			sep = ",\n"
		}
		for i, e := range events {
			line := e.text
			if lanes[i] > 0 {
				line = bytes.Replace(line, []byte(`"tid":0`), fmt.Appendf(nil, `"tid":%d`, lanes[i]), 1)
			}
			fmt.Fprintf(out, "%s%s", sep, t.place(line))
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
