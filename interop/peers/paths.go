package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weftstack/weft/internal/bench"
)

// Emulated long paths: a queue of about the product of bandwidth and delay.
const (
	pathRate  = "100mbit"
	pathQueue = "512KiB"
	pathSize  = "64KiB"
	// pathTimes is by how much the runs are longer than those on loopback: a
	// congestion window takes many round trips to find its size.
	pathTimes = 10
)

// flow is one flow of data in an emulated network.
type flow struct {
	mode string // of weft perf
	cc   string // of TCP; "" for SCTP
	ip   bool   // SCTP without UDP, as TCP is
}

func (f flow) name() string {
	if f.mode == "tcp" {
		return "TCP " + f.cc
	}
	if f.ip {
		return "weft sctp over IP"
	}
	return "weft sctp"
}

// client returns the words of a sender to a server, which may take a while to
// be there.
func (t *tools) client(f flow, server string, s *settings) []string {
	more := ""
	if f.mode == "sctp" {
		more = fmt.Sprintf("-interleave=false -encapsulate=%v ", !f.ip) // one stream has no use for interleaving
	}
	script := fmt.Sprintf("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do %s perf -connect %s -json -time %v -warmup %v -size %s -mtu 1500 %s%s 2>/dev/null && exit 0; sleep 0.25; done; exit 1",
		t.weft, server, pathTimes*s.time, s.time, pathSize, more, f.mode)
	return []string{"sh", "-c", script}
}

// flowResult is what a sender prints.
type flowResult struct {
	Mode        string
	Gbps        float64
	Retransmits uint64 `json:"retransmissions"`
}

// parseFlows parses one result per line.
func parseFlows(out string, want int) ([]flowResult, error) {
	var all []flowResult
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var r flowResult
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("%.200q: %w", line, err)
		}
		all = append(all, r)
	}
	if len(all) != want {
		return nil, fmt.Errorf("%d results of %d flows: %.300q", len(all), want, out)
	}
	return all, nil
}

// pathLimit is how long a run may take beyond its measurement.
const pathLimit = time.Minute

// pathFlows returns the flows to compare, and those that this kernel does not have.
func pathFlows(s *settings) (flows []flow, missing []string) {
	flows = []flow{{mode: "sctp"}, {mode: "sctp", ip: true}}
	for _, cc := range []string{"cubic", "reno", "bbr"} {
		if len(congestionControls(cc)) == 0 {
			missing = append(missing, "TCP "+cc+": not in this kernel")
			continue
		}
		flows = append(flows, flow{mode: "tcp", cc: cc})
	}
	flows = slices.DeleteFunc(flows, func(f flow) bool { return !s.measures(f.name()) })
	return flows, missing
}

// flows runs commands on the hosts of a network, which give that many results.
func (c *tally) flows(ctx context.Context, s *settings, t *tools, n *network, results int, commands ...[]string) (r []flowResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, pathLimit+pathTimes*2*s.time)
	defer cancel()
	err = c.run(func() error {
		out, err := n.run(ctx, t, commands...)
		if err == nil {
			r, err = parseFlows(out, results)
		}
		return err
	})
	return r, err
}

// runBulk measures how much a single flow carries over long paths with loss.
func runBulk(ctx context.Context, s *settings, t *tools, w io.Writer) error {
	flows, missing := pathFlows(s)
	if len(flows) == 0 {
		return fmt.Errorf("no flow of those is called %q", s.only)
	}
	paths := []struct {
		rtt   string
		delay string
		loss  string
	}{
		{"10 ms", "5ms", "0%"}, {"10 ms", "5ms", "0.1%"}, {"10 ms", "5ms", "1%"},
		{"50 ms", "25ms", "0%"}, {"50 ms", "25ms", "0.1%"}, {"50 ms", "25ms", "1%"},
	}
	results := make([][]bench.Sample, len(paths))
	var count tally
	var troubles []string
	rate := s.rateOr(pathRate)
	for seed := 1; seed <= s.seeds; seed++ {
		for pi, p := range paths {
			if results[pi] == nil {
				results[pi] = make([]bench.Sample, len(flows))
			}
			for fi, f := range flows {
				n := network{hosts: 2, rate: rate, delay: p.delay, loss: p.loss, queue: pathQueue, seed: seed, cc: f.cc, on: -1}
				r, err := count.flows(ctx, s, t, &n, 1, t.client(f, "10.77.0.2:7000", s), []string{t.weft, "perf", "-server", "10.77.0.2:7000", "-once"})
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err != nil {
					troubles = append(troubles, fmt.Sprintf("%s, %s, loss %s, seed %d: %.200v", f.name(), p.rtt, p.loss, seed, err))
					continue
				}
				results[pi][fi] = append(results[pi][fi], r[0].Gbps*1e3)
				fmt.Fprintf(os.Stderr, "seed %d of %d: %s, %s, loss %s: %.1f Mb/s\n", seed, s.seeds, f.name(), p.rtt, p.loss, r[0].Gbps*1e3)
			}
		}
	}
	fmt.Fprint(w, bench.Provenance(count.runs, count.noisy), "\n")
	fmt.Fprintf(w, "Goodput in Mb/s of one flow on a line of %s with a queue of %s, over %v; medians of %d seeds (smallest–largest), and in bold relative to TCP cubic on the same path and seeds.\n\n",
		rate, pathQueue, pathTimes*s.time, s.seeds)
	fmt.Fprint(w, "| round trip time | loss |")
	for _, f := range flows {
		fmt.Fprintf(w, " %s |", f.name())
	}
	fmt.Fprintf(w, "\n|---|---|%s\n", strings.Repeat("---|", len(flows)))
	cubic := slices.IndexFunc(flows, func(f flow) bool { return f.cc == "cubic" })
	for pi, p := range paths {
		fmt.Fprintf(w, "| %s | %s |", p.rtt, p.loss)
		for fi := range flows {
			fmt.Fprintf(w, " %s", results[pi][fi])
			if flows[fi].mode == "sctp" && cubic >= 0 {
				fmt.Fprintf(w, " **× %s**", bench.Digits(results[pi][fi].Median()/results[pi][cubic].Median()))
			}
			fmt.Fprint(w, " |")
		}
		fmt.Fprintln(w)
	}
	writeTroubles(w, missing, troubles)
	return nil
}

// runFair measures how two flows share the line into a host.
func runFair(ctx context.Context, s *settings, t *tools, w io.Writer) error {
	if len(congestionControls("cubic")) == 0 {
		return errors.New("this kernel's TCP has no cubic to compare with")
	}
	sctp, tcp := flow{mode: "sctp"}, flow{mode: "tcp", cc: "cubic"}
	pairs := [][2]flow{{sctp, sctp}, {sctp, tcp}, {tcp, tcp}}
	pairs = slices.DeleteFunc(pairs, func(p [2]flow) bool { return !s.measures(p[0].name()) || !s.measures(p[1].name()) })
	if len(pairs) == 0 {
		return fmt.Errorf("no two flows of those are called %q", s.only)
	}
	delays := []struct{ rtt, delay string }{{"10 ms", "5ms"}, {"50 ms", "25ms"}}
	rate := s.rateOr(pathRate)
	var count tally
	var troubles []string
	type row struct{ first, second, sum, jain bench.Sample }
	rows := make([]row, len(pairs)*len(delays))
	for seed := 1; seed <= s.seeds; seed++ {
		for i := range rows {
			pair, d := pairs[i%len(pairs)], delays[i/len(pairs)]
			n := network{hosts: 3, rate: rate, delay: d.delay, loss: "0%", queue: pathQueue, seed: seed, cc: "cubic", on: -1}
			r, err := count.flows(ctx, s, t, &n, 2, t.client(pair[0], "10.77.0.3:7000", s), t.client(pair[1], "10.77.0.3:7001", s), []string{"sh", "-c",
				fmt.Sprintf("%[1]s perf -server 10.77.0.3:7000 -once & %[1]s perf -server 10.77.0.3:7001 -once; wait", t.weft)})
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				troubles = append(troubles, fmt.Sprintf("%s beside %s, %s, seed %d: %.200v", pair[0].name(), pair[1].name(), d.rtt, seed, err))
				continue
			}
			if r[0].Mode != pair[0].mode { // in the order in which they ended
				r[0], r[1] = r[1], r[0]
			}
			a, b := r[0].Gbps*1e3, r[1].Gbps*1e3
			x := &rows[i]
			x.first, x.second, x.sum, x.jain = append(x.first, a), append(x.second, b), append(x.sum, a+b), append(x.jain, bench.Jain(a, b))
			fmt.Fprintf(os.Stderr, "seed %d of %d: %s beside %s, %s: %.1f and %.1f Mb/s\n", seed, s.seeds, pair[0].name(), pair[1].name(), d.rtt, a, b)
		}
	}
	fmt.Fprint(w, bench.Provenance(count.runs, count.noisy), "\n")
	fmt.Fprintf(w, "Two hosts send to a third over its line of %s with a queue of %s, started together, over %v; medians of %d seeds (smallest–largest). Jain's index is 1 for equal shares, 0.5 when one flow has all.\n\n",
		rate, pathQueue, pathTimes*s.time, s.seeds)
	fmt.Fprint(w, "| flows | round trip time | first, Mb/s | second, Mb/s | both | Jain's index |\n|---|---|---|---|---|---|\n")
	for i, x := range rows {
		pair, d := pairs[i%len(pairs)], delays[i/len(pairs)]
		fmt.Fprintf(w, "| %s, %s | %s | %s | %s | %s | %s |\n", pair[0].name(), pair[1].name(), d.rtt, x.first, x.second, x.sum, x.jain)
	}
	writeTroubles(w, nil, troubles)
	return nil
}
