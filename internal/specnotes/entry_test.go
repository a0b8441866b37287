package specnotes

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of SPEC_NOTES.md anew from docs/spec")

// entryHeading begins the part of SPEC_NOTES.md that is made from docs/spec.
const entryHeading = "## RFCs\n"

// entry returns that part: what there is for each RFC, and all deviations.
func entry(t *testing.T) string {
	t.Helper()
	var b, deviations strings.Builder
	b.WriteString(entryHeading + "\n| RFC | Title | Requirements | Deviations | Sentences | Without a test |\n|---|---|---:|---:|---:|---:|\n")
	var sum [4]int
	for _, p := range pages(t) {
		link := strings.TrimPrefix(p.name, "docs/")
		requirements := p.requirements(t)
		deviating := 0
		for _, r := range requirements {
			if r.deviation == "" {
				continue
			}
			if deviating++; deviating == 1 {
				fmt.Fprintf(&deviations, "\n### [RFC %s](docs/%s): %s\n\n| Section | What it asks | What weft does |\n|---|---|---|\n", p.rfc, link, p.title)
			}
			fmt.Fprintf(&deviations, "| %s | %s | %s |\n", r.section, r.asks, r.deviation)
		}
		all, untested := p.sentences(t), 0
		for _, s := range all {
			if s.reason != "" {
				untested++
			}
		}
		counts := [4]int{len(requirements), deviating, len(all), untested}
		fmt.Fprintf(&b, "| [%s](docs/%s) | %s |", p.rfc, link, p.title)
		for i, n := range counts {
			sum[i] += n
			fmt.Fprintf(&b, " %d |", n)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "| | All | %d | %d | %d | %d |\n\n## Deviations and choices\n", sum[0], sum[1], sum[2], sum[3])
	return b.String() + deviations.String()
}

// TestEntryPage checks that SPEC_NOTES.md links the page of each RFC, with its
// counts, and has all deviations. With -update it writes them there.
func TestEntryPage(t *testing.T) {
	name := filepath.Join(root, "SPEC_NOTES.md")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, got, ok := strings.Cut(string(text), entryHeading)
	if !ok {
		t.Fatalf("SPEC_NOTES.md has no heading %q", entryHeading)
	}
	got, want := entryHeading+got, entry(t)
	if *update {
		if err := os.WriteFile(name, []byte(head+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got == want {
		return
	}
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			t.Fatalf("SPEC_NOTES.md is not what docs/spec says, from line %d on: go test ./internal/specnotes -run TestEntryPage -update",
				strings.Count(head, "\n")+i+1)
		}
	}
}
