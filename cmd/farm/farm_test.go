package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi"
)

// runFarm runs the farm with ranks that are goroutines and returns rank 0's
// result.
func runFarm(t *testing.T, ranks int, o options) *result {
	t.Helper()
	var res *result
	err := mpi.RunLocal(t.Context(), ranks, func(ctx context.Context, w *mpi.World) error {
		if w.Comm().Rank() != 0 {
			return work(ctx, w.Comm(), &o)
		}
		var err error
		res, err = lead(ctx, w.Comm(), &o)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestFarmOfAFile(t *testing.T) {
	data := bytes.Repeat([]byte("all work and no play "), 5000)
	name := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, ranks := range []int{1, 2, 5} {
		for _, task := range []int{1000, 30 << 10, len(data), 1 << 20} {
			t.Run(fmt.Sprintf("ranks=%d/task=%d", ranks, task), func(t *testing.T) {
				o := options{input: name, tags: 3, fanout: 2, outstanding: 4}
				o.task.Set(fmt.Sprint(task))
				res := runFarm(t, ranks, o)
				if !res.verified || res.bytes != int64(len(data)) || res.sha != sha256.Sum256(data) {
					t.Errorf("verified %t, %d bytes, sha256 %x", res.verified, res.bytes, res.sha)
				}
				if want := (len(data) + task - 1) / task; res.tasks != want {
					t.Errorf("%d tasks, want %d", res.tasks, want)
				}
				if res.hist['p'] != 5000 || res.hist['z'] != 0 {
					t.Errorf("'p' occurs %d times, 'z' %d; want 5000, 0", res.hist['p'], res.hist['z'])
				}
			})
		}
	}
}

func TestFarmOfSyntheticTasks(t *testing.T) {
	o := options{tasks: 57, seed: 3, tags: 10, fanout: 10, outstanding: 2}
	o.task.Set("4099")
	a, b := runFarm(t, 3, o), runFarm(t, 2, o)
	if !a.verified || !b.verified || a.sha != b.sha {
		t.Errorf("verified %t and %t, digests %x and %x", a.verified, b.verified, a.sha, b.sha)
	}
	o.seed = 4
	if c := runFarm(t, 2, o); c.sha == a.sha {
		t.Error("another seed gives the same data")
	}
}

func TestFarmOfAnEmptyFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(name, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	o := options{input: name, tags: 1, fanout: 1, outstanding: 1}
	o.task.Set("1KiB")
	if res := runFarm(t, 3, o); !res.verified || res.tasks != 0 {
		t.Errorf("verified %t, %d tasks; want true, 0", res.verified, res.tasks)
	}
}

func TestVerifyFindsAWrongDigest(t *testing.T) {
	src := &synthetic{n: 3, task: 100, seed: 1}
	o := &options{}
	o.task.Set("100")
	res := &result{tasks: 3, digests: make([][sha256.Size]byte, 3), done: make([]bool, 3)}
	if err := alone(src, o, res, newBar(3)); err != nil {
		t.Fatal(err)
	}
	if verify(src, o, res); !res.verified {
		t.Fatal("right digests are not verified")
	}
	res.digests[1][5] ^= 1
	if verify(src, o, res); res.verified {
		t.Error("a wrong digest is verified")
	}
	res.digests[1][5] ^= 1
	res.hist[7]++
	if verify(src, o, res); res.verified {
		t.Error("a wrong histogram is verified")
	}
}

func TestResultRoundTrip(t *testing.T) {
	d := compute([]byte("piece"))
	index, got, err := parseResult(appendResult(nil, 42, &d))
	if err != nil || index != 42 || got != d {
		t.Errorf("index %d, same %t, %v", index, got == d, err)
	}
	if _, _, err := parseResult(make([]byte, resultLen-1)); err == nil {
		t.Error("a short result is taken")
	}
}

func TestReport(t *testing.T) {
	o := options{input: "x", tags: 10, fanout: 1, table: filepath.Join(t.TempDir(), "table")}
	o.task.Set("10")
	res := &result{ranks: 4, tasks: 100, bytes: 1000, seconds: 0.5, verified: true, digests: make([][sha256.Size]byte, 100)}
	var out bytes.Buffer
	if err := report(&out, &o, res); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"verified: true", "ranks:    4", "92 more"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("summary lacks %q:\n%s", want, out.String())
		}
	}
	table, err := os.ReadFile(o.table)
	if err != nil || bytes.Count(table, []byte("\n")) < 100 {
		t.Errorf("table of %d bytes, %v", len(table), err)
	}
	out.Reset()
	o.json, o.table = true, ""
	if err := report(&out, &o, res); err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(out.Bytes(), &keys); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"ranks", "tasks", "bytes", "seconds", "verified", "sha256"} {
		if _, ok := keys[key]; !ok {
			t.Errorf("JSON lacks %q", key)
		}
	}
}

func TestOptionsRefused(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-input", "a", "-tasks", "1"}, {"-tasks", "-1"}, {"-tasks", "1", "-task", "0"}, {"-tasks", "1", "-task", "2GiB"},
		{"-tasks", "1", "-tags", "0"}, {"-tasks", "1", "-fanout", "0"}, {"-tasks", "1", "-outstanding", "0"}, {"-tasks", "1", "more"},
		{"-tasks", "1", "-pause", "-1s"},
	} {
		var o options
		fs := newFlags(&o)
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		if o.check(fs.NArg()) == nil {
			t.Errorf("farm %q was taken", args)
		}
	}
}
