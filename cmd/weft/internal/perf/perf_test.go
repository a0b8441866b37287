package perf

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/testenv"
)

func TestPerfMeasuresEveryMode(t *testing.T) {
	for _, m := range modes {
		for _, flags := range [][]string{nil, {"-latency"}} {
			name := m.name
			if flags != nil {
				name += "/latency"
			}
			t.Run(name, func(t *testing.T) {
				res := runJSON(t, append([]string{"perf", "-size", "4096", m.name}, flags...)...)
				if m.name == "atomic" && res.Size != atomicSize {
					t.Errorf("atomic operations of %d bytes", res.Size)
				}
				if res.Mode != m.name || res.Bytes == 0 || res.MsgsPerS == 0 || res.Seconds < 0.045 {
					t.Errorf("result %+v", res)
				}
				if flags != nil && (res.Latency == nil || res.Latency.P50 <= 0 || res.Latency.Max < res.Latency.P50) {
					t.Errorf("latency %+v", res.Latency)
				}
			})
		}
	}
}

func TestPerfOptions(t *testing.T) {
	for i, args := range [][]string{
		{"sctp", "-bidir"}, {"tcp", "-bidir", "-assocs", "3"}, {"sctp", "-assocs", "4", "-streams", "8"}, {"sctp", "-mtu", "auto"},
		{"write", "-assocs", "3", "-window", "2"}, {"write", "-bidir"}, {"write", "-latency", "-busy-poll", "1ms"}, {"sctp", "-latency", "-busy-poll", "1ms"}, {"sctp", "-latency", "-busy-poll", "-1s"}, {"mpi", "-latency", "-busy-poll", "-1s"}, {"mpi", "-shared"}, {"mpi", "-shared", "-latency"},
		{"sctp", "-zero-checksum"}, {"sctp", "-interleave=false"}, {"write", "-zero-checksum"}, {"sctp", "-zerocopy"}, {"sctp", "-zerocopy", "-bidir", "-assocs", "2"},
		{"write", "-tcp"}, {"send", "-tcp", "-assocs", "2"}, {"read", "-tcp", "-latency"}, {"atomic", "-tcp"},
		{"udp", "-gso=false"}, {"udp", "-mtu", "9000"}, {"udp", "-latency", "-busy-poll", "1ms"},
	} {
		if testenv.Race && i%4 != 0 {
			continue // programs with the race detector take seconds to begin
		}
		if testenv.Race && args[0] == "write" && slices.Contains(args, "-busy-poll") {
			continue // looks at memory while it is written, as RDMA programs do
		}
		if res := runJSON(t, append([]string{"perf"}, args...)...); res.Bytes == 0 {
			t.Errorf("weft perf %q: nothing arrived", args)
		}
	}
}

func TestPerfTimeByDefault(t *testing.T) {
	for _, tt := range []struct {
		mode string
		args []string
		want time.Duration
	}{
		{"tcp", nil, defaultTime}, {"compare", nil, compareTime}, {"tcp", []string{"-time", "1s"}, time.Second},
		{"compare", []string{"-time", "2s"}, 2 * time.Second}, {"tcp", []string{"-time", "0"}, 0}, // to be refused
	} {
		var o options
		fs := newFlags(&o)
		if err := fs.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		o.Mode = tt.mode
		if o.defaultTime(fs); o.time != tt.want {
			t.Errorf("%s %v takes %v, want %v", tt.mode, tt.args, o.time, tt.want)
		}
	}
}

// TestPerfCompare has every cell of the comparison, with the ratios that it is to
// have.
func TestPerfCompare(t *testing.T) {
	if testenv.Race {
		t.Skip("looks at memory while it is written, as RDMA programs do")
	}
	cells := matrix(&options{})
	for d := 20 * time.Millisecond; ; d *= 10 { // while a machine with other things to do measures nothing
		out, errs, status := clitest.Weft(t, "", "perf", "compare", "-json", "-rounds", "1", "-time", d.String(), "-warmup", "10ms")
		var rows []comparedRow
		if err := json.Unmarshal([]byte(out), &rows); err != nil || status != 0 {
			t.Fatalf("status %d, %v: %s", status, err, errs)
		}
		if len(rows) != len(cells) {
			t.Fatalf("%d rows, want %d", len(rows), len(cells))
		}
		lacks := -1
		for i, r := range rows {
			if r.Name != cells[i].Name || r.Min > r.Max {
				t.Fatalf("row %d: %+v", i, r)
			}
			if r.Min == 0 || len(r.Ratios) != len(cells[i].base) {
				lacks = i
			}
		}
		switch {
		case lacks < 0:
			return
		case d > time.Second:
			t.Fatalf("row %d: %+v", lacks, rows[lacks])
		}
	}
}

// TestPerfCompareFewMessages: only long messages of MPI are limited, and only in number.
func TestPerfCompareFewMessages(t *testing.T) {
	for window, want := range map[int]int{2: 2, fewMessages + 1: fewMessages} {
		for _, c := range matrix(&options{spec: spec{Window: window}}) {
			long := c.spec.Mode == "mpi" && c.spec.Size == 1<<20
			if got := c.spec.Window; long && got != want || !long && !c.spec.Latency && got != window {
				t.Errorf("-window %d: %s has %d under way", window, c.Name, got)
			}
		}
	}
}

// TestPerfProfilesWhatItMeasures: in mode mpi that is rank 0, not its launcher.
func TestPerfProfilesWhatItMeasures(t *testing.T) {
	for mode, function := range map[string]string{"sctp": ".(*sctpEnd).send", "mpi": ".mpiLoad"} {
		name := filepath.Join(t.TempDir(), mode)
		found := false
		runUntil(t, 100*time.Millisecond, func(*result) bool {
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			z, err := gzip.NewReader(f)
			if err != nil {
				t.Fatal(err)
			}
			profile, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			found = bytes.Contains(profile, []byte(function))
			return found
		}, "perf", mode, "-cpuprofile", name)
		if !found {
			t.Errorf("mode %s: no %s in the profile", mode, function)
		}
	}
}

// runJSON runs weft perf with a short time, and with longer ones while nothing
// arrives in it because the machine has other things to do.
func runJSON(t *testing.T, args ...string) result {
	t.Helper()
	return runUntil(t, 50*time.Millisecond, func(res *result) bool { return res.Bytes > 0 }, args...)
}

// runUntil runs weft perf for d, and for longer while the result is not enough.
func runUntil(t *testing.T, d time.Duration, enough func(*result) bool, args ...string) (res result) {
	t.Helper()
	for ; d < 40*time.Second; d *= 5 {
		out, _, status := clitest.Weft(t, "", append(args, "-json", "-warmup", "10ms", "-time", d.String())...)
		res = result{}
		if err := json.Unmarshal([]byte(out), &res); err != nil || status != 0 {
			t.Fatalf("weft %q: status %d, %v", args, status, err)
		}
		if enough(&res) {
			break
		}
	}
	return res
}

// A pacer that fell behind may catch up with up to a second's messages.
func TestPerfKeepsTheRate(t *testing.T) {
	out, _, _ := clitest.Weft(t, "", "perf", "-json", "-time", "1s", "-rate", "10mbit", "-size", "10000", "tcp")
	var res result
	if err := json.Unmarshal([]byte(out), &res); err != nil || res.Gbps > 0.021 {
		t.Errorf("%.4f Gb/s of 0.01 offered, %v", res.Gbps, err)
	}
}

func TestPerfReportsIntervals(t *testing.T) {
	// An interval that ends late may be all there is.
	res := runUntil(t, 1100*time.Millisecond, func(res *result) bool { return len(res.Intervals) > 1 }, "perf", "-streams", "3", "sctp")
	if len(res.Intervals) < 2 || res.Streams != 3 {
		t.Fatalf("result %+v", res)
	}
	sum := uint64(0)
	for i, part := range res.Intervals {
		sum += part.Bytes
		if part.End <= part.Start || i > 0 && part.Start != res.Intervals[i-1].End {
			t.Errorf("interval %d: %+v", i, part)
		}
	}
	if sum != res.Bytes {
		t.Errorf("%d bytes in the intervals, %d in all", sum, res.Bytes)
	}
	out, _, _ := clitest.Weft(t, "", "perf", "-time", "1100ms", "-warmup", "10ms", "tcp")
	if lines := strings.Split(out, "\n"); len(lines) < 5 || !strings.HasPrefix(lines[0], "interval") || !strings.Contains(lines[1], "Gb/s") {
		t.Errorf("printed\n%s", out)
	}
}

func TestPerfTellsOfNoise(t *testing.T) {
	if r := (&result{OtherCPU: 0.9}); !strings.Contains(r.noise(), "0.9 processors") {
		t.Errorf("0.9 processors of others: %q", r.noise())
	}
	for _, others := range []float64{-1, 0, 0.2} {
		if r := (&result{OtherCPU: others}); r.noise() != "" {
			t.Errorf("%v processors of others: %q", others, r.noise())
		}
	}
}

func TestPerfCountsTrips(t *testing.T) {
	for _, args := range [][]string{{"tcp"}, {"mpi"}} {
		out, _, status := clitest.Weft(t, "", append([]string{"perf", "-json", "-latency", "-count", "7", "-warmup", "1ms", "-size", "100"}, args...)...)
		var res result
		if err := json.Unmarshal([]byte(out), &res); err != nil || status != 0 || res.Bytes != 7*2*100 {
			t.Errorf("weft perf %q: status %d, %v, %d bytes, want those of 7 round trips", args, status, err, res.Bytes)
		}
	}
}

func TestPerfIsARankUnderALauncher(t *testing.T) {
	if res := runJSON(t, "run", "-n", "2", os.Args[0], "perf", "mpi"); res.Mode != "mpi" || res.Bytes == 0 {
		t.Errorf("result %+v", res)
	}
}

func TestPerfWrongUseExitsWithTwo(t *testing.T) {
	for _, args := range [][]string{
		{}, {"pigeon"}, {"udp", "tcp"}, {"-size", "0", "udp"}, {"-size", "2GiB", "udp"}, {"-time", "-1s", "udp"}, {"-time", "0", "udp"}, {"-streams", "0", "sctp"},
		{"-assocs", "-1", "sctp"}, {"-mtu", "20", "sctp"}, {"-rate", "x", "tcp"}, {"-server", ":0", "udp"}, {"-window", "0", "write"}, {"-rounds", "0", "compare"},
		{"-tcp", "sctp"}, {"-a", "tcp"}, {"-n", "4", "write"}, {"-n", "10000001", "write"}, {"-D", "-1", "write"}, {"-a", "atomic"}, {"-a", "-s", "9", "write"},
		{"-format", "csv", "write"}, {"-lat", "-b", "-n", "9", "send"},
		{"-count", "5", "tcp"}, {"-count", "-1", "-latency", "tcp"},
		{"-bidir", "udp"}, {"-bidir", "mpi"}, {"-bidir", "-latency", "sctp"}, {"-assocs", "2", "udp"}, {"-assocs", "2", "mpi"}, {"-streams", "2", "tcp"},
		{"-R", "tcp"}, {"-R", "atomic"}, {"-R", "-b", "write"}, {"-R", "-D", "1", "write"}, {"-R", "-lat", "-q", "2", "send"}, {"-R", "-r", "2", "send"},
		{"-R", "-r", "32769", "send"}, {"-R", "-p", "0", "send"}, {"-R", "-p", "65536", "send"}, {"-R", "send", "host", "word"}, {"send", "host"},
		{"-R", "-busy-poll", "1ms", "write"}, {"-R", "-rate", "1gbit", "write"}, {"-R", "-connect", "x:1", "write"}, {"-p", "1", "-n", "9", "send"}, {"-r", "5", "-n", "9", "send"}, {"-p", "1", "send"},
		{"-busy-poll", "1ms", "tcp"}, {"-busy-poll", "-1ms", "tcp"}, {"-zero-checksum", "tcp"}, {"-zero-checksum", "write", "-tcp"}, {"-zero-checksum", "mpi"}, {"-interleave=false", "mpi"}, {"-interleave=maybe", "sctp"}, {"-zerocopy", "write"}, {"-shared", "sctp"}, {"-zerocopy", "-latency", "sctp"}, {"-rate", "1gbit", "mpi"}, {"-rate", "1gbit", "-latency", "sctp"},
	} {
		clitest.WantMisused(t, "weft perf", append([]string{"perf"}, args...)...)
	}
	if _, _, status := clitest.Weft(t, "", "perf", "-connect", "127.0.0.1:1", "tcp"); status != cli.ExitFail {
		t.Errorf("a server that is not there: status %d, want 1", status)
	}
}

func TestPerfServerSurvivesBadClients(t *testing.T) {
	for _, spec := range []spec{{}, {Mode: "tcp"}, {Mode: "pigeon", Size: 1}} {
		o := options{spec: spec, time: time.Second, rounds: 1}
		if o.check() == nil {
			t.Errorf("spec %+v was taken", spec)
		}
	}
}

func TestUDPDatagramsCarryAMessageOrFillAPacket(t *testing.T) {
	for _, tt := range []struct{ size, mtu, want int }{{64, 1500, 64}, {64 << 10, 1500, 1472}, {64, 0, 64}, {1 << 20, 0, 64000}} {
		s := spec{Size: tt.size, MTU: tt.mtu}
		if got := s.udpPayload(); got != tt.want {
			t.Errorf("%d bytes at MTU %d: datagrams of %d, want %d", tt.size, tt.mtu, got, tt.want)
		}
	}
}

func TestPerfInterleave(t *testing.T) {
	for _, plain := range []bool{false, true} {
		s := spec{Plain: plain}
		if got := s.sctpConfig().NoInterleaving; got != plain {
			t.Errorf("without interleaving %v: %v in the configuration", plain, got)
		}
	}
}

// SCTP without UDP carries data where the process may have raw sockets, and only
// mode sctp has it.
func TestPerfEncapsulate(t *testing.T) {
	if _, errs, status := clitest.Weft(t, "", "perf", "-encapsulate=false", "tcp"); status != cli.ExitUsage || !strings.Contains(errs, "-encapsulate requires mode sctp") {
		t.Errorf("mode tcp: status %d, %s", status, errs)
	}
	testenv.OwnNetwork(t)
	if res := runJSON(t, "perf", "-encapsulate=false", "sctp"); res.Bytes == 0 {
		t.Errorf("%+v", res)
	}
}
