package specnotes

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sentences says, of every RFC of which SPEC_NOTES.md lists the sentences with
// MUST, SHALL, REQUIRED, SHOULD and RECOMMENDED, how many there are.
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

// TestEverySentenceHasItsTest checks the tables of sentences: numbered within
// their section without holes, as many as the RFC has, each with scripts and tests
// that exist, or with a reason why there is none.
func TestEverySentenceHasItsTest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "SPEC_NOTES.md"))
	if err != nil {
		t.Fatal(err)
	}
	known, names := scripts(t), tests(t)
	rfc, section, n := "", "", 0
	count := map[string]int{}
	for i, line := range strings.Split(string(text), "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			rfc, section = m[1], ""
		}
		if !strings.HasPrefix(line, "|") || strings.Count(line, "|") != 4 || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| Section ") {
			continue
		}
		m := sentenceRow.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("line %d: not a section with a number, a sentence and what checks it: %s", i+1, line)
			continue
		}
		if m[1] != section {
			section, n = m[1], 0
		}
		n++
		if got, _ := strconv.Atoi(m[2]); got != n {
			t.Errorf("line %d: sentence %s of section %s comes where %d should", i+1, m[2], section, n)
		}
		count[rfc]++
		if reason, ok := strings.CutPrefix(m[4], none); ok {
			if len(reason) < 10 {
				t.Errorf("line %d: no reason", i+1)
			}
			continue
		}
		checks := quoted.FindAllStringSubmatch(m[4], -1)
		if len(checks) == 0 {
			t.Errorf("line %d: nothing checks RFC %s, section %s #%d, and no reason says why", i+1, rfc, section, n)
		}
		for _, c := range checks {
			name, _, _ := strings.Cut(c[1], "/")
			if !names[name] && !(scriptName.MatchString(c[1]) && known[c[1]]) {
				t.Errorf("line %d: no test or script %s", i+1, c[1])
			}
		}
	}
	for rfc, want := range sentences {
		if count[rfc] != want {
			t.Errorf("RFC %s: %d sentences, want %d", rfc, count[rfc], want)
		}
	}
	for rfc, n := range count {
		if _, ok := sentences[rfc]; !ok {
			t.Errorf("RFC %s has %d sentences here, and no number to compare with", rfc, n)
		}
		t.Logf("RFC %s: %d sentences", rfc, n)
	}
}
