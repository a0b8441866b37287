package conformance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notes is the directory of the pages about RFCs, rfcNNNN.md.
const notes = "../../../../docs/spec"

var update = flag.Bool("update", false, "write the numbers of the scripts to docs/spec")

// checkWords begin the lines that can make a script fail.
var checkWords = []string{"<", "state", "drop", "event", "noevent", "recv", "norecv", "path", "paths", "stat", "streams",
	"released", "timer", "noassoc", "await", "adaptation", "supports"}

// TestScriptsAreWhole checks that every script has a name of its own, numbers
// without holes, a quotation, and something that can fail.
func TestScriptsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	last := map[string]int{}
	for _, s := range load(t) {
		section, n := s.split()
		if seen[s.id] || n != last[section]+1 {
			t.Errorf("%s: %s comes after number %d", s.file, s.id, last[section])
		}
		seen[s.id], last[section] = true, n
		if len(s.quote) < 20 {
			t.Errorf("%s: %s quotes nothing", s.file, s.id)
		}
		fails := false
		for _, l := range s.lines {
			word := strings.Fields(l.text)[0]
			fails = fails || slices.Contains(checkWords, word) || l.text[0] == '>' || strings.Contains(l.text, " fails ")
		}
		if !fails {
			t.Errorf("%s: %s checks nothing", s.file, s.id)
		}
	}
}

// sections returns the number of scripts of every section, in the order in which
// they appear.
func sections(scripts []*script) (order []string, count map[string]int) {
	count = map[string]int{}
	for _, s := range scripts {
		section, _ := s.split()
		if count[section]++; count[section] == 1 {
			order = append(order, section)
		}
	}
	slices.SortStableFunc(order, compareSections)
	return order, count
}

// compareSections compares names like 9260/6.10 number by number.
func compareSections(a, b string) int {
	x, y := strings.FieldsFunc(a, notDigit), strings.FieldsFunc(b, notDigit)
	for i := range min(len(x), len(y)) {
		if d := len(x[i]) - len(y[i]); d != 0 {
			return d
		}
		if d := strings.Compare(x[i], y[i]); d != 0 {
			return d
		}
	}
	return len(x) - len(y)
}

func notDigit(r rune) bool { return r == '.' || r == '/' }

// TestCount prints how many scripts every section has.
func TestCount(t *testing.T) {
	scripts := load(t)
	order, count := sections(scripts)
	rfc, line, total := "", "", 0
	flush := func() {
		if rfc != "" {
			t.Logf("RFC %s: %d:%s", rfc, total, line)
		}
		line, total = "", 0
	}
	for _, s := range order {
		r, section, _ := strings.Cut(s, "/")
		if r != rfc {
			flush()
			rfc = r
		}
		line += fmt.Sprintf(" %s×%d", section, count[s])
		total += count[s]
	}
	flush()
	t.Logf("%d scripts in all", len(scripts))
}

var (
	pageName = regexp.MustCompile(`rfc(\d+)\.md$`)
	indexed  = regexp.MustCompile("`(\\d{4}/[\\d.A-Z]+)-1(?:\\.\\.(\\d+))?`")
)

const indexPrefix = "Conformance scripts: "

// indexLine returns what the page of an RFC says of the scripts about it.
func indexLine(rfc string, order []string, count map[string]int) string {
	var list []string
	for _, s := range order {
		if !strings.HasPrefix(s, rfc+"/") {
			continue
		}
		entry := s + "-1"
		if count[s] > 1 {
			entry += fmt.Sprintf("..%d", count[s])
		}
		list = append(list, "`"+entry+"`")
	}
	return indexPrefix + strings.Join(list, ", ") + "."
}

// TestIndex checks that docs/spec names every script on the page of its RFC, and no
// other. With -update it writes them there.
func TestIndex(t *testing.T) {
	order, count := sections(load(t))
	pages, err := filepath.Glob(filepath.Join(notes, "rfc*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages in docs/spec: ", err)
	}
	found := map[string]int{}
	for _, page := range pages {
		rfc := pageName.FindStringSubmatch(page)[1]
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			text = writeIndex(text, rfc, order, count)
			if err := os.WriteFile(page, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for i, line := range strings.Split(string(text), "\n") {
			if !strings.HasPrefix(line, indexPrefix) {
				continue
			}
			for _, m := range indexed.FindAllStringSubmatch(line, -1) {
				n := 1
				if m[2] != "" {
					fmt.Sscan(m[2], &n)
				}
				found[m[1]] += n
				if !strings.HasPrefix(m[1], rfc+"/") || count[m[1]] == 0 {
					t.Errorf("%s:%d: %s: there are %d such scripts", page, i+1, m[0], count[m[1]])
				}
			}
		}
	}
	for _, s := range order {
		if found[s] != count[s] {
			t.Errorf("%s: %d scripts, %d in docs/spec", s, count[s], found[s])
		}
	}
}

// writeIndex returns the page of an RFC with its index at the end.
func writeIndex(page []byte, rfc string, order []string, count map[string]int) []byte {
	var out []string
	for _, line := range strings.Split(string(page), "\n") {
		if !strings.HasPrefix(line, indexPrefix) {
			out = append(out, line)
		}
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	if slices.ContainsFunc(order, func(s string) bool { return strings.HasPrefix(s, rfc+"/") }) {
		out = append(out, "", indexLine(rfc, order, count))
	}
	return []byte(strings.Join(out, "\n") + "\n")
}
