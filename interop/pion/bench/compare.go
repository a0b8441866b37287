package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// pair has the medians of the runs with weft and with pion.
type pair struct {
	Conn   string      `json:"conn"`
	Rounds int         `json:"rounds"`
	Weft   result      `json:"weft"`
	Pion   result      `json:"pion"`
	Runs   [2][]result `json:"runs"` // with weft, with pion
}

// compare builds the program with weft and with pion, and runs both by turns.
func (o *options) compare() ([]pair, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	programs := [2]string{filepath.Join(dir, "weft.exe"), filepath.Join(dir, "pion.exe")}
	for i, mod := range []string{"go.mod", "pion.mod"} {
		cmd := exec.Command("go", "build", "-mod=mod", "-modfile="+mod, "-o", programs[i], ".")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%v: %w: %s", cmd.Args, err, out)
		}
	}
	var pairs []pair
	for _, kind := range o.kinds {
		p := pair{Conn: kind, Rounds: o.rounds}
		for round := range o.rounds {
			for turn := range 2 {
				i := (turn + round) % 2
				r, err := o.run(programs[i], kind)
				if err != nil {
					return nil, fmt.Errorf("round %d of %s: %w", round+1, kind, err)
				}
				if want := [2]string{"weft", "pion"}[i]; r.Below != want {
					return nil, fmt.Errorf("the program says that %s is below, want %s", r.Below, want)
				}
				fmt.Fprintf(os.Stderr, "%s round %d: %s\n", kind, round+1, r)
				p.Runs[i] = append(p.Runs[i], r)
			}
		}
		p.Weft, p.Pion = median(p.Runs[0]), median(p.Runs[1])
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// run has a program measure a kind of connection.
func (o *options) run(program, kind string) (r result, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*o.time+3*openTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-conn", kind, "-json", "-time", o.time.String(),
		"-size", strconv.Itoa(o.size), "-window", strconv.Itoa(o.window), "-receive", strconv.Itoa(o.receive),
		"-loss", strconv.FormatFloat(o.link.loss*100, 'g', -1, 64)+"%", "-delay", o.link.delay.String(), "-echo="+strconv.FormatBool(o.echo))
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("%v: %w", cmd.Args, err)
	}
	var rs []result
	if err := json.Unmarshal(out, &rs); err != nil || len(rs) != 1 {
		return r, fmt.Errorf("%v: %d results, %v", cmd.Args, len(rs), err)
	}
	return rs[0], nil
}

// median returns the medians of each figure.
func median(rs []result) result {
	m := rs[0]
	of := func(get func(result) float64) float64 {
		var v []float64
		for _, r := range rs {
			v = append(v, get(r))
		}
		slices.Sort(v)
		if n := len(v); n%2 == 0 {
			return (v[n/2-1] + v[n/2]) / 2
		}
		return v[len(v)/2]
	}
	m.Mbps = of(func(r result) float64 { return r.Mbps })
	m.AllocsPerMB = of(func(r result) float64 { return r.AllocsPerMB })
	m.KBPerMB = of(func(r result) float64 { return r.KBPerMB })
	m.Echoes = int(of(func(r result) float64 { return float64(r.Echoes) }))
	m.EchoP50 = of(func(r result) float64 { return r.EchoP50 })
	m.EchoP99 = of(func(r result) float64 { return r.EchoP99 })
	m.AllocsPerOne = of(func(r result) float64 { return r.AllocsPerOne })
	return m
}
