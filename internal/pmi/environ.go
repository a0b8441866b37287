package pmi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
)

// Environment variables of PMI-1, set by the launcher.
const (
	EnvFD    = "PMI_FD"         // number of an inherited, connected socket
	EnvPort  = "PMI_PORT"       // or host:port to connect to
	EnvID    = "PMI_ID"         // who we are, with PMI_PORT
	EnvRank  = "PMI_RANK"       // our rank, with PMI_FD
	EnvSize  = "PMI_SIZE"       // number of ranks, with PMI_FD
	EnvToken = "WEFT_PMI_TOKEN" // proves to `weft run` that we are its child, with PMI_PORT
)

// ErrTaken is returned by FromEnv when it has been called before: a process has one
// connection to its launcher.
var ErrTaken = errors.New("pmi: this process has taken its connection to the launcher before")

// FromEnv connects to the launcher that the environment names. It returns nil
// and no error when there is none: the process was started alone. It returns
// ErrLauncher if a launcher that does not speak PMI-1 started several ranks, and
// ErrTaken the second time. It takes the connection out of the environment: what
// PMI_FD numbers may be another file by the time that somebody looks again, here or
// in a child process.
func FromEnv(ctx context.Context) (*Client, error) { return processEnv.client(ctx) }

// environ is where a process finds its launcher.
type environ struct {
	mu    sync.Mutex
	taken bool // guarded by mu
}

var processEnv environ

func (e *environ) client(ctx context.Context) (*Client, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.taken {
		return nil, ErrTaken
	}
	spawned := os.Getenv(EnvSpawned) == "1"
	var c *Client
	if fd := os.Getenv(EnvFD); fd != "" {
		n, err := strconv.Atoi(fd)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("pmi: %s=%q is not a file descriptor", EnvFD, fd)
		}
		rank, err := envNumber(EnvRank)
		if err != nil {
			return nil, err
		}
		size, err := envNumber(EnvSize)
		if err != nil {
			return nil, err
		}
		conn, err := inheritedConn(n)
		if err != nil {
			return nil, fmt.Errorf("pmi: %s=%s: %w", EnvFD, fd, err)
		}
		e.taken = true
		defer forget()
		if c, err = NewClient(ctx, conn, rank, size); err != nil {
			return nil, err
		}
	} else if addr := os.Getenv(EnvPort); addr != "" {
		id, err := envNumber(EnvID)
		if err != nil {
			return nil, err
		}
		if c, err = dial(ctx, addr, id, os.Getenv(EnvToken)); err != nil {
			return nil, err
		}
		c.Addr = addr
		e.taken = true
		forget()
	} else {
		return nil, foreign(os.Getenv)
	}
	c.Spawned = spawned
	return c, nil
}

// forget removes from the environment what leads to the launcher, so that a child
// process does not take itself for this rank. Rank and size stay: they only inform.
func forget() {
	for _, name := range []string{EnvFD, EnvPort, EnvID, EnvToken, EnvWatch, EnvSpawned} {
		_ = os.Unsetenv(name)
	}
	if foreign(os.Getenv) != nil { // of srun --mpi=pmi2, say: a child is not one of its ranks
		_ = os.Setenv(EnvAlone, "1")
	}
}

// inheritedConn wraps a descriptor that this process was born with, and that its
// children do not inherit.
func inheritedConn(fd int) (io.ReadWriteCloser, error) {
	if err := checkInherited(fd); err != nil {
		return nil, err // without os.NewFile, which would close what belongs to somebody else
	}
	f := os.NewFile(uintptr(fd), "pmi")
	if f == nil {
		return nil, os.ErrInvalid
	}
	conn, err := net.FileConn(f)
	if err != nil {
		return f, nil // a pipe, not a socket
	}
	_ = f.Close()
	return conn, nil
}

// envNumber reads a rank or a size from the environment.
func envNumber(name string) (int, error) {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("pmi: %s=%q is not a number", name, os.Getenv(name))
	}
	return n, nil
}
