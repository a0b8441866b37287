package verbs

import (
	"errors"
	"fmt"
	"math"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/rdmap"
)

// explained is one of the errors that callers branch on, with a text that says what it
// is about.
type explained struct {
	text string
	err  error
}

// Error implements error.
func (e *explained) Error() string { return e.text }

// Unwrap returns the error that callers branch on.
func (e *explained) Unwrap() error { return e.err }

// explain gives err another text.
func explain(err error, format string, args ...any) error {
	return &explained{"verbs: " + fmt.Sprintf(format, args...), err}
}

// checkLimit checks a value that has a limit.
func checkLimit(name string, v, least, most int) error {
	switch {
	case v > most:
		return explain(ErrLimit, "%s %d: at most %d", name, v, most)
	case v < least:
		return explain(ErrLimit, "%s %d: at least %d", name, v, least)
	}
	return nil
}

// checkPrivate checks private data.
func checkPrivate(b []byte) error {
	if len(b) > MaxPrivateData {
		return explain(ErrPrivateData, "private data of %d bytes: at most %d", len(b), MaxPrivateData)
	}
	return nil
}

// tableError explains why a region, or a queue pair, could not get an STag.
func tableError(err error) error {
	if errors.Is(err, ddp.ErrTableFull) {
		return explain(ErrLimit, "regions, windows and queue pairs of the device: at most %d", ddp.MaxRegions)
	}
	return explain(ErrLimit, "%v", err)
}

// stateError explains why a queue pair cannot do something.
func (qp *QP) stateError() error {
	if err := qp.Err(); err != nil {
		return explain(ErrQPState, "QP %d: state %v does not allow this: %v", qp.num, qp.State(), err)
	}
	return explain(ErrQPState, "QP %d: state %v does not allow this", qp.num, qp.State())
}

// sendFull and recvFull are the ErrQueueFull of a queue pair. They are no allocations:
// programs post until a queue is full.
type (
	sendFull QP
	recvFull QP
)

// Error implements error.
func (e *sendFull) Error() string {
	return fmt.Sprintf("verbs: QP %d: work queue is full: SendDepth %d", e.num, e.cfg.SendDepth)
}

// Unwrap returns ErrQueueFull.
func (e *sendFull) Unwrap() error { return ErrQueueFull }

// Error implements error.
func (e *recvFull) Error() string {
	return fmt.Sprintf("verbs: QP %d: work queue is full: RecvDepth %d", e.num, e.cfg.RecvDepth)
}

// Unwrap returns ErrQueueFull.
func (e *recvFull) Unwrap() error { return ErrQueueFull }

// postError gives an error of the stream, of a post of n work requests, the name it has
// here; full is the one of the queue.
func (qp *QP) postError(err, full error) error {
	switch {
	case errors.Is(err, rdmap.ErrFull):
		return full
	case errors.Is(err, rdmap.ErrState):
		return qp.stateError()
	}
	return err
}

// wrong says what is wrong with an element of a scatter/gather list that has n bytes up to
// its end.
func (e *SGE) wrong(pd *PD, need Access, n uint64) string {
	switch {
	case e.MR == nil:
		return "no region"
	case e.MR.pd != pd:
		return "its region is of another protection domain"
	case e.MR.size >= 0:
		return "its region was made by AllocMR and is for the peer"
	case e.MR.r.Access()&need != need:
		return "its region has no LocalWrite"
	case !within(e.Off, e.Len, len(e.MR.buf)):
		return fmt.Sprintf("%d bytes at %d of a region of %d", e.Len, e.Off, len(e.MR.buf))
	case n > math.MaxUint32:
		return fmt.Sprintf("a message of %d bytes: at most %d", n, uint32(math.MaxUint32))
	}
	return "its region was closed"
}
