package mpi

import (
	"os"
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
)

// String returns the name used in tuning tables.
func (c Coll) String() string { return coll.Kind(c).String() }

// Algorithms returns the names of the algorithms of a collective.
func Algorithms(c Coll) []string { return coll.AlgorithmNames(coll.Kind(c)) }

// A Rule of a tuning table says which algorithm to use from a communicator
// size and an operation size (in bytes, see Coll) on.
type Rule struct {
	Coll      Coll
	Algorithm string
	MinRanks  int
	MinBytes  int
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

	table coll.Table
}

// Rules returns a copy of the rules.
func (t *Tuning) Rules() []Rule {
	var rules []Rule
	for _, r := range t.table.Rules() {
		rules = append(rules, Rule{Coll(r.Kind), r.Algorithm, r.MinRanks, r.MinBytes})
	}
	return rules
}

// Add appends a rule, which overrides those before it. It returns ErrTuning
// if the collective or the algorithm does not exist.
func (t *Tuning) Add(r Rule) error {
	return t.table.Add(coll.Rule{Kind: coll.Kind(r.Coll), Algorithm: r.Algorithm, MinRanks: r.MinRanks,
		MinBytes: r.MinBytes})
}

// String prints the table in the form that ParseTuning reads.
func (t *Tuning) String() string {
	s := t.table.String()
	if t.Deterministic {
		s += "deterministic\n"
	}
	return s
}

// ParseTuning returns the default table with the rules in text added. A rule is
//
//	collective algorithm [ranks [bytes]]
//
// with the smallest communicator and operation size it is for; rules end with
// a newline or semicolon, and # begins a comment. The word deterministic alone
// sets Tuning.Deterministic. Errors wrap ErrTuning.
func ParseTuning(text string) (*Tuning, error) {
	t := builtinTuning()
	var err error
	t.Deterministic, err = t.table.Parse(text)
	return t, err
}

// defaultTuning returns the built-in table with the rules of the environment.
// Rules it cannot read are left out.
var defaultTuning = sync.OnceValue(func() *Tuning {
	if t, err := ParseTuning(os.Getenv(TuningEnv)); err == nil {
		return t
	}
	return builtinTuning()
})

// builtinTuning returns the table without additions.
func builtinTuning() *Tuning { return &Tuning{table: coll.Builtin().Clone()} }
