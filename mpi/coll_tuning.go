package mpi

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weftstack/weft/mpi/internal/coll"
)

// InfoTuning is the info key that gives a communicator, and those made from it,
// a tuning table of its own: rules in the form ParseTuning reads
// (MPI_Comm_set_info).
const InfoTuning = "weft_coll"

// TuningEnv is the environment variable with rules, in the form ParseTuning
// reads, that are added to the default table. It must be the same for all
// ranks of a job.
const TuningEnv = "WEFT_COLL"

// Coll is a kind of collective operation.
type Coll uint8

// The collectives that have algorithms to choose from. What the table takes as
// the size of an operation is in brackets.
const (
	CollBarrier            = Coll(coll.Barrier)            // [0]
	CollBcast              = Coll(coll.Bcast)              // [the buffer]
	CollReduce             = Coll(coll.Reduce)             // [the buffer]
	CollAllreduce          = Coll(coll.Allreduce)          // [the buffer]
	CollGather             = Coll(coll.Gather)             // [what one rank sends]
	CollGatherv            = Coll(coll.Gatherv)            // [0]
	CollScatter            = Coll(coll.Scatter)            // [what one rank receives]
	CollScatterv           = Coll(coll.Scatterv)           // [0]
	CollAllgather          = Coll(coll.Allgather)          // [what one rank sends]
	CollAllgatherv         = Coll(coll.Allgatherv)         // [the mean of what the ranks send]
	CollAlltoall           = Coll(coll.Alltoall)           // [what one rank sends to one other]
	CollAlltoallv          = Coll(coll.Alltoallv)          // [0]
	CollReduceScatter      = Coll(coll.ReduceScatter)      // [the send buffer]
	CollReduceScatterBlock = Coll(coll.ReduceScatterBlock) // [the send buffer]
	CollScan               = Coll(coll.Scan)               // [the buffer]
	CollExscan             = Coll(coll.Exscan)             // [the buffer]
	collCount              = Coll(coll.Kinds)

	// Those without a choice.
	collNeighbor  Coll = 254
	collAlltoallw Coll = 255
)

// String returns the name used in tuning tables.
func (c Coll) String() string {
	switch c {
	case collNeighbor:
		return "neighbour collective"
	case collAlltoallw:
		return "alltoallw"
	}
	return coll.Kind(c).String()
}

// Algorithms returns the names of the algorithms of a collective.
func Algorithms(c Coll) []string {
	var names []string
	for _, a := range coll.Algorithms(coll.Kind(c)) {
		names = append(names, a.Name)
	}
	return names
}

// A Rule of a tuning table says which algorithm to use from a communicator
// size and an operation size (in bytes, see Coll) on.
type Rule struct {
	Coll      Coll
	Algorithm string
	MinRanks  int
	MinBytes  int

	alg *coll.Algorithm
}

// Tuning chooses the algorithms of the collectives (MPI-4.1, Section 15.3.6).
// The last rule that applies, and whose algorithm can serve the call (some need
// a power of two ranks, or a commutative operator), decides; so what is added
// last overrides. A Tuning is not changed once a communicator uses it. All
// ranks of a communicator must use equal ones.
type Tuning struct {
	// Deterministic makes reductions combine operands strictly from left to
	// right in rank order, as a loop over the ranks would: the result is the
	// same, bit by bit, for any algorithm, message size and number of runs,
	// and for floating-point sums on any number of nodes. It costs time.
	Deterministic bool

	rules []Rule
}

// Rules returns a copy of the rules.
func (t *Tuning) Rules() []Rule { return slices.Clone(t.rules) }

// Add appends a rule, which overrides those before it. It returns ErrTuning
// if the collective or the algorithm does not exist.
func (t *Tuning) Add(r Rule) error {
	if r.Coll >= collCount {
		return fmt.Errorf("%w: %v", ErrTuning, r.Coll)
	}
	algorithms := coll.Algorithms(coll.Kind(r.Coll))
	for i := range algorithms {
		if r.alg = &algorithms[i]; r.alg.Name == r.Algorithm {
			t.rules = append(t.rules, r)
			return nil
		}
	}
	return fmt.Errorf("%w: %v has no algorithm %q, only %s", ErrTuning, r.Coll, r.Algorithm,
		strings.Join(Algorithms(r.Coll), ", "))
}

// String prints the table in the form that ParseTuning reads.
func (t *Tuning) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-22s%-22s%10s%12s\n", "# collective", "algorithm", "ranks>=", "bytes>=")
	for _, r := range t.rules {
		fmt.Fprintf(&b, "%-22v%-22s%10d%12d\n", r.Coll, r.Algorithm, r.MinRanks, r.MinBytes)
	}
	if t.Deterministic {
		b.WriteString("deterministic\n")
	}
	return b.String()
}

// maxTuningText bounds what ParseTuning reads.
const maxTuningText = 64 << 10

// ParseTuning returns the default table with the rules in text added. A rule is
//
//	collective algorithm [ranks [bytes]]
//
// with the smallest communicator and operation size it is for; rules end with
// a newline or semicolon, and # begins a comment. The word deterministic alone
// sets Tuning.Deterministic. Errors wrap ErrTuning.
func ParseTuning(text string) (*Tuning, error) {
	base := builtinTuning()
	t := &Tuning{rules: slices.Clone(base.rules)}
	return t, t.parse(text)
}

func (t *Tuning) parse(text string) error {
	if len(text) > maxTuningText {
		return fmt.Errorf("%w: %d bytes long", ErrTuning, len(text))
	}
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == ';' }) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) == 1 && f[0] == "deterministic" {
			t.Deterministic = true
			continue
		}
		if len(f) < 2 || len(f) > 4 {
			return fmt.Errorf("%w: %q", ErrTuning, line)
		}
		kind, ok := coll.KindOf(f[0])
		if !ok {
			return fmt.Errorf("%w: no collective %q", ErrTuning, f[0])
		}
		r := Rule{Coll: Coll(kind), Algorithm: f[1]}
		for i, p := range []*int{&r.MinRanks, &r.MinBytes}[:len(f)-2] {
			n, err := strconv.Atoi(f[2+i])
			if err != nil || n < 0 {
				return fmt.Errorf("%w: %q is no size", ErrTuning, f[2+i])
			}
			*p = n
		}
		if err := t.Add(r); err != nil {
			return err
		}
	}
	return nil
}

// defaultTuning returns the built-in table with the rules of the environment.
// Rules it cannot read are left out.
var defaultTuning = sync.OnceValue(func() *Tuning {
	if t, err := ParseTuning(os.Getenv(TuningEnv)); err == nil {
		return t
	}
	return builtinTuning()
})

// Tuning returns the table in effect on c (MPI_T_cvar_read). It must not be
// changed.
func (c *Comm) Tuning() *Tuning { return c.coll.tuning(c) }

// SetTuning makes the collectives that are started on c from now on use t; nil
// returns to the default (MPI_T_cvar_write). All ranks must do so between the
// same collectives. It does not communicate. t must not be changed afterwards.
func (c *Comm) SetTuning(t *Tuning) {
	if t != nil {
		t = &Tuning{Deterministic: t.Deterministic, rules: slices.Clone(t.rules)}
	}
	c.coll.table.Store(t)
}

// pick chooses the algorithm of a collective.
func (t *Tuning) pick(k *collective) (*coll.Algorithm, error) {
	strict := t.Deterministic && k.Op != nil
	for i := len(t.rules) - 1; i >= 0; i-- {
		r := &t.rules[i]
		if r.Coll == k.kind && k.Size >= r.MinRanks && k.bytes >= r.MinBytes && r.alg.Serves(&k.Schedule, strict) {
			return r.alg, nil
		}
	}
	return nil, fmt.Errorf("%w: no algorithm for %v of %d bytes on %d ranks", ErrTuning, k.kind, k.bytes, k.Size)
}
