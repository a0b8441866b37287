package doccheck

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the index of docs/decisions")

var decisionTitle = regexp.MustCompile(`^# (?:(?:Decision )?\d+[:.]? )?(.+)`)

// TestDecisionsAreListed checks that the index of docs/decisions has each record,
// by its title. With -update it writes the index.
func TestDecisionsAreListed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "decisions", "[0-9]*.md"))
	if err != nil || len(files) == 0 {
		t.Fatal("no decisions: ", err)
	}
	var rows strings.Builder
	for _, f := range files {
		name := filepath.Base(f)
		m := decisionTitle.FindStringSubmatch(read(t, "docs/decisions/"+name))
		if m == nil {
			t.Errorf("docs/decisions/%s does not begin with a title", name)
			continue
		}
		fmt.Fprintf(&rows, "| %s | [%s](%s) |\n", name[:3], strings.ToUpper(m[1][:1])+m[1][1:], name)
	}
	const index, head = "docs/decisions/README.md", "| | Decision |\n|---|---|\n"
	page := read(t, index)
	text, got, ok := strings.Cut(page, head)
	if !ok {
		t.Fatalf("%s has no table", index)
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(index)), []byte(text+head+rows.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != rows.String() {
		t.Errorf("%s does not list the records with their titles: go test ./internal/doccheck -run TestDecisionsAreListed -update", index)
	}
}
