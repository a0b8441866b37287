package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// script is one check of one requirement.
type script struct {
	id, quote string
	file      string
	lines     []line
}

type line struct {
	no   int
	text string
}

// rfc and section are the parts of the name.
func (s *script) rfc() string { rfc, _, _ := strings.Cut(s.id, "/"); return rfc }

func (s *script) section() string { sec, _ := s.split(); return sec }

// split returns the name without its number, and the number.
func (s *script) split() (string, int) {
	i := strings.LastIndexByte(s.id, '-')
	n, _ := strconv.Atoi(s.id[i+1:])
	return s.id[:i], n
}

var validID = regexp.MustCompile(`^\d{4}/[\d.A-Z]+-\d+$`)

// load reads all scripts, in the order of files and lines.
func load(t testing.TB) []*script {
	t.Helper()
	files, err := filepath.Glob("testdata/*.sctp")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	var all []*script
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		list, err := parse(filepath.Base(f), string(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, list...)
	}
	return all
}

// parse reads the scripts of one file.
func parse(file, text string) (list []*script, err error) {
	var s *script
	quoting := false
	for i, raw := range strings.Split(text, "\n") {
		l := strings.TrimSpace(raw)
		fail := func(what string) ([]*script, error) {
			return nil, fmt.Errorf("%s:%d: %s: %s", file, i+1, what, l)
		}
		switch {
		case quoting:
			s.quote += " " + unquote(l)
			quoting = !strings.HasSuffix(l, `"`)
		case l == "" || strings.HasPrefix(l, "#"):
		case strings.HasPrefix(l, "== "):
			s = &script{id: l[3:], file: file}
			if !validID.MatchString(s.id) {
				return fail("bad name")
			}
			list = append(list, s)
		case s == nil:
			return fail("statement before the first script")
		case strings.HasPrefix(l, `"`):
			if s.quote != "" {
				return fail("second quotation")
			}
			s.quote = unquote(l[1:])
			quoting = len(l) < 2 || !strings.HasSuffix(l, `"`)
		default:
			s.lines = append(s.lines, line{i + 1, l})
		}
	}
	return list, nil
}

// unquote takes the end of a quotation off and resolves quotes within it.
func unquote(s string) string {
	return strings.ReplaceAll(strings.TrimSuffix(s, `"`), `\"`, `"`)
}

// fields are the words of a chunk or statement: names without "=" in order, and
// the comparisons.
type fields struct {
	words []string
	kv    []field
	list  []string // in braces
	text  string   // in quotes
}

type field struct{ key, op, val string }

var comparison = regexp.MustCompile(`^([A-Za-z_]\w*)(=|>=|<=|!=)(.*)$`)

// splitFields cuts s into words, taking {…} and "…" out.
func splitFields(s string) (f fields, err error) {
	if i := strings.IndexByte(s, '"'); i >= 0 {
		j := strings.LastIndexByte(s, '"')
		if f.text, err = strconv.Unquote(s[i : j+1]); err != nil {
			return f, fmt.Errorf("%w: %s", err, s)
		}
		s = s[:i] + s[j+1:]
	}
	if i := strings.IndexByte(s, '{'); i >= 0 {
		j := strings.LastIndexByte(s, '}')
		if j < i {
			return f, fmt.Errorf("no } in %s", s)
		}
		for _, p := range strings.Split(s[i+1:j], ",") {
			f.list = append(f.list, strings.TrimSpace(p))
		}
		s = s[:i] + s[j+1:]
	}
	for _, w := range strings.Fields(s) {
		if m := comparison.FindStringSubmatch(w); m != nil {
			f.kv = append(f.kv, field{m[1], m[2], m[3]})
		} else {
			f.words = append(f.words, w)
		}
	}
	return f, nil
}

// get returns the value of key; ok is false if there is none.
func (f *fields) get(key string) (string, bool) {
	for _, x := range f.kv {
		if x.key == key {
			return x.val, true
		}
	}
	return "", false
}

func (f *fields) has(word string) bool {
	for _, w := range f.words {
		if w == word {
			return true
		}
	}
	return false
}

// splitChunks cuts a packet into the part in brackets and the chunks. ";" inside
// braces or quotes does not count.
func splitChunks(s string) (head string, chunks []string) {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "[") {
		head, s, _ = strings.Cut(s[1:], "]")
	}
	depth, quoted, from := 0, false, 0
	for i, c := range s {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ';' && depth == 0:
			chunks = append(chunks, strings.TrimSpace(s[from:i]))
			from = i + 1
		}
	}
	if last := strings.TrimSpace(s[from:]); last != "" {
		chunks = append(chunks, last)
	}
	return head, chunks
}
