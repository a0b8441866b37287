package launch

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/affinity"
	"github.com/weftstack/weft/internal/cli"
)

func TestBindPlaces(t *testing.T) {
	// Processors n and n+4 are one core, and nothing is known of those from 8 on.
	siblings := func(cpu int) []int {
		if cpu >= 8 {
			return nil
		}
		return []int{cpu % 4, cpu%4 + 4}
	}
	for _, tt := range []struct {
		kind    string
		n       int
		allowed []int
		want    [][]int
		err     string
	}{
		{"none", 9, []int{0}, nil, ""},
		{"core", 3, []int{0, 1, 2, 3, 4, 5, 6, 7}, [][]int{{0, 4}, {1, 5}, {2, 6}}, ""},
		{"core", 3, []int{1, 4, 5, 8}, [][]int{{1, 5}, {4}, {8}}, ""},
		{"core", 4, []int{1, 4, 5, 8}, nil, "3 available for 4 ranks"},
		{"hwthread", 2, []int{1, 5}, [][]int{{1}, {5}}, ""},
		{"hwthread", 3, []int{1, 5}, nil, "2 available for 3 ranks"},
		{"core", 1, nil, nil, "unsupported"},
	} {
		got, err := bindPlaces(tt.kind, tt.n, tt.allowed, siblings)
		if !reflect.DeepEqual(got, tt.want) || !strings.Contains(fmt.Sprint(err), tt.err) || (err == nil) != (tt.err == "") {
			t.Errorf("%s, %d ranks on %v: %v, %v; want %v, %q", tt.kind, tt.n, tt.allowed, got, err, tt.want, tt.err)
		}
	}
}

func TestParseCPUs(t *testing.T) {
	for s, want := range map[string][]int{
		"0\n": {0}, "0-3,8": {0, 1, 2, 3, 8}, "5,2-2": {5, 2}, "": nil, "-1": nil, "3-": nil, "x": nil, "0-99999999999": nil, "7-5": nil,
	} {
		if got := parseCPUs(s); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

func TestStartOn(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	was := affinity.Allowed()
	failed := errors.New("not started")
	if err := startOn(nil, func() error { return failed }); err != failed {
		t.Errorf("not bound: %v", err)
	}
	if err := startOn([]int{1 << 20}, func() error { return nil }); err == nil {
		t.Error("started on a processor that is not there")
	}
	if was != nil {
		last := was[len(was)-1:]
		err := startOn(last, func() error {
			if on := affinity.Allowed(); !slices.Equal(on, last) {
				t.Errorf("started on %v, want %v", on, last)
			}
			return failed
		})
		if err != failed {
			t.Errorf("error %v, want that of start", err)
		}
	}
	if on := affinity.Allowed(); !slices.Equal(on, was) {
		t.Errorf("after it on %v, before on %v", on, was)
	}
}

func TestRunBindsRanks(t *testing.T) {
	if _, errs, status := clitest.Weft(t, "", "run", "-bind-to", "board", os.Args[0], "hello"); status != cli.ExitUsage || !strings.Contains(errs, "want core") {
		t.Errorf("an unknown kind: status %d, %q", status, errs)
	}
	if runtime.GOOS != "linux" {
		if _, errs, status := clitest.Weft(t, "", "run", "-bind-to", "core", os.Args[0], "hello"); status != cli.ExitFail || !strings.Contains(errs, "unsupported") {
			t.Errorf("not on Linux: status %d, %q", status, errs)
		}
		return
	}
	if _, errs, status := clitest.Weft(t, "", "run", "-n", "1024", "-bind-to", "core", os.Args[0], "hello"); runtime.NumCPU() < 1024 &&
		(status != cli.ExitFail || !strings.Contains(errs, "for 1024 ranks")) {
		t.Errorf("too many ranks: status %d, %q", status, errs)
	}
	if _, errs, status := clitest.Weft(t, "", "run", "-hosts", "localhost:1", "-bind-to", "core", os.Args[0], "hello"); status != cli.ExitUsage || !strings.Contains(errs, "this host") {
		t.Errorf("several hosts: status %d, %q", status, errs)
	}
	n := min(runtime.NumCPU(), 4)
	out, _, status := clitest.Weft(t, "", "run", "-n", fmt.Sprint(n), "-bind-to", "hwthread", os.Args[0], "processors")
	if status != 0 {
		t.Fatalf("status %d", status)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	if len(slices.Compact(lines)) != n || strings.ContainsAny(out, ",-") {
		t.Errorf("%d ranks are on\n%s", n, out)
	}
	// What is started later is not bound, nor is this process.
	out, _, _ = clitest.Weft(t, "", "run", "-n", "1", os.Args[0], "processors")
	if got := len(parseCPUs(out)); got != runtime.NumCPU() {
		t.Errorf("%d processors without -bind-to: %q", got, out)
	}
}
