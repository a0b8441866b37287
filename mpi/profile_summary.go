package mpi

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A CallSummary sums up the calls of one name.
type CallSummary struct {
	Name   string        `json:"name"`
	Count  int64         `json:"count"`
	Bytes  int64         `json:"bytes"`
	Errors int64         `json:"errors"` // calls that returned one
	Time   time.Duration `json:"time_ns"`
	Max    time.Duration `json:"max_ns"`
}

// add sums up s and t, which have the same name.
func (s *CallSummary) add(t CallSummary) {
	s.Count += t.Count
	s.Bytes += t.Bytes
	s.Errors += t.Errors
	s.Time += t.Time
	s.Max = max(s.Max, t.Max)
}

// A Profile is a Profiler that sums up calls by name (MPI-4.1, Section 15.2).
// The zero value is ready to use.
type Profile struct {
	mu    sync.Mutex
	calls map[string]*CallSummary
}

// Record counts a call.
func (p *Profile) Record(r CallRecord) {
	one := CallSummary{Name: r.Name, Count: 1, Bytes: int64(r.Bytes), Time: r.Duration, Max: r.Duration}
	if r.Err != nil {
		one.Errors = 1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.calls[r.Name]
	if s == nil {
		if p.calls == nil {
			p.calls = make(map[string]*CallSummary)
		}
		s = &CallSummary{Name: r.Name}
		p.calls[r.Name] = s
	}
	s.add(one)
}

// Calls returns the sums, those that took longest first.
func (p *Profile) Calls() []CallSummary {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]CallSummary, 0, len(p.calls))
	for _, s := range p.calls {
		out = append(out, *s)
	}
	sortCalls(out)
	return out
}

func sortCalls(s []CallSummary) {
	slices.SortFunc(s, func(a, b CallSummary) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Name, b.Name))
	})
}

// A ProfileReport is what a rank writes to the file that WEFT_PROFILE names, as
// JSON, as it goes, and for the last time when it finalizes.
type ProfileReport struct {
	Rank  int           `json:"rank"`
	Size  int           `json:"size"` // ranks of the job
	Time  time.Duration `json:"time_ns"`
	Calls []CallSummary `json:"calls"`
	Stats Stats         `json:"stats"`
	// Partial is true until the rank finalizes.
	Partial bool `json:"partial,omitempty"`
}

// A JobProfile is the profile of all ranks of a job.
type JobProfile struct {
	Ranks int           `json:"ranks"`
	Time  time.Duration `json:"time_ns"`  // from Init to Finalize, the sum over the ranks
	InMPI time.Duration `json:"calls_ns"` // of which in calls; more than Time if goroutines call at the same time
	Calls []CallSummary `json:"calls"`
	// Matrix[i][j] is what rank i sent to rank j: messages and RDMA Writes and
	// atomics, and what rank j read from i by RDMA.
	Matrix [][]Traffic `json:"matrix"`
	// Others[i] is what rank i sent to processes of other jobs, also those that
	// it has spawned.
	Others []Traffic `json:"others"`
	// Spawned are the profiles of what the job has spawned, each Spawn one of its
	// own, in turn.
	Spawned []*JobProfile `json:"spawned,omitempty"`
}

// MergeProfiles sums up the reports of the ranks of a job. It returns ErrOption
// for reports that are not of one job. Ranks without a report count as idle.
func MergeProfiles(reports []ProfileReport) (*JobProfile, error) {
	p := &JobProfile{Ranks: len(reports)}
	for _, r := range reports {
		p.Ranks = max(p.Ranks, r.Size)
	}
	if p.Ranks > MaxRanks {
		return nil, fmt.Errorf("%w: profile of %d ranks", ErrOption, p.Ranks)
	}
	p.Matrix, p.Others = make([][]Traffic, p.Ranks), make([]Traffic, p.Ranks)
	for i := range p.Matrix {
		p.Matrix[i] = make([]Traffic, p.Ranks)
	}
	sums := make(map[string]*CallSummary)
	for _, r := range reports {
		if r.Rank < 0 || r.Rank >= p.Ranks {
			return nil, fmt.Errorf("%w: profile of rank %d of %d", ErrOption, r.Rank, p.Ranks)
		}
		p.Time += r.Time
		for _, c := range r.Calls {
			p.InMPI += c.Time
			if sums[c.Name] == nil {
				sums[c.Name] = &CallSummary{Name: c.Name}
			}
			sums[c.Name].add(c)
		}
		p.Others[r.Rank] = p.Others[r.Rank].add(r.Stats.Others.Sent())
		for _, q := range r.Stats.Peers {
			if q.Rank < 0 || q.Rank >= p.Ranks {
				return nil, fmt.Errorf("%w: traffic to rank %d of %d", ErrOption, q.Rank, p.Ranks)
			}
			p.Matrix[r.Rank][q.Rank] = p.Matrix[r.Rank][q.Rank].add(q.Sent())
			p.Matrix[q.Rank][r.Rank] = p.Matrix[q.Rank][r.Rank].add(q.Reads)
		}
	}
	for _, s := range sums {
		p.Calls = append(p.Calls, *s)
	}
	sortCalls(p.Calls)
	return p, nil
}

// maxMatrix is the number of ranks up to which WriteTo prints the matrix.
const maxMatrix = 32

// WriteTo prints the profile as tables.
func (p *JobProfile) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	share := func(t time.Duration) float64 { return 100 * float64(t) / float64(max(p.Time, 1)) }
	fmt.Fprintf(&b, "%d ranks, %v each on average, %.1f%% in calls\n\n", p.Ranks,
		(p.Time / time.Duration(max(p.Ranks, 1))).Round(time.Microsecond), share(p.InMPI))
	fmt.Fprintf(&b, "%-22s %10s %14s %12s %12s %12s %7s %7s\n", "call", "count", "bytes", "time_ms", "mean_us", "max_us", "time_%", "errors")
	for _, c := range p.Calls {
		fmt.Fprintf(&b, "%-22s %10d %14d %12.3f %12.2f %12.2f %7.2f %7d\n", c.Name, c.Count, c.Bytes, ms(c.Time),
			us(c.Time)/float64(max(c.Count, 1)), us(c.Max), share(c.Time), c.Errors)
	}
	if p.Ranks > maxMatrix {
		fmt.Fprintf(&b, "\nthe communication matrix of %d ranks is in the JSON form\n", p.Ranks)
	} else {
		p.matrix(&b, "messages", func(t Traffic) uint64 { return t.Messages })
		p.matrix(&b, "bytes", func(t Traffic) uint64 { return t.Bytes })
	}
	n, err := io.WriteString(w, b.String())
	total := int64(n)
	for i, s := range p.Spawned {
		if err == nil {
			n, err = fmt.Fprintf(w, "\nspawned group %d: ", i+1)
			total += int64(n)
		}
		if err == nil {
			var m int64
			m, err = s.WriteTo(w)
			total += m
		}
	}
	return total, err
}

func (p *JobProfile) matrix(b *strings.Builder, what string, of func(Traffic) uint64) {
	fmt.Fprintf(b, "\n%-14s", what+" from/to")
	for j := range p.Matrix {
		fmt.Fprintf(b, " %12d", j)
	}
	others := slices.ContainsFunc(p.Others, func(t Traffic) bool { return t.Messages > 0 })
	if others {
		fmt.Fprintf(b, " %12s", "other jobs")
	}
	for i, row := range p.Matrix {
		fmt.Fprintf(b, "\n%-14d", i)
		for _, t := range row {
			fmt.Fprintf(b, " %12d", of(t))
		}
		if others {
			fmt.Fprintf(b, " %12d", of(p.Others[i]))
		}
	}
	b.WriteByte('\n')
}

func us(d time.Duration) float64 { return float64(d) / 1e3 }
func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// formatSize is the inverse of parseSize.
func formatSize(n int) string {
	switch {
	case n > 0 && n%(1<<30) == 0:
		return strconv.Itoa(n>>30) + "G"
	case n > 0 && n%(1<<20) == 0:
		return strconv.Itoa(n>>20) + "M"
	case n > 0 && n%(1<<10) == 0:
		return strconv.Itoa(n>>10) + "K"
	}
	return strconv.Itoa(n)
}

func formatAddrs(addrs []netip.AddrPort) string {
	var s []string
	for _, a := range addrs {
		s = append(s, a.String())
	}
	return strings.Join(s, ",")
}
