package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/bench"
	"github.com/weftstack/weft/internal/testenv"
)

// envFigures is how many seeds TestGatewayFigures takes for each figure; without it the test runs all
// once, with little to do, and prints figures that mean nothing.
const envFigures = "WEFT_GATEWAY_FIGURES"

// figureWays are how the ranks of two sites reach each other.
var figureWays = []string{"gateways", gatewaysCubic, "direct", "Open MPI"}

// gatewaysCubic is a leg with CUBIC in place of BBR.
const gatewaysCubic = "gateways, CUBIC"

// A figureRow is a pattern over a network.
type figureRow struct {
	name    string
	pattern string // its arguments
	few     string // the same with little to do
}

var figureRows = []figureRow{
	{"halo exchange, 64 KiB", "halo 40 65536 20000", "halo 3 65536 1000"},
	{"sweep, 1 KiB", "sweep 5 100 1024", "sweep 1 10 1024"},
	{"alltoall, 64 KiB", "alltoall 15 65536", "alltoall 1 65536"},
}

// figureNets are the networks: the WAN and the flows of cross-traffic.
var figureNets = []struct{ name, wan, cross string }{
	{"no loss", figureWAN, ""},
	{"1 % loss", figureWAN + " loss 1%", ""},
	{"cross-traffic", figureWAN, "2"},
}

// figureWAN is the link between the sites. Two processors do not carry more than 200 Mb/s of
// cross-traffic in both directions beside the rest.
const figureWAN = "200mbit 9ms"

// runWay runs a pattern one way. With counts it returns what the transport did between the sites too.
func runWay(t *testing.T, way, wan, cross, pattern string, seed int, counts bool) (r patternResult, c siteCounts, err error) {
	t.Helper()
	j := siteJob{sites: 2, hosts: 4, wan: wan, cross: cross, on: -1, seed: seed}
	capture := filepath.Join(t.TempDir(), "pcap")
	if counts {
		j.flags = []string{"-pcap", capture}
	}
	// What is counted where TCP or a gateway runs is read when the pattern is over.
	script := `"$@" || exit; [ "$WEFT_NET_HOST" = 0 ] || exit 0; `
	var out string
	switch way {
	case "Open MPI":
		j.tcp = "cubic"
		if !counts {
			r, err = j.openMPI(t, siteJobTime, pattern)
			return r, c, err
		}
		j.after = `for n in $(echo $WEFT_NET_NAMES | tr , ' '); do ip netns exec $n cat /proc/net/netstat; done`
		out, err = j.openMPIOut(t, siteJobTime, pattern)
		if err == nil {
			err = tcpCounts(out, &c)
		}
	default:
		j.env = []string{envPattern + "=" + pattern, "WEFT_TRANSPORT=sctp"}
		command := []string{os.Args[0]}
		switch {
		case way == "gateways" || way == gatewaysCubic:
			j.gateways = 1
			if way == gatewaysCubic {
				j.flags = append(j.flags, "-congestion", "cubic")
			}
			if counts {
				script += `i=17; for n in $(echo $WEFT_NET_GATEWAYS | tr , ' '); do ip netns exec $n ` + tool(t, "weft") +
					` gateway status -json 127.0.0.1:91$i | tr -d '\n'; echo; i=$((i+16)); done`
				command = []string{"/bin/sh", "-c", script, "sh", os.Args[0]}
			}
		case counts:
			j.env = append(j.env, envCount+"=1")
		}
		out, err = j.run(t, siteJobTime, command...)
		if err == nil && counts {
			err = weftCounts(out, &c)
		}
	}
	if err == nil && counts {
		c.Restarts, err = pausesIn(capture)
	}
	if err == nil {
		err = lastResult(out, &r)
	}
	return r, c, err
}

// tcpCounts adds up the counters of the TCP of all hosts.
func tcpCounts(out string, c *siteCounts) error {
	var names []string
	found := 0
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "TcpExt:" {
			continue
		}
		if _, err := strconv.Atoi(words[1]); err != nil {
			names = words
			continue
		}
		for i, name := range names {
			n, _ := strconv.ParseUint(words[i], 10, 64)
			switch name {
			case "TCPTimeouts":
				c.Timeouts += n
				found++
			case "TCPFastRetrans", "TCPLossProbes", "TCPSlowStartRetrans":
				c.Fast += n
			}
		}
	}
	if found == 0 {
		return fmt.Errorf("no counters of TCP: %.300q", out)
	}
	return nil
}

// weftCounts adds up the counters of ranks, or of the legs between gateways.
func weftCounts(out string, c *siteCounts) error {
	found := 0
	for line := range strings.Lines(out) {
		var l struct {
			Counts *siteCounts
			Legs   []struct {
				Gateway        bool
				Timeouts, Fast uint64
				FastRetr       uint64 `json:"fast_retransmits"`
			}
		}
		if json.Unmarshal([]byte(line), &l) != nil {
			continue
		}
		if l.Counts != nil {
			c.add(*l.Counts)
			found++
		}
		for _, leg := range l.Legs {
			if leg.Gateway {
				c.add(siteCounts{Timeouts: leg.Timeouts, Fast: leg.FastRetr})
				found++
			}
		}
	}
	if found < 2 {
		return fmt.Errorf("%d counters: %.300q", found, out)
	}
	return nil
}

// Figures of docs/gateways.md: patterns of parallel programs over two sites of four hosts, through gateways,
// with associations between the processes, and with Open MPI over TCP (CUBIC). With
// WEFT_GATEWAY_FIGURES=5 each is the median of 5 seeds, which takes an hour; add -timeout and
// WEFT_INTEROP_TIME.
func TestGatewayFigures(t *testing.T) {
	bounded(t)
	testenv.Slow(t, "patterns with and without gateways")
	testenv.Networks(t)
	openMPIPatterns(t)
	seeds, full := 1, false
	if s := os.Getenv(envFigures); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("%s=%s: want a number of seeds", envFigures, s)
		}
		seeds, full = n, true
	}
	rows, nets := figureRows, figureNets
	pattern := func(row figureRow) string { return row.pattern }
	if !full {
		rows, nets = rows[:1], nets[1:2]
		pattern = func(row figureRow) string { return row.few }
	}
	figureFlows(t, seeds, full)
	times := make(map[string]bench.Sample)
	for seed := range seeds {
		for _, row := range rows {
			for _, net := range nets {
				for _, way := range figureWays {
					r, _, err := runWay(t, way, net.wan, net.cross, pattern(row), seed, false)
					if err != nil {
						t.Errorf("%s, %s, %s, seed %d: %v", row.name, net.name, way, seed, err)
						continue
					}
					t.Logf("%s, %s, %s, seed %d: %.3g s", row.name, net.name, way, seed, r.Seconds)
					key := row.name + net.name + way
					times[key] = append(times[key], r.Seconds)
				}
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| Seconds | network | %s | gateways / direct | CUBIC / direct | gateways / Open MPI | CUBIC / Open MPI |\n|---|---|---|---|---|---|---|---|---|---|\n", strings.Join(figureWays, " | "))
	for _, row := range rows {
		for _, net := range nets {
			fmt.Fprintf(&b, "| %s | %s |", row.name, net.name)
			var m []float64
			for _, way := range figureWays {
				s := times[row.name+net.name+way]
				if len(s) == 0 {
					m = append(m, 0)
					b.WriteString(" – |")
					continue
				}
				m = append(m, s.Median())
				low, high := s.Range()
				fmt.Fprintf(&b, " %.3g (%.3g–%.3g) |", s.Median(), low, high)
			}
			fmt.Fprintf(&b, " %.2f | %.2f | %.2f | %.2f |\n", m[0]/m[2], m[1]/m[2], m[0]/m[3], m[1]/m[3])
		}
	}
	t.Logf("times, medians of %d seeds:\n%s", seeds, &b)

	b.Reset()
	b.WriteString("| Pattern | network | way | timeouts | fast retransmissions | data after a pause |\n|---|---|---|---:|---:|---:|\n")
	for _, row := range rows {
		for _, net := range nets {
			for _, way := range figureWays {
				_, c, err := runWay(t, way, net.wan, net.cross, pattern(row), 0, true)
				if err != nil {
					t.Errorf("%s, %s, %s: %v", row.name, net.name, way, err)
					continue
				}
				fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %d |\n", row.name, net.name, way, c.Timeouts, c.Fast, c.Restarts)
			}
		}
	}
	t.Logf("counts:\n%s", &b)
}

// figureFlows measures flows through two gateways and associations, without package mpi: the latency on the
// loopback interface, where gateways and processes are all that takes time, and bulk between emulated sites.
func figureFlows(t *testing.T, attempts int, full bool) {
	t.Helper()
	trips, mib := 200, 2
	if full {
		trips, mib = 5000, 256
	}
	ways := []string{"relay", "direct"}
	latency, bulk := make(map[string]bench.Sample), make(map[string]bench.Sample)
	lo := newLoopbackSites(t)
	for range attempts {
		for _, way := range ways {
			r, err := lo.flow(t, way, fmt.Sprintf("pingpong %d 8", trips))
			if err != nil {
				t.Errorf("%s: %v", way, err)
				continue
			}
			latency[way] = append(latency[way], r.OneWay)
		}
		for _, wan := range []string{"1gbit 9ms", figureWAN} {
			for _, way := range ways {
				dir := filepath.Join(t.TempDir(), "sites")
				j := siteJob{sites: 2, hosts: 1, gateways: 1, wan: wan, on: -1, flags: []string{"-routed", "yes", "-main", "0", "-dir", dir}}
				j.env = []string{fmt.Sprintf("%s=%s %s/sites bulk %d 1048576", envFlow, way, dir, mib)}
				out, err := j.run(t, siteJobTime, os.Args[0])
				var r patternResult
				if err == nil {
					err = lastResult(out, &r)
				}
				if err != nil {
					t.Errorf("%s, %s: %v", way, wan, err)
					continue
				}
				bulk[way+wan] = append(bulk[way+wan], float64(mib<<20)*8/1e6/r.Seconds)
			}
		}
	}
	if t.Failed() {
		return
	}
	t.Logf("8 bytes one way on the loopback interface, medians of %d: %.1f µs through two gateways, %.1f µs direct; samples %.1f and %.1f",
		attempts, latency["relay"].Median(), latency["direct"].Median(), latency["relay"], latency["direct"])
	for _, wan := range []string{"1gbit 9ms", figureWAN} {
		g, d := bulk["relay"+wan], bulk["direct"+wan]
		t.Logf("%d MiB, %s, medians of %d: %.0f Mb/s through two gateways, %.0f Mb/s direct, ratio %.3f; samples %.0f and %.0f",
			mib, wan, attempts, g.Median(), d.Median(), g.Median()/d.Median(), g, d)
	}
}
