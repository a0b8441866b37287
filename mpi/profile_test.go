package mpi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// recorder keeps all records of a rank.
type recorder struct {
	mu  sync.Mutex
	all []CallRecord
}

func (p *recorder) Record(r CallRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, r)
}

// take returns the records so far and forgets them.
func (p *recorder) take() []CallRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all
	p.all = nil
	return all
}

// TestProfilerSeesRefusedCalls has a typed call on a file fail by its arguments: it is told
// of like one that succeeds, with its error.
func TestProfilerSeesRefusedCalls(t *testing.T) {
	rec := new(recorder)
	err := RunLocal(t.Context(), 1, func(ctx context.Context, w *World) error {
		f, err := FileOpen[int32](ctx, w.Comm(), filepath.Join(t.TempDir(), "x"), FileReadWrite|FileCreate, nil)
		if err != nil {
			return err
		}
		defer f.Close(ctx)
		four, err := TypeOf[int32]()
		if err == nil {
			four, err = TypeContiguous(4, four)
		}
		if err != nil {
			return err
		}
		rec.take()
		if _, err := f.ReadAtType(ctx, 0, make([]int32, 4), 2, four); !errors.Is(err, ErrCount) {
			return fmt.Errorf("8 items read into 4: %v", err)
		}
		if _, err := f.WriteAtAllType(ctx, 0, make([]int32, 4), 2, four); !errors.Is(err, ErrCount) {
			return fmt.Errorf("8 items written of 4: %v", err)
		}
		told := rec.take()
		if len(told) != 2 || told[0].Name != "File.ReadAt" || told[1].Name != "File.WriteAtAll" ||
			!errors.Is(told[0].Err, ErrCount) || !errors.Is(told[1].Err, ErrCount) {
			return fmt.Errorf("told of %+v", told)
		}
		return nil
	}, WithProfiler(rec))
	if err != nil {
		t.Error(err)
	}
}

// TestProfilerSeesCalls makes calls of all kinds and compares what is told.
func TestProfilerSeesCalls(t *testing.T) {
	type want struct {
		name            string
		peer, tag, size int
	}
	rec := new(recorder) // of rank 0: the others have none
	err := RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		me, other := c.Rank(), 1-c.Rank()
		if me != 0 {
			o := *w.opts
			o.profiler = nil
			c.prof, w.opts = nil, &o
		}
		buf := make([]int32, 4)
		win, err := WinAllocate[int64](ctx, c, 8)
		if err != nil {
			return err
		}
		cart, err := NewCart(ctx, c, []int{2}, []bool{true})
		if err != nil {
			return err
		}
		cart.Comm().prof = c.prof
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		rec.take()
		steps := []struct {
			do   func() error
			want []want // on rank 0
		}{
			{func() error {
				if me == 0 {
					return Send(ctx, c, buf, 1, 7)
				}
				_, err := Recv(ctx, c, buf, 0, 7)
				return err
			}, []want{{"Send", 1, 7, 16}}},
			{func() error {
				if me == 1 {
					return Ssend(ctx, c, buf[:3], 0, 9)
				}
				_, err := Recv(ctx, c, buf, AnySource, AnyTag)
				return err
			}, []want{{"Recv", 1, 9, 12}}},
			{func() error {
				r, err := Irecv(c, buf, other, 1)
				if err != nil {
					return err
				}
				s, err := Isend(c, make([]int32, 2), other, 1)
				if err == nil {
					_, err = s.Wait(ctx)
				}
				if err == nil {
					_, err = r.Wait(ctx)
				}
				return err
			}, []want{{"Irecv", 1, 1, 16}, {"Isend", 1, 1, 8}, {"Wait", NoPeer, 0, 0}, {"Wait", NoPeer, 0, 8}}},
			{func() error { return Allreduce(ctx, c, buf, buf, Sum) }, []want{{"Allreduce", NoPeer, 0, 16}}},
			{func() error { return Bcast(ctx, c, buf, 1) }, []want{{"Bcast", 1, 0, 16}}},
			{func() error {
				r, err := IreduceScatterBlock(c, buf, buf[:2], Sum)
				if err == nil {
					_, err = Waitall(ctx, r)
				}
				return err
			}, []want{{"IreduceScatterBlock", NoPeer, 0, 16}, {"Waitall", NoPeer, 0, 0}}},
			{func() error {
				return NeighborAllgather(ctx, cart, buf, make([]int32, 8))
			}, []want{{"Neighbor", NoPeer, 0, 16}}},
			{func() error {
				if err := win.Put(ctx, []int64{1}, other, 0); err != nil {
					return err
				}
				return win.Fence(ctx)
			}, []want{{"Win.Put", 1, 0, 8}, {"Win.Fence", NoPeer, 0, 0}}},
			{func() error {
				_, err := win.FetchAndOp(ctx, 1, other, 0, Sum)
				return err
			}, []want{{"Win.FetchAndOp", 1, 0, 8}}},
		}
		for i, s := range steps {
			if err := s.do(); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
			if me != 0 {
				continue
			}
			var got []want
			for _, r := range rec.take() {
				if r.Duration < 0 || r.Start.IsZero() || r.Err != nil || r.Rank != 0 {
					t.Errorf("step %d: record %+v", i, r)
				}
				got = append(got, want{r.Name, r.Peer, r.Tag, r.Bytes})
			}
			if !slices.Equal(got, s.want) {
				t.Errorf("step %d: records %v, want %v", i, got, s.want)
			}
		}
		if me == 0 {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := Recv(ctx, c, buf, 1, 1); err == nil {
				t.Error("a cancelled receive returned no error")
			}
			if all := rec.take(); len(all) != 1 || !errors.Is(all[0].Err, context.Canceled) || all[0].Peer != 1 {
				t.Errorf("records of a cancelled receive: %+v", all)
			}
		}
		return win.Free(ctx)
	}, WithProfiler(rec))
	if err != nil {
		t.Error(err)
	}
}

// TestProfilerCostsNothing checks that calls do not allocate for a profiler,
// set or not.
func TestProfilerCostsNothing(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	for _, prof := range []Profiler{nil, new(Profile)} {
		err := RunLocal(t.Context(), 1, func(ctx context.Context, w *World) error {
			c := w.Comm()
			buf := make([]int64, 4)
			n := testing.AllocsPerRun(200, func() {
				if err := Send(ctx, c, buf, 0, 1); err != nil {
					t.Error(err)
				}
				if _, err := Recv(ctx, c, buf, 0, 1); err != nil {
					t.Error(err)
				}
			})
			if n > 0.5 {
				t.Errorf("with profiler %T: %.1f allocations in a round", prof, n)
			}
			return nil
		}, WithProfiler(prof))
		if err != nil {
			t.Error(err)
		}
	}
}

func TestProfileSumsUp(t *testing.T) {
	var p Profile
	p.Record(CallRecord{Name: "Send", Bytes: 3, Duration: 5})
	p.Record(CallRecord{Name: "Send", Bytes: 4, Duration: 7, Err: ErrRank})
	p.Record(CallRecord{Name: "Recv", Bytes: 1, Duration: 20})
	want := []CallSummary{{"Recv", 1, 1, 0, 20, 20}, {"Send", 2, 7, 1, 12, 7}}
	if got := p.Calls(); !slices.Equal(got, want) {
		t.Errorf("sums %v, want %v", got, want)
	}
	job, err := MergeProfiles([]ProfileReport{
		{Rank: 0, Size: 2, Time: 100, Calls: want, Stats: Stats{Peers: []PeerStats{
			{Rank: 1, Messages: Traffic{1, 10}, Collective: Traffic{2, 20}, Writes: Traffic{1, 5}, Reads: Traffic{3, 7}}}}},
		{Rank: 1, Size: 2, Time: 60, Calls: want[1:]},
	})
	if err != nil {
		t.Fatal(err)
	}
	if job.Time != 160 || job.InMPI != 44 || job.Calls[0].Name != "Send" || job.Calls[0].Count != 4 {
		t.Errorf("job %+v", job)
	}
	if job.Matrix[0][1] != (Traffic{4, 35}) || job.Matrix[1][0] != (Traffic{3, 7}) {
		t.Errorf("matrix %v", job.Matrix)
	}
	var b strings.Builder
	if _, err := job.WriteTo(&b); err != nil || !strings.Contains(b.String(), "Recv") || !strings.Contains(b.String(), "bytes from/to") {
		t.Errorf("table %q, %v", b.String(), err)
	}
	for _, bad := range [][]ProfileReport{{{Rank: 5, Size: 2}}, {{Rank: -1}}, {{Size: MaxRanks + 1}}, {{Stats: Stats{Peers: []PeerStats{{Rank: 9}}}}}} {
		if _, err := MergeProfiles(bad); !errors.Is(err, ErrOption) {
			t.Errorf("reports %+v: error %v", bad, err)
		}
	}
}

func TestTracerWritesEvents(t *testing.T) {
	var b bytes.Buffer
	tr := NewTracer(&b)
	err := RunLocal(t.Context(), 3, func(ctx context.Context, w *World) error {
		w.Comm().SetName("a \"name\"\x00")
		if err := Barrier(ctx, w.Comm()); err != nil {
			return err
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, _ = Recv(ended, w.Comm(), []byte{0}, 0, 3)
		return nil
	}, WithProfiler(tr))
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	var events []struct {
		Name, Ph string
		Pid      int
		Ts, Dur  float64
		Args     struct {
			Comm, Error string
			Tag         int
		}
	}
	if err := json.Unmarshal(b.Bytes(), &events); err != nil {
		t.Fatalf("%v in %s", err, b.String())
	}
	calls := make(map[string]int)
	for _, e := range events {
		if e.Ph != "X" {
			continue
		}
		calls[fmt.Sprint(e.Name, e.Pid)]++
		if e.Args.Comm != "a \"name\"\x00" || e.Ts < 1e15 || e.Dur < 0 {
			t.Errorf("event %+v", e)
		}
		if e.Name == "Recv" && (e.Args.Error == "" || e.Args.Tag != 3) {
			t.Errorf("event %+v", e)
		}
	}
	for r := range 3 {
		if calls[fmt.Sprint("Barrier", r)] != 1 || calls[fmt.Sprint("Recv", r)] != 1 {
			t.Errorf("calls %v", calls)
		}
	}
	if err := tr.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}

// TestStatsCountTraffic compares the counters with what was sent, over all
// transports.
func TestStatsCountTraffic(t *testing.T) {
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w := c.World()
		before := w.Stats()
		if c.Rank() == 0 {
			if err := Send(ctx, c, make([]byte, 100_000), 1, 0); err != nil {
				return err
			}
		} else if _, err := Recv(ctx, c, make([]byte, 100_000), 0, 0); err != nil {
			return err
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		win, err := WinAllocate[int64](ctx, c, 512)
		if err != nil {
			return err
		}
		other := 1 - c.Rank()
		mid := w.Stats()
		if err := win.Put(ctx, make([]int64, 512), other, 0); err != nil {
			return err
		}
		if err := win.Flush(ctx, other); err != nil {
			return err
		}
		if _, err := win.FetchAndOp(ctx, 1, other, 0, Sum); err != nil {
			return err
		}
		after := w.Stats()
		p, q, r := before.Peers[other], mid.Peers[other], after.Peers[other]
		if c.Rank() == 0 && (q.Messages.Messages != p.Messages.Messages+1 || q.Messages.Bytes != p.Messages.Bytes+100_000) {
			return fmt.Errorf("messages %v, then %v", p.Messages, q.Messages)
		}
		if q.Collective.Messages == p.Collective.Messages {
			return errors.New("a barrier sent nothing")
		}
		if win.RDMA() {
			if r.Writes != (Traffic{1, 4096}) || r.Atomics != (Traffic{1, 8}) {
				return fmt.Errorf("RDMA writes %v, atomics %v", r.Writes, r.Atomics)
			}
		} else if r.OneSided.Messages <= q.OneSided.Messages {
			return fmt.Errorf("one-sided messages %v, then %v", q.OneSided, r.OneSided)
		}
		return win.Free(ctx)
	})
}

// TestStatsCountWhatWaits posts receives, and sends what nobody receives.
func TestStatsCountWhatWaits(t *testing.T) {
	err := RunLocal(t.Context(), 1, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if _, err := Irecv(c, []byte{0}, 0, 5); err != nil {
			return err
		}
		for range 2 {
			if err := Send(ctx, c, []byte{0}, 0, 6); err != nil {
				return err
			}
		}
		if s := w.Stats(); s.Posted != 1 || s.Unexpected != 2 || s.Peers[0].Held == 0 {
			t.Errorf("stats %+v", s)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTunablesAreInEffect(t *testing.T) {
	err := RunLocal(t.Context(), 1, func(_ context.Context, w *World) error {
		got := make(map[string]string)
		for _, v := range w.Tunables() {
			got[v.Name] = v.Value
			if v.Doc == "" {
				t.Errorf("%s has no text", v.Name)
			}
		}
		if got["WEFT_TRANSPORT"] != "inproc" || got["WEFT_EAGER"] != "5" || got["WEFT_UNEXPECTED"] != "3M" || got["WEFT_RENDEZVOUS"] != "message" {
			t.Errorf("tunables %v", got)
		}
		return nil
	}, WithEager(5), WithUnexpected(3<<20))
	if err != nil {
		t.Error(err)
	}
}

// TestProfileEnvironment lets processes profile and trace themselves.
func TestProfileEnvironment(t *testing.T) {
	dir := t.TempDir()
	var o options
	prof, trace := filepath.Join(dir, "p"), filepath.Join(dir, "t")
	err := o.toolsFromEnv(func(name string) string {
		return map[string]string{"WEFT_PROFILE": prof, "WEFT_TRACE": trace}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	err = RunLocal(t.Context(), 1, func(ctx context.Context, w *World) error {
		w.opts.tools = o.tools
		return Barrier(ctx, w.Comm())
	}, WithProfiler(o.profiler))
	if err != nil {
		t.Fatal(err)
	}
	var r ProfileReport
	text, err := os.ReadFile(prof)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil || r.Size != 1 || len(r.Calls) != 1 || r.Calls[0].Name != "Barrier" || r.Time <= 0 {
		t.Errorf("report %s, %v", text, err)
	}
	var events []map[string]any
	text, err = os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &events); err != nil || !strings.Contains(string(text), `"Barrier"`) {
		t.Errorf("trace %s, %v", text, err)
	}
	err = new(options).toolsFromEnv(func(string) string { return filepath.Join(dir, "none", "x") })
	if !errors.Is(err, ErrOption) {
		t.Errorf("a file that cannot be: %v", err)
	}
}
