package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weftstack/weft/internal/bench"
)

// lossLimit is how long one run may take; one that does not end by then counts
// as that long, and is marked.
const lossLimit = 3 * time.Minute

// transport is one way to carry the experiments' messages.
type transport struct {
	name    string
	weft    string // WEFT_TRANSPORT; else Open MPI
	cc      string // congestion control of TCP
	openMPI bool
}

// transports lists what is there.
func transports(ctx context.Context, t *tools) (all []transport, missing []string) {
	all = []transport{{name: "weft sctp", weft: "sctp"}, {name: "weft hybrid", weft: "hybrid"}}
	want := []string{"cubic", "reno", "bbr"}
	ccs := congestionControls(want...)
	for _, cc := range want {
		if !slices.Contains(ccs, cc) {
			missing = append(missing, "TCP "+cc+": not in this kernel")
		}
	}
	for _, cc := range ccs {
		all = append(all, transport{name: "weft tcp/" + cc, weft: "tcp", cc: cc})
	}
	if _, err := t.compile(ctx, "mpi-openmpi", "mpi", "mpicc.openmpi"); err != nil {
		return all, append(missing, "Open MPI: "+err.Error())
	}
	for _, cc := range ccs {
		all = append(all, transport{name: "Open MPI tcp/" + cc, cc: cc, openMPI: true})
	}
	return all, missing
}

// workload is one experiment of the papers.
type workload struct {
	name   string
	hosts  int
	size   int
	count  int // round trips or tasks
	fanout int // 0: ping-pong
}

func workloads(scale float64) []workload {
	n := func(v int) int { return max(1, int(math.Round(float64(v)*scale))) }
	all := []workload{
		{"ping-pong, 30 KB", 2, 30_000, n(1000), 0},
		{"ping-pong, 300 KB", 2, 300_000, n(150), 0},
	}
	for _, fanout := range []int{1, 10} {
		all = append(all, workload{fmt.Sprintf("farm, 30 KB, fanout %d", fanout), 4, 30_000, n(3000), fanout},
			workload{fmt.Sprintf("farm, 300 KB, fanout %d", fanout), 4, 300_000, n(500), fanout})
	}
	return all
}

// what describes the work for the table's head.
func (w *workload) what() string {
	if w.fanout == 0 {
		return fmt.Sprintf("%s: seconds for %d round trips", w.name, w.count)
	}
	return fmt.Sprintf("%s: seconds for %d tasks on %d hosts", w.name, w.count, w.hosts)
}

// seconds runs a workload once.
func (w *workload) seconds(ctx context.Context, t *tools, tr transport, n network) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, lossLimit)
	defer cancel()
	n.hosts, n.cc, n.on = w.hosts, tr.cc, -1
	var words []string
	size, count := fmt.Sprint(w.size), fmt.Sprint(w.count)
	switch {
	case tr.openMPI:
		launch, err := openMPI(t, w.hosts)
		if err != nil {
			return 0, err
		}
		n.on, n.env = 0, t.openMPIEnv()
		words = append(launch, t.have["mpi-openmpi"], "count", size, count)
		if w.fanout > 0 {
			words = append(launch, t.have["mpi-openmpi"], "farm", size, count, fmt.Sprint(w.fanout))
		}
	case w.fanout == 0:
		n.env = []string{"WEFT_TRANSPORT=" + tr.weft}
		words = []string{t.weft, "perf", "-json", "-latency", "-warmup", "10ms", "-count", count, "-size", size, "mpi"}
	default:
		n.env = []string{"WEFT_TRANSPORT=" + tr.weft}
		words = []string{t.farm(), "-json", "-task", size, "-tasks", count, "-fanout", fmt.Sprint(w.fanout)}
	}
	out, err := n.run(ctx, t, words)
	if errors.Is(err, context.DeadlineExceeded) {
		return lossLimit.Seconds(), err
	}
	if err != nil {
		return 0, err
	}
	var r struct {
		Seconds  float64
		Verified *bool
	}
	if err := lastJSON(out, &r); err != nil {
		return 0, err
	}
	if r.Seconds <= 0 || r.Verified != nil && !*r.Verified {
		return 0, fmt.Errorf("a result that cannot be: %.300s", out)
	}
	return r.Seconds, nil
}

// cell is one place of the result.
type cell struct{ workload, transport, loss int }

// runLoss runs the papers' experiments. Seeds are outermost, so that what is to
// be compared runs close together.
func runLoss(ctx context.Context, s *settings, t *tools, w io.Writer) error {
	trs, missing := transports(ctx, t)
	trs = slices.DeleteFunc(trs, func(tr transport) bool { return !s.measures(tr.name) })
	works, losses := workloads(s.scale), strings.Split(s.losses, ",")
	net := network{rate: s.rateOr("1gbit"), delay: s.delay}
	results := map[cell]bench.Sample{}
	var count tally
	var troubles []string
	for seed := 1; seed <= s.seeds; seed++ {
		for wi := range works {
			for li, loss := range losses {
				for ti, tr := range trs {
					var seconds float64
					err := count.run(func() (err error) {
						n := net
						n.loss, n.seed = loss, seed
						seconds, err = works[wi].seconds(ctx, t, tr, n)
						return err
					})
					if ctx.Err() != nil {
						return ctx.Err()
					}
					if err != nil {
						troubles = append(troubles, fmt.Sprintf("%s, %s, loss %s, seed %d: %.200v", works[wi].name, tr.name, loss, seed, err))
					}
					if seconds > 0 {
						c := cell{wi, ti, li}
						results[c] = append(results[c], seconds)
					}
					fmt.Fprintf(os.Stderr, "seed %d of %d: %s, loss %s, %s: %.2f s %s\n", seed, s.seeds, works[wi].name, loss, tr.name, seconds, remark(err))
				}
			}
		}
	}
	fmt.Fprint(w, bench.Provenance(count.runs, count.noisy), "\n")
	fmt.Fprintf(w, "Line rate %s, %s one way, MTU 1,500, queue 256 KiB; medians of %d seeds (smallest–largest), and in bold the median relative to that at %s loss.\n",
		net.rate, net.delay, s.seeds, losses[0])
	for wi := range works {
		fmt.Fprintf(w, "\n%s:\n\n| transport |", works[wi].what())
		for _, loss := range losses {
			fmt.Fprintf(w, " loss %s |", loss)
		}
		fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(losses)))
		for ti, tr := range trs {
			fmt.Fprintf(w, "| %s |", tr.name)
			base := results[cell{wi, ti, 0}].Median()
			for li := range losses {
				sample := results[cell{wi, ti, li}]
				fmt.Fprintf(w, " %s", sample)
				if li > 0 && len(sample) > 0 {
					fmt.Fprintf(w, " **× %s**", bench.Digits(sample.Median()/base))
				}
				fmt.Fprint(w, " |")
			}
			fmt.Fprintln(w)
		}
	}
	writeTroubles(w, missing, troubles)
	return nil
}

// remark says what went wrong, if anything.
func remark(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// writeTroubles writes what could not be measured, and why.
func writeTroubles(w io.Writer, missing, troubles []string) {
	for _, m := range missing {
		fmt.Fprintf(w, "\nNot measured: %s.\n", m)
	}
	for _, m := range troubles {
		fmt.Fprintf(w, "\nFailed: %s.\n", strings.Join(strings.Fields(m), " "))
	}
}

// rateOr returns the line rate asked for, or another.
func (s *settings) rateOr(other string) string {
	if s.rate != "" {
		return s.rate
	}
	return other
}
