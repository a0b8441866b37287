package collective

import (
	"fmt"
	"strings"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/bridge"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// A form is one of the forms that each collective has.
type form uint8

const (
	blocking form = iota
	nonblocking
	persistent
)

// A collCall is a call of a collective.
type collCall struct {
	proc    string
	form    form
	request uintptr    // where the handle of the request is stored; 0 if blocking
	info    abi.Handle // of a persistent one
}

// begin returns the communicator of the call; nil with the code of an error.
func (k collCall) begin(comm abi.Handle) (*cbinding.Communicator, int) {
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return nil, cbinding.Fail(k.proc, err)
	}
	if k.form != blocking {
		err = cbinding.Out("request", k.request)
	}
	if err == nil && k.form == persistent {
		_, err = cbinding.HintsOf(k.info) // there are none for collectives
	}
	if err != nil {
		return nil, k.refuse(c, err)
	}
	return c, abi.Success
}

// rooted is begin for a collective with a root.
func (k collCall) rooted(comm abi.Handle, root int) (c *cbinding.Communicator, r, code int) {
	if c, code = k.begin(comm); c == nil {
		return nil, 0, code
	}
	r, err := c.Root(root)
	if err != nil {
		return nil, 0, k.refuse(c, err)
	}
	return c, r, abi.Success
}

// kinds are the kinds of collectives, by their names without MPI_, I and _init. Those that only have no tuning are the
// kind of another that is alike.
var kinds = map[string]mpi.Coll{"barrier": mpi.CollBarrier, "bcast": mpi.CollBcast, "reduce": mpi.CollReduce,
	"allreduce": mpi.CollAllreduce, "gather": mpi.CollGather, "gatherv": mpi.CollGatherv, "scatter": mpi.CollScatter,
	"scatterv": mpi.CollScatterv, "allgather": mpi.CollAllgather, "allgatherv": mpi.CollAllgatherv,
	"alltoall": mpi.CollAlltoall, "alltoallv": mpi.CollAlltoallv, "alltoallw": mpi.CollAlltoall,
	"reduce_scatter": mpi.CollReduceScatter, "reduce_scatter_block": mpi.CollReduceScatterBlock,
	"scan": mpi.CollScan, "exscan": mpi.CollExscan}

// name returns the name of the collective, in lower case, without MPI_, I and _init.
func (k collCall) name() string {
	name := strings.ToLower(strings.TrimPrefix(k.proc, "MPI_"))
	switch k.form {
	case nonblocking:
		name = strings.TrimPrefix(name, "i")
	case persistent:
		name = strings.TrimSuffix(name, "_init")
	}
	return name
}

// refuse ends a call that is wrong in this rank. The others may have begun it, so its turn on the communicator is used
// up: the next collectives of all ranks match.
func (k collCall) refuse(c *cbinding.Communicator, err error) int {
	name := k.name()
	switch {
	case k.form == persistent: // has a duplicate of the communicator
		if d, e := c.Dup(cbinding.Background); e == nil {
			d.Free()
		}
	case strings.HasPrefix(name, "neighbor_"): // takes two turns
		bridge.SkipCollective(c.Comm, int(mpi.CollBarrier), k.form == blocking)
		bridge.SkipCollective(c.Comm, int(mpi.CollBarrier), k.form == blocking)
	default:
		bridge.SkipCollective(c.Comm, int(kinds[name]), k.form == blocking)
	}
	return c.Done(k.proc, err)
}

// end makes the call in its form and ends it.
func (k collCall) end(c *cbinding.Communicator, run func() error, start func() (*mpi.Request, error),
	prepare func() (*mpi.Persistent, error)) int {
	switch k.form {
	case blocking:
		return c.Done(k.proc, run())
	case nonblocking:
		r, err := start()
		return c.NewRequest(k.proc, k.request, r, err)
	}
	p, err := prepare()
	return c.NewPersistent(k.proc, k.request, p, err)
}

// mayInPlace reports whether buf is MPI_IN_PLACE, where the collective and c allow that; else
// BufferOf refuses it.
func mayInPlace(c *cbinding.Communicator, buf uintptr) bool {
	return buf == abi.InPlace && !c.IsInter()
}

// collects reports whether the caller is the root, of which the buffer with many blocks is significant.
func collects(c *cbinding.Communicator, root int) bool {
	return root == mpi.Root || root == c.Rank() && !c.IsInter()
}

// aliased returns the error of what is sent being what is received: the same items at the same place.
func aliased(send, recv block, sent, received mpi.Buffer) error {
	if send.buf == recv.buf && send.datatype == recv.datatype && sent.Len() > 0 && sent.Len() == received.Len() {
		return aliasError(send.buf)
	}
	return nil
}

func aliasError(buf uintptr) error {
	return cbinding.ArgError(abi.ErrBuffer, "sendbuf", fmt.Sprintf("%#x", buf), "is what is received too: pass MPI_IN_PLACE")
}
