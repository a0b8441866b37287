package specnotes

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// page is docs/spec/rfcNNNN.md.
type page struct {
	name  string // path below root
	rfc   string
	title string
	lines []string
}

var pageTitle = regexp.MustCompile(`^# RFC (\d+): (.+)$`)

// pages returns the pages of all RFCs, by number.
func pages(t *testing.T) []page {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs/spec/*.md"))
	if err != nil || len(files) == 0 {
		t.Fatal("no pages in docs/spec: ", err)
	}
	var all []page
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		p := page{name: "docs/spec/" + filepath.Base(f), lines: strings.Split(string(text), "\n")}
		m := pageTitle.FindStringSubmatch(p.lines[0])
		if m == nil || p.name != "docs/spec/rfc"+m[1]+".md" {
			t.Errorf("%s begins with %q, want number and title of its RFC", p.name, p.lines[0])
			continue
		}
		p.rfc, p.title = m[1], m[2]
		all = append(all, p)
	}
	return all
}

// row is a line of a table.
type row struct {
	line int // number
	text string
}

// rows returns the rows of the tables whose lines have so many bars.
func (p page) rows(bars int) []row {
	var all []row
	for i, l := range p.lines {
		if strings.HasPrefix(l, "|") && !strings.HasPrefix(l, "|---") && !strings.HasPrefix(l, "| Section ") && strings.Count(l, "|") == bars {
			all = append(all, row{i + 1, l})
		}
	}
	return all
}

// requirement is a row of the first table of a page.
type requirement struct {
	line                                   int
	section, asks, files, tests, deviation string
}

// requirements returns the rows of the table of requirements, and checks that the
// page has rows of no other shape.
func (p page) requirements(t *testing.T) []requirement {
	t.Helper()
	for i, l := range p.lines {
		if n := strings.Count(l, "|"); strings.HasPrefix(l, "|") && n != 4 && n != 6 {
			t.Errorf("%s:%d: a row has three cells or five: %s", p.name, i+1, l)
		}
	}
	var all []requirement
	for _, r := range p.rows(6) {
		c := strings.Split(r.text, "|")
		for i := range c {
			c[i] = strings.TrimSpace(c[i])
		}
		all = append(all, requirement{r.line, c[1], c[2], c[3], c[4], c[5]})
	}
	return all
}
