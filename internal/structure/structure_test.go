package main

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

const root = "../.."

// TestRoomsStayDivided compares the module with the table in the last section of
// docs/architecture.md. A number that exceeds the table fails; so does a table that
// the program would not print.
func TestRoomsStayDivided(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the numbers are of a build for Linux on amd64, which would first have to be compiled here")
	}
	page, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(document)))
	if err != nil {
		t.Fatal(err)
	}
	measured, err := measure(root)
	if err != nil {
		t.Fatal(err)
	}
	before, now := parse(string(page))
	t.Logf("measured:\n%s", format(before, measured))
	if len(now) != len(figures) {
		t.Fatalf("%s: the table has %d rows, want %d: go run ./internal/structure -write", document, len(now), len(figures))
	}
	for _, f := range figures {
		written := now[f.label]
		if len(written) != len(measured) || len(before[f.label]) != len(measured) {
			t.Errorf("%s: no row %q for each room", document, f.label)
			continue
		}
		for i, got := range f.values(measured) {
			switch want := max(written[i], f.floor); {
			case f.kind == ceiling && got > want+f.slack:
				t.Errorf("%s: %s: %d, at most %d: divide it, or give a reason and raise the number by go run ./internal/structure -write",
					measured[i].name, f.label, got, want)
			case f.stale(got, want):
				t.Logf("%s: %s: %d, and %d in %s: go run ./internal/structure -write", measured[i].name, f.label, got, want, document)
			}
		}
	}
}

func TestFormatAndParse(t *testing.T) {
	rooms := []room{
		{name: "mpi", files: 10, lines: 2000, packages: 3, largestPackage: 900, longestFile: 400, component: 4},
		{name: "core", files: 7, lines: 700, packages: 1, largestPackage: 700, longestFile: 200, component: 7, assocMethods: 30},
	}
	page := "# Title\n\ntext\n\n" + format(nil, rooms) + "\nmore\n"
	before, now := parse(page)
	for _, f := range figures {
		if want := f.values(rooms); !slices.Equal(now[f.label], want) || !slices.Equal(before[f.label], want) {
			t.Errorf("%s: parsed %v before and %v now, want %v", f.label, before[f.label], now[f.label], want)
		}
	}
	rooms[0].files = 11
	page, err := replace(page, format(before, rooms))
	if err != nil {
		t.Fatal(err)
	}
	again, now := parse(page)
	if !maps.EqualFunc(before, again, slices.Equal) {
		t.Errorf("the numbers from before changed: %v, want %v", again, before)
	}
	if now["Files"][0] != 11 {
		t.Errorf("files now = %d, want 11", now["Files"][0])
	}
}

func TestLargestComponent(t *testing.T) {
	for _, tt := range []struct {
		name  string
		edges map[string][]string
		want  int
	}{
		{"none", nil, 1},
		{"chain", map[string][]string{"a": {"b"}, "b": {"c"}}, 1},
		{"circle", map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}, 3},
		{"two circles", map[string][]string{"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"e"}, "e": {"c"}}, 3},
		{"joined", map[string][]string{"a": {"b", "c"}, "b": {"a"}, "c": {"d"}, "d": {"a"}}, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := largest(tt.edges); got != tt.want {
				t.Errorf("largest = %d, want %d", got, tt.want)
			}
		})
	}
}
