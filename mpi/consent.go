package mpi

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Collective calls that can fail on one rank alone, because of an argument or of its
// system, ask for the consent of all: so they fail on all ranks, with errors of the same
// class, and none waits for one that has given up.

// A ballotPaper is what a rank, or a subtree of the ranks, says about a call.
type ballotPaper struct {
	from int32            // the lowest rank it is of
	why  *mpierr.Portable // of the lowest rank that has one; nil: none has
	rank int32            // that rank
	same uint64           // hash of the arguments, if why is nil
}

// maxConsent bounds a message of consent, maxConsentText the text of an error in it.
const (
	consentHead    = 32
	maxConsentText = 512
	maxConsent     = consentHead + maxConsentText
)

func (b *ballotPaper) append(out []byte) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(b.from))
	out = binary.BigEndian.AppendUint32(out, uint32(b.rank))
	out = binary.BigEndian.AppendUint64(out, b.same)
	if b.why == nil {
		return append(out, make([]byte, 16)...)
	}
	out = binary.BigEndian.AppendUint64(out, uint64(b.why.Class))
	out = binary.BigEndian.AppendUint64(out, b.why.Is)
	return append(out, b.why.Text[:min(len(b.why.Text), maxConsentText)]...)
}

func (b *ballotPaper) parse(in []byte) error {
	if len(in) < consentHead {
		return fmt.Errorf("%w: vote of %d bytes", ErrProtocol, len(in))
	}
	b.from, b.rank = int32(binary.BigEndian.Uint32(in)), int32(binary.BigEndian.Uint32(in[4:]))
	b.same = binary.BigEndian.Uint64(in[8:])
	if class := mpierr.Class(binary.BigEndian.Uint64(in[16:])); class != mpierr.ClassSuccess {
		b.why = &mpierr.Portable{
			Class: class,
			Is:    binary.BigEndian.Uint64(in[24:]),
			Text:  string(in[consentHead:]),
		}
	}
	return nil
}

// add counts another one. The ranks of b come before those of o.
func (b *ballotPaper) add(o *ballotPaper) {
	switch {
	case b.why != nil && (o.why == nil || b.rank <= o.rank):
	case o.why != nil:
		b.why, b.rank = o.why, o.rank
	case b.same != o.same:
		b.rank = o.from
		b.why = mpierr.MakePortable(fmt.Errorf("%w: rank %d and rank %d", ErrNotSame, b.from, o.from))
	}
}

// consent returns nil on all ranks of c if err is nil and args print alike on all of
// them. Otherwise it returns an error on all, each of the class of that of the lowest
// rank that has one: err itself if it is of that class, else one that
// wraps the same variables of this package. All ranks of c, or of the local group of an
// intercommunicator, call it; it blocks until they do.
func (c *Comm) consent(ctx context.Context, err error, args ...any) error {
	if c.local != nil {
		c = c.local
	}
	if e := c.usable(); e != nil {
		return orFirst(err, e)
	}
	mine := ballotPaper{from: int32(c.rank), rank: int32(c.rank), why: mpierr.MakePortable(err)}
	if len(args) > 0 {
		h := fnv.New64a()
		fmt.Fprintf(h, "%q", args)
		mine.same = h.Sum64()
	}
	buf := make([]byte, maxConsent)
	// Up a binomial tree, and down again.
	n, bit := len(c.group), 1
	for ; c.rank&bit == 0 && bit < n; bit <<= 1 {
		if c.rank+bit >= n {
			continue
		}
		st, e := c.recv(ctx, slotComm, buf, c.rank+bit, tagVote)
		var other ballotPaper
		if e == nil {
			e = other.parse(buf[:st.Bytes])
		}
		if e != nil {
			return orFirst(err, e)
		}
		mine.add(&other)
	}
	if c.rank != 0 {
		parent := c.rank - bit
		if e := c.send(ctx, slotComm, sendStandard, mine.append(nil), parent, tagVote); e != nil {
			return orFirst(err, e)
		}
		st, e := c.recv(ctx, slotComm, buf, parent, tagResult)
		if e == nil {
			e = mine.parse(buf[:st.Bytes])
		}
		if e != nil {
			return orFirst(err, e)
		}
	}
	result := mine.append(nil)
	for bit >>= 1; bit > 0; bit >>= 1 {
		if c.rank+bit >= n {
			continue
		}
		if e := c.send(ctx, slotComm, sendStandard, result, c.rank+bit, tagResult); e != nil {
			return orFirst(err, e)
		}
	}
	switch {
	case mine.why == nil:
		return nil
	case err == nil:
		return mine.told()
	case int(mine.rank) == c.rank || mpierr.ClassOf(err) == mine.why.Class:
		return err
	}
	return fmt.Errorf("%w (here: %v)", mine.told(), err)
}

// told is the error on ranks that have met none.
func (b *ballotPaper) told() error {
	if b.why.Class == mpierr.ClassNotSame {
		return b.why.Err()
	}
	return fmt.Errorf("rank %d: %w", b.rank, b.why.Err())
}

// orFirst returns err, or e if err is nil.
func orFirst(err, e error) error {
	if err != nil {
		return err
	}
	return e
}
