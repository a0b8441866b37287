package doccheck

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

const glossary = "docs/glossary.md"

// exempt may have retired words: the list itself, and releases of the past.
var exempt = []string{glossary, "CHANGELOG.md"}

// read returns the text of a file of the module.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns the part of a page below a heading of the second level.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, text, ok := strings.Cut(page, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("no heading %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// identifier matches what is one word of a text, or one name of a program.
var identifier = regexp.MustCompile(`[A-Za-z][A-Za-z0-9_]*`)

// parts returns the words of an identifier, lower case, each between underscores:
// _drop_tail_ for dropTail, DropTail and drop_tail.
func parts(id string) string {
	var b strings.Builder
	b.WriteByte('_')
	r := []rune(id)
	for i, c := range r {
		if i > 0 && unicode.IsUpper(c) && (unicode.IsLower(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	b.WriteByte('_')
	return b.String()
}

// retired returns the words of the glossary's last table, as parts has them.
func retired(t *testing.T) []string {
	t.Helper()
	var words []string
	for _, line := range strings.Split(section(t, read(t, glossary), "Retired words"), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Word ") {
			continue
		}
		for _, w := range strings.Split(strings.Split(line, "|")[1], ",") {
			words = append(words, parts(strings.TrimSpace(w)))
		}
	}
	return words
}

// textFiles are the files that the words are looked for in.
var textFiles = []string{".go", ".s", ".md", ".lua", ".yml", ".sh", ".sctp", ".net"}

// TestRetiredWordsAreGone checks that no identifier, file name, comment or document
// has a word that the glossary lists as retired.
func TestRetiredWordsAreGone(t *testing.T) {
	words := retired(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		if d.IsDir() {
			if name != "." && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		if slices.Contains(exempt, name) || !slices.Contains(textFiles, filepath.Ext(name)) {
			return nil
		}
		find(name, words, func(id string) { t.Errorf("file name %s has the retired word %s", name, id) })
		for i, line := range strings.Split(read(t, name), "\n") {
			find(line, words, func(id string) { t.Errorf("%s:%d: retired word in %s, see %s", name, i+1, id, glossary) })
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// find calls found for each identifier of text that has one of words.
func find(text string, words []string, found func(id string)) {
	for _, id := range identifier.FindAllString(text, -1) {
		p := parts(id)
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(p, w) }) {
			found(id)
		}
	}
}

func TestParts(t *testing.T) {
	for id, want := range map[string]string{
		"dropTail": "_drop_tail_", "DropTail": "_drop_tail_", "drop_tail": "_drop_tail_", "alone": "_alone_",
		"RTOMax": "_rto_max_", "TestDropTail": "_test_drop_tail_",
	} {
		if got := parts(id); got != want {
			t.Errorf("parts(%q) = %q, want %q", id, got, want)
		}
	}
}

// TestGlossaryIsWhole checks that each term has a sentence, and outside weft's own
// words a source, and that terms are in alphabetical order and there once.
func TestGlossaryIsWhole(t *testing.T) {
	page := read(t, glossary)
	seen := make(map[string]bool)
	for _, heading := range []string{"SCTP", "Sockets and scheduling", "iWARP and verbs", "MPI", "weft's own"} {
		cells, last := 3, ""
		if heading == "weft's own" {
			cells = 2
		}
		for _, line := range strings.Split(section(t, page, heading), "\n") {
			if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Term ") {
				continue
			}
			c := strings.Split(strings.Trim(line, "| "), " | ")
			if len(c) != cells || !strings.HasSuffix(c[1], ".") {
				t.Errorf("%s: want a term, a sentence and a source: %s", heading, line)
				continue
			}
			term := strings.ToLower(c[0])
			if seen[term] || cells == 3 && term < last {
				t.Errorf("%s: %s comes twice, or after a term that it should come before", heading, c[0])
			}
			seen[term], last = true, term
		}
	}
	if len(seen) < 80 {
		t.Errorf("%d terms, want them all", len(seen))
	}
}
