package specnotes

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sentences gives, for each RFC whose page lists its sentences with MUST, SHALL,
// REQUIRED, SHOULD and RECOMMENDED, how many there are.
var sentences = map[string]int{
	"3758": 54,
	"4820": 9,
	"4895": 58,
	"5040": 143,
	"5041": 122,
	"5042": 34,
	"5043": 46,
	"5044": 108,
	"5061": 108,
	"6525": 100,
	"6581": 47,
	"6951": 20,
	"7306": 61,
	"7496": 3,
	"7829": 35,
	"8260": 31,
	"8312": 9,
	"8899": 62,
	"8985": 25,
	"9260": 495,
}

var (
	sentenceRow = regexp.MustCompile(`^\| ([\dA-Z.]+) #(\d+) \| (.+) \| (.*) \|$`)
	scriptName  = regexp.MustCompile(`^(\d{4}/[\d.A-Z]+-\d+)$`)
	scriptHead  = regexp.MustCompile(`(?m)^== (\S+)`)
)

// none begins the cell of a sentence that no test is about; the reason follows.
const none = "none: "

// scripts returns the names of the conformance scripts.
func scripts(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "sctp/internal/core/conformance/testdata/*.sctp"))
	if err != nil || len(files) == 0 {
		t.Fatal("no conformance scripts: ", err)
	}
	names := make(map[string]bool)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range scriptHead.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
	}
	return names
}

// sentence is a row of the second table of a page.
type sentence struct {
	line    int
	section string
	number  int
	checks  []string // scripts and tests
	reason  string   // why there are none
}

// sentences returns the rows of the table of sentences.
func (p page) sentences(t *testing.T) []sentence {
	t.Helper()
	var all []sentence
	for _, r := range p.rows(4) {
		m := sentenceRow.FindStringSubmatch(r.text)
		if m == nil {
			t.Errorf("%s:%d: not a section with a number, a sentence and what checks it: %s", p.name, r.line, r.text)
			continue
		}
		s := sentence{line: r.line, section: m[1]}
		s.number, _ = strconv.Atoi(m[2])
		if reason, ok := strings.CutPrefix(m[4], none); ok {
			s.reason = reason
		} else {
			for _, c := range quoted.FindAllStringSubmatch(m[4], -1) {
				s.checks = append(s.checks, c[1])
			}
		}
		all = append(all, s)
	}
	return all
}

// TestEverySentenceHasItsTest checks the tables of sentences: numbered within
// their section without holes, as many as the RFC has, each with scripts and tests
// that exist, or with a reason why there is none.
func TestEverySentenceHasItsTest(t *testing.T) {
	known, names := scripts(t), tests(t)
	for _, p := range pages(t) {
		section, n := "", 0
		all := p.sentences(t)
		for _, s := range all {
			if s.section != section {
				section, n = s.section, 0
			}
			if n++; s.number != n {
				t.Errorf("%s:%d: sentence %d of section %s comes where %d should", p.name, s.line, s.number, section, n)
			}
			if len(s.checks) == 0 && len(s.reason) < 10 {
				t.Errorf("%s:%d: nothing checks section %s #%d, and no reason says why", p.name, s.line, section, n)
			}
			for _, c := range s.checks {
				name, _, _ := strings.Cut(c, "/")
				if !names[name] && !(scriptName.MatchString(c) && known[c]) {
					t.Errorf("%s:%d: no test or script %s", p.name, s.line, c)
				}
			}
		}
		if len(all) != sentences[p.rfc] {
			t.Errorf("%s: %d sentences, want %d", p.name, len(all), sentences[p.rfc])
		}
	}
}
