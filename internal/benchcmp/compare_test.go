package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const before = `goos: linux
pkg: x
BenchmarkA/size=64-8   	 1000	 100 ns/op	 0 B/op	 0 allocs/op
BenchmarkA/size=64-8   	 1000	 110 ns/op	 0 B/op	 0 allocs/op
BenchmarkB-8   	 1000	 200 ns/op	 50.0 MB/s	 64 B/op	 20 allocs/op
BenchmarkGone-8   	 1000	 1 ns/op
`

func TestCompareFindsWhatIsWorse(t *testing.T) {
	for _, tt := range []struct {
		name, now string
		max       float64
		want      []string
	}{
		{"same", before, 1, nil},
		{"other processors", strings.ReplaceAll(before, "-8", "-2"), 1, nil},
		{"slower, not asked", "BenchmarkA/size=64-8 1 900 ns/op 0 B/op 0 allocs/op\n", 0, nil},
		{"slower", "BenchmarkA/size=64-8 1 210 ns/op 0 B/op 0 allocs/op\n", 20, []string{"BenchmarkA/size=64 takes 210 ns, 105 before: 100 % longer"}},
		{"two allocations", "BenchmarkA/size=64-8 1000 1 ns/op 8 B/op 2 allocs/op\n", 0, []string{"BenchmarkA/size=64 allocates 2 times"}},
		{"within slack", "BenchmarkB-8 1000 1 ns/op 8 B/op 23 allocs/op\n", 0, nil},
		{"more", "BenchmarkB-8 1000 1 ns/op 8 B/op 24 allocs/op\n", 0, []string{"BenchmarkB allocates 24 times"}},
		{"more by setting up", "BenchmarkB-8 100 1 ns/op 8 B/op 200 allocs/op\n", 0, nil},
		{"new", "BenchmarkNew-8 1 1 ns/op 8 B/op 23 allocs/op\n", 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			worse := compare([]byte(before), []byte(tt.now), tt.max)
			if len(worse) != len(tt.want) {
				t.Fatalf("worse: %v, want %q", worse, tt.want)
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(worse[i].Error(), want) {
					t.Errorf("worse: %q, want %q", worse[i], want)
				}
			}
		})
	}
}

func TestResultsAreKept(t *testing.T) {
	out := "goos: linux\nPASS\n--- BENCH: x\nBenchmarkA 1 2 ns/op\nok x 1s\ncpu: y\n"
	if got, want := string(results([]byte(out))), "goos: linux\nBenchmarkA 1 2 ns/op\ncpu: y\n"; got != want {
		t.Errorf("kept %q, want %q", got, want)
	}
}

// Every suite has a baseline, and every benchmark in it exists still by name.
func TestBaselinesAreThere(t *testing.T) {
	for _, s := range suites {
		text, err := os.ReadFile(filepath.Join("..", "..", s.baseline()))
		if err != nil {
			t.Error(err)
			continue
		}
		files, _ := filepath.Glob(filepath.Join("..", "..", s.dir, "*_test.go"))
		var code strings.Builder
		for _, f := range files {
			b, _ := os.ReadFile(f)
			code.Write(b)
		}
		all := parse(text)
		if len(all) < 3 {
			t.Errorf("%s: only %d benchmarks", s.baseline(), len(all))
		}
		for name, m := range all {
			fn, _, _ := strings.Cut(name, "/")
			if !strings.Contains(code.String(), "func "+fn+"(") {
				t.Errorf("%s: %s is not in the package", s.baseline(), fn)
			}
			if len(m["ns/op"]) == 0 || len(m["allocs/op"]) == 0 {
				t.Errorf("%s: %s has %v", s.baseline(), name, m)
			}
		}
	}
}
