package fileio

import "context"

// Comm is the communicator of a file, which belongs to the file alone. All methods that take a
// context are collective: every rank calls them in the same order, and they block.
type Comm interface {
	Rank() int
	Size() int
	// Usable returns why the communicator cannot be used, or nil.
	Usable() error
	// Agree returns nil on all ranks if err is nil on all of them and args print alike. Otherwise it
	// returns an error on all ranks: err itself, or one of the class of that of another rank.
	Agree(ctx context.Context, err error, args ...any) error
	Barrier(ctx context.Context) error
	// Bcast returns n of rank root.
	Bcast(ctx context.Context, n int64, root int) (int64, error)
	// Scan returns the sum of n of the ranks from 0 up to the caller.
	Scan(ctx context.Context, n int64) (int64, error)
	// Allgather stores mine of rank i to all[i].
	Allgather(ctx context.Context, mine Reach, all []Reach) error
	// Alltoall sends send[i] to rank i and returns what came from each rank.
	Alltoall(ctx context.Context, send [][]byte) ([][]byte, error)
	// Free gives the communicator up.
	Free()
}

// SharedPointer is the shared file pointer, a number in the memory of rank 0, and a lock that is
// there too. Except for Free, any rank may call its methods at any time.
type SharedPointer interface {
	Load(ctx context.Context) (int64, error)
	Store(ctx context.Context, pos int64) error
	// FetchAdd adds n and returns what the pointer was before.
	FetchAdd(ctx context.Context, n int64) (int64, error)
	// Lock waits until no other rank holds the lock; without exclusive, until none holds it
	// exclusively.
	Lock(ctx context.Context, exclusive bool) (unlock func(), err error)
	// Free is collective.
	Free(ctx context.Context) error
}
