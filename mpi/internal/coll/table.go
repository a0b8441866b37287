package coll

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// A Rule of a table says which algorithm to use from a communicator size and an operation size on.
type Rule struct {
	Kind      Kind
	Algorithm string
	MinRanks  int
	MinBytes  int

	alg    *Algorithm
	before int // number of the rule before this one for the same collective, from 1; 0: it is the first
}

// A Table chooses the algorithms of the collectives. Of the rules that apply and have an
// algorithm for the call the last one decides. A Table does not change while it is in use.
type Table struct {
	rules []Rule
	last  [Kinds]int // number of the last rule for each collective, from 1; 0: there is none
}

// Rules returns the rules, which must not be changed.
func (t *Table) Rules() []Rule { return t.rules }

// Clone returns a copy.
func (t *Table) Clone() Table { return Table{slices.Clone(t.rules), t.last} }

// Add appends a rule, which overrides those before it. It returns ErrTuning if the collective or
// the algorithm does not exist.
func (t *Table) Add(r Rule) error {
	if r.Kind >= Kinds {
		return fmt.Errorf("%w: %v", mpierr.ErrTuning, r.Kind)
	}
	algorithms := Algorithms(r.Kind)
	for i := range algorithms {
		if r.alg = &algorithms[i]; r.alg.Name == r.Algorithm {
			r.before = t.last[r.Kind]
			t.rules = append(t.rules, r)
			t.last[r.Kind] = len(t.rules)
			return nil
		}
	}
	return fmt.Errorf("%w: %v has no algorithm %q, only %s", mpierr.ErrTuning, r.Kind, r.Algorithm,
		strings.Join(AlgorithmNames(r.Kind), ", "))
}

// AlgorithmNames returns the names of the algorithms of a collective.
func AlgorithmNames(k Kind) []string {
	var names []string
	for _, a := range Algorithms(k) {
		names = append(names, a.Name)
	}
	return names
}

// String prints the rules in the form that Parse reads.
func (t *Table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-22s%-22s%10s%12s\n", "# collective", "algorithm", "ranks>=", "bytes>=")
	for _, r := range t.rules {
		fmt.Fprintf(&b, "%-22v%-22s%10d%12d\n", r.Kind, r.Algorithm, r.MinRanks, r.MinBytes)
	}
	return b.String()
}

// maxTableText bounds what Parse reads.
const maxTableText = 64 << 10

// Parse adds the rules in text: a collective, an algorithm, and perhaps the least number of ranks
// and of bytes. Rules end with a newline or semicolon, and # begins a comment. The word
// deterministic alone is no rule: strict reports that it was there. Errors wrap ErrTuning.
func (t *Table) Parse(text string) (strict bool, err error) {
	if len(text) > maxTableText {
		return false, fmt.Errorf("%w: %d bytes long", mpierr.ErrTuning, len(text))
	}
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == ';' }) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) == 1 && f[0] == "deterministic" {
			strict = true
			continue
		}
		if len(f) < 2 || len(f) > 4 {
			return strict, fmt.Errorf("%w: %q", mpierr.ErrTuning, line)
		}
		kind, ok := KindOf(f[0])
		if !ok {
			return strict, fmt.Errorf("%w: no collective %q", mpierr.ErrTuning, f[0])
		}
		r := Rule{Kind: kind, Algorithm: f[1]}
		for i, p := range []*int{&r.MinRanks, &r.MinBytes}[:len(f)-2] {
			n, err := strconv.Atoi(f[2+i])
			if err != nil || n < 0 {
				return strict, fmt.Errorf("%w: %q is no size", mpierr.ErrTuning, f[2+i])
			}
			*p = n
		}
		if err := t.Add(r); err != nil {
			return strict, err
		}
	}
	return strict, nil
}

// Pick chooses the algorithm of a collective of some bytes. If strict is true it combines operands
// strictly from left to right.
func (t *Table) Pick(s *Schedule, kind Kind, bytes int, strict bool) (*Algorithm, error) {
	strict = strict && s.Op != nil
	for i := t.last[kind]; i > 0; i = t.rules[i-1].before {
		r := &t.rules[i-1]
		if s.Size >= r.MinRanks && bytes >= r.MinBytes && r.alg.Serves(s, strict) {
			return r.alg, nil
		}
	}
	return nil, fmt.Errorf("%w: no algorithm for %v of %d bytes on %d ranks", mpierr.ErrTuning, kind, bytes, s.Size)
}
