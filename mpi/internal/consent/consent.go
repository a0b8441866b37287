// Package consent lets all ranks of a group fail alike: collective calls that can fail on one rank
// alone, because of an argument or of its system, ask for the consent of all. So they fail on all
// ranks, with errors of the same class, and none waits for one that has given up.
package consent

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Comm is a group of ranks that ask for consent.
type Comm interface {
	Rank() int
	Size() int
	// SendVote sends b to a rank, up or down the tree of the ranks; RecvVote receives it into b
	// and returns its length.
	SendVote(ctx context.Context, b []byte, to int, up bool) error
	RecvVote(ctx context.Context, b []byte, from int, up bool) (int, error)
}

// A Vote is what a rank, or a subtree of the ranks, says about a call.
type Vote struct {
	from int32            // the lowest rank it is of
	Why  *mpierr.Portable // of the lowest rank that has one; nil: none has
	rank int32            // that rank
	same uint64           // hash of the arguments, if Why is nil
}

const (
	voteHead = 32
	// maxText bounds the text of an error in a vote.
	maxText = 512
	// MaxVote bounds an encoded vote.
	MaxVote = voteHead + maxText
)

// Append encodes b after out.
func (b *Vote) Append(out []byte) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(b.from))
	out = binary.BigEndian.AppendUint32(out, uint32(b.rank))
	out = binary.BigEndian.AppendUint64(out, b.same)
	if b.Why == nil {
		return append(out, make([]byte, 16)...)
	}
	out = binary.BigEndian.AppendUint64(out, uint64(b.Why.Class))
	out = binary.BigEndian.AppendUint64(out, b.Why.Is)
	return append(out, b.Why.Text[:min(len(b.Why.Text), maxText)]...)
}

// Parse decodes what Append has encoded.
func (b *Vote) Parse(in []byte) error {
	if len(in) < voteHead {
		return fmt.Errorf("%w: vote of %d bytes", mpierr.ErrProtocol, len(in))
	}
	b.from, b.rank = int32(binary.BigEndian.Uint32(in)), int32(binary.BigEndian.Uint32(in[4:]))
	b.same = binary.BigEndian.Uint64(in[8:])
	if class := mpierr.Class(binary.BigEndian.Uint64(in[16:])); class != mpierr.ClassSuccess {
		b.Why = &mpierr.Portable{
			Class: class,
			Is:    binary.BigEndian.Uint64(in[24:]),
			Text:  string(in[voteHead:]),
		}
	}
	return nil
}

// add counts another one. The ranks of b come before those of o.
func (b *Vote) add(o *Vote) {
	switch {
	case b.Why != nil && (o.Why == nil || b.rank <= o.rank):
	case o.Why != nil:
		b.Why, b.rank = o.Why, o.rank
	case b.same != o.same:
		b.rank = o.from
		b.Why = mpierr.MakePortable(fmt.Errorf("%w: rank %d and rank %d", mpierr.ErrNotSame, b.from, o.from))
	}
}

// refusal is the key of the error in a context of Refuse.
type refusal struct{}

// Refuse returns a context for a call that the caller refuses with err, for arguments that the call does not see:
// Ask then has err in place of its own.
func Refuse(ctx context.Context, err error) context.Context {
	return context.WithValue(ctx, refusal{}, err)
}

// Refusal returns the error that the caller has refused the call of ctx with, or nil.
func Refusal(ctx context.Context) error {
	err, _ := ctx.Value(refusal{}).(error)
	return err
}

// Ask returns nil on all ranks of c if err is nil and args print alike on all of them. Otherwise it
// returns an error on all, each of the class of that of the lowest rank that has one: err itself if
// it is of that class, else one that wraps the same variables of package mpierr. All ranks of c
// call it; it blocks until they do. A rank that cannot reach its parent or a child gives that as its error, and
// goes on, so that the others do not wait for it.
func Ask(ctx context.Context, c Comm, err error, args ...any) error {
	if why := Refusal(ctx); why != nil {
		err = why
	}
	me := c.Rank()
	mine := Vote{from: int32(me), rank: int32(me), Why: mpierr.MakePortable(err)}
	if len(args) > 0 {
		h := fnv.New64a()
		fmt.Fprintf(h, "%q", args)
		mine.same = h.Sum64()
	}
	// lost counts an error of the messages as one of this rank.
	lost := func(e error) {
		if e != nil && err == nil {
			err = e
			mine.add(&Vote{from: int32(me), rank: int32(me), Why: mpierr.MakePortable(e)})
		}
	}
	buf := make([]byte, MaxVote)
	// Up a binomial tree, and down again.
	n, bit := c.Size(), 1
	for ; me&bit == 0 && bit < n; bit <<= 1 {
		if me+bit >= n {
			continue
		}
		other, e := receive(ctx, c, buf, me+bit, true)
		if e == nil {
			mine.add(&other)
		}
		lost(e)
	}
	if me != 0 {
		e := c.SendVote(ctx, mine.Append(nil), me-bit, true)
		if e == nil {
			var all Vote
			if all, e = receive(ctx, c, buf, me-bit, false); e == nil {
				mine = all
			}
		}
		lost(e)
	}
	result := mine.Append(nil)
	for bit >>= 1; bit > 0; bit >>= 1 {
		if me+bit >= n {
			continue
		}
		lost(c.SendVote(ctx, result, me+bit, false))
	}
	switch {
	case mine.Why == nil:
		return nil
	case err == nil:
		return mine.told()
	case int(mine.rank) == me || mpierr.ClassOf(err) == mine.Why.Class:
		return err
	}
	return fmt.Errorf("%w (here: %v)", mine.told(), err)
}

// receive receives a vote from a rank.
func receive(ctx context.Context, c Comm, buf []byte, from int, up bool) (v Vote, err error) {
	n, err := c.RecvVote(ctx, buf, from, up)
	if err == nil {
		err = v.Parse(buf[:n])
	}
	return v, err
}

// told is the error on ranks that have met none.
func (b *Vote) told() error {
	if b.Why.Class == mpierr.ClassNotSame {
		return b.Why.Err()
	}
	return fmt.Errorf("rank %d: %w", b.rank, b.Why.Err())
}
