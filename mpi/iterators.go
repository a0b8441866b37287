package mpi

import (
	"context"
	"iter"
	"slices"
)

// Completed is a request that is done (MPI_Waitany).
type Completed struct {
	Index  int // of the request, or Undefined
	Status Status
}

// Completions yields requests as they get done, each with its error: a loop over
// Waitany, which makes each inactive (MPI_Waitany). It leaves reqs as it is; those
// that are nil or inactive are left out. If ctx ends first, or nothing can be waited
// for, the last it yields is that error, with Undefined. It blocks between two of
// them; a loop that is left early leaves the others as they are. A receive that
// cannot be waited for at present (ErrProcFailedPending) is yielded, too, and not
// looked at again.
func Completions(ctx context.Context, reqs ...*Request) iter.Seq2[Completed, error] {
	return func(yield func(Completed, error) bool) {
		left := slices.Clone(reqs)
		for {
			i, st, err := Waitany(ctx, left...)
			if i == Undefined {
				if err != nil {
					yield(Completed{Index: Undefined}, err)
				}
				return
			}
			left[i] = nil
			if !yield(Completed{i, st}, err) {
				return
			}
		}
	}
}

// Messages yields the messages that a receive for src and tag would get, one
// after the other, each for Mrecv: a loop over Mprobe (MPI_Mprobe). Several
// goroutines may share the messages of one source so. It blocks between two of
// them, and ends when the loop is left, or with the error that it yields last.
func Messages(ctx context.Context, c *Comm, src, tag int) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for {
			m, err := Mprobe(ctx, c, src, tag)
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}
