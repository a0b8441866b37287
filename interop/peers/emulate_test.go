package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
)

func TestLossExperimentHasARowPerTransport(t *testing.T) {
	testenv.Networks(t)
	var b bytes.Buffer
	s := &settings{seeds: 1, scale: 0.002, losses: "1%", delay: "25us", only: "weft sctp,weft tcp/cubic,Open MPI tcp/cubic"}
	if err := runLoss(t.Context(), s, built(t), &b); err != nil {
		t.Fatal(err)
	}
	rows := func(name string) {
		t.Helper()
		if n := strings.Count(b.String(), "\n| "+name+" | "); n != len(workloads(1)) || strings.Contains(b.String(), "Failed: ") {
			t.Errorf("%d rows of %s, want %d:\n%s", n, name, len(workloads(1)), b.String())
		}
	}
	rows("weft sctp")
	for _, m := range []string{"TCP cubic: ", "Open MPI: "} {
		if _, why, ok := strings.Cut(b.String(), "Not measured: "+m); ok {
			testenv.Lacking(t, "%s%.300s", m, why)
		}
	}
	rows("weft tcp/cubic")
	rows("Open MPI tcp/cubic")
}

func TestPathExperimentsHaveResults(t *testing.T) {
	testenv.Networks(t)
	tl := built(t)
	s := &settings{seeds: 1, time: 10 * time.Millisecond}
	var b bytes.Buffer
	if err := runBulk(t.Context(), s, tl, &b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "| 50 ms | 1% |") || strings.Contains(b.String(), "Failed: ") {
		t.Error(b.String())
	}
	if len(congestionControls("cubic")) == 0 {
		testenv.Lacking(t, "this kernel's TCP has no cubic")
	}
	b.Reset()
	if err := runFair(t.Context(), s, tl, &b); err != nil {
		t.Fatal(err)
	}
	if strings.Count(b.String(), "| weft sctp, TCP cubic |") != 2 || strings.Contains(b.String(), "Failed: ") {
		t.Error(b.String())
	}
}

func TestPathExperimentsMeasureWhatIsAskedFor(t *testing.T) {
	s := &settings{only: "weft sctp over IP,TCP cubic"}
	flows, _ := pathFlows(s)
	for _, f := range flows {
		if f.name() != "weft sctp over IP" && f.name() != "TCP cubic" {
			t.Errorf("measured: %s", f.name())
		}
	}
	if len(flows) == 0 || !flows[0].ip {
		t.Errorf("flows %+v", flows)
	}
	s = &settings{only: "no such"}
	if err := runBulk(t.Context(), s, nil, nil); err == nil {
		t.Error("bulk of nothing")
	}
	if err := runFair(t.Context(), s, nil, nil); err == nil {
		t.Error("fair of nothing")
	}
}

func TestParseFlowsWantsAllResults(t *testing.T) {
	const one = `{"mode":"sctp","gbps":0.5,"retransmissions":3}` + "\n"
	all, err := parseFlows("serving at x\n"+one+one, 2)
	if err != nil || all[1].Gbps != 0.5 || all[0].Mode != "sctp" || all[0].Retransmits != 3 {
		t.Errorf("%+v, %v", all, err)
	}
	for _, out := range []string{"", one, "{oops\n" + one} {
		if _, err := parseFlows(out, 2); err == nil {
			t.Errorf("%q was taken for two results", out)
		}
	}
}

func TestWorkScales(t *testing.T) {
	for _, w := range workloads(0.0001) {
		if w.count != 1 {
			t.Errorf("%s: %d, want 1", w.name, w.count)
		}
	}
	if w := workloads(1)[2]; w.count != 3000 || !strings.Contains(w.what(), "3000 tasks on 4 hosts") {
		t.Errorf("the farm: %q", w.what())
	}
}
