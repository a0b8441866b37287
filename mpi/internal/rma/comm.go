package rma

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/rdmadev"
)

// Comm is the communicator of a window, which belongs to the window alone. Messages are in a context of their
// own; their tags are any int32 that is not negative.
type Comm interface {
	Memory
	Rank() int
	Size() int
	// Usable returns why the communicator cannot be used, or nil. Failure returns why a rank has
	// failed, or nil.
	Usable() error
	Failure(rank int) error
	// Free gives the communicator up.
	Free()

	// Send sends b; Isend does so without waiting until b may be used again. held says that the
	// caller calls FlushSends before it waits.
	Send(ctx context.Context, b []byte, to, tag int, held bool) error
	Isend(b []byte, to, tag int, held bool) (Request, error)
	FlushSends()
	// Recv receives a message. Receive is Recv for a goroutine of the library, which does not poll.
	Recv(ctx context.Context, b []byte, from, tag int) (n int, err error)
	Receive(ctx context.Context, b []byte, from, tag int) (n int, err error)
	Irecv(b []byte, from, tag int) (Request, error)
	// Inbox returns where requests of a rank arrive. It calls found, perhaps with locks held, when the
	// posted receive is done.
	Inbox(from, tag int, found func()) Inbox
	// Attend makes goroutines of the program that wait for a message call s.Serve when it has work. It
	// reports false if none waits.
	Attend(s Service) bool
	// Serves says that there are services from now on.
	Serves()

	// Barrier, Allgather, Bcast and Agree are collective: every rank calls them in the same order. Agree
	// returns nil on all ranks if err is nil on all of them, otherwise an error on all ranks.
	Barrier(ctx context.Context) error
	Allgather(ctx context.Context, mine, all []byte) error
	Bcast(ctx context.Context, b []byte, root int) error
	Agree(ctx context.Context, err error) error

	// Device returns the RDMA device, or nil if there is none. Handle returns the number of a rank
	// there, and Counters what counts operations on its memory.
	Device() (*rdmadev.Device, error)
	Handle(rank int) int32
	Counters(rank int) *rdmadev.Counters

	// Host returns a number that ranks on one host have in common. Name identifies the communicator
	// among those of this process.
	Host() int
	Name() string
}

// Memory is the shared-memory transport, as far as windows use it.
type Memory interface {
	// Shares reports whether the caller may share memory with other ranks of the host.
	Shares() bool
	// Process returns the process id of a rank that exchanges messages with the caller through
	// shared memory.
	Process(rank int) (pid int, ok bool)
}

// Request is a message that is being sent or received.
type Request interface {
	Done() bool
	// Wait waits until the message is sent or received, or ctx ends. Finish is Wait that withdraws the
	// receive if ctx ends, and frees the request. Await is Wait for a goroutine of the library.
	Wait(ctx context.Context) (n int, err error)
	Finish(ctx context.Context) error
	Await()
	Test() (done bool, err error)
	Cancel()
	// Free gives the request up.
	Free()
}

// Inbox receives the requests of a rank, one at a time.
type Inbox interface {
	// Post posts the receive of the next request into b. It reports false if the request has arrived
	// already: then found is not called.
	Post(b []byte) (waits bool)
	// Arrived reports whether the posted receive is done, and Result its length and error.
	Arrived() bool
	Result() (n int, err error)
	// Next gives the posted receive up, which is done.
	Next()
	// Close withdraws the posted receive.
	Close(err error)
}

// Service performs requests of an origin.
type Service interface {
	// Serve performs requests that take no time. The caller holds no locks.
	Serve()
	// Wake wakes the goroutine of the service, which performs requests, too. It does not block.
	Wake()
}

// ProcNull is the rank of no process: operations on it do nothing.
const ProcNull = -2
