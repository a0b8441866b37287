//go:build unix

package pmi

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A file of the program that has the number of PMI_FD is neither written to nor closed.
func TestInheritedIsNoConnection(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "results")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	t.Setenv(EnvFD, strconv.Itoa(int(f.Fd())))
	t.Setenv(EnvRank, "0")
	t.Setenv(EnvSize, "1")
	if c, err := new(environ).client(t.Context()); c != nil || err == nil || !strings.Contains(err.Error(), "not the connection") {
		t.Errorf("client %v, error %v; want none, and an error that says why", c, err)
	}
	if st, err := f.Stat(); err != nil || st.Size() != 0 {
		t.Errorf("the file is closed or written to: %v, %v", st, err)
	}
	t.Setenv(EnvFD, "999999")
	if _, err := new(environ).client(t.Context()); !errors.Is(err, unix.EBADF) {
		t.Errorf("a descriptor that is not open: %v, want EBADF", err)
	}
}

// The connection is taken once, and children inherit neither it nor what names it.
func TestInheritedIsTakenOnce(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	launcher := os.NewFile(uintptr(fds[0]), "launcher")
	s := NewServer(1, "k")
	go s.Serve(t.Context(), 0, launcher)
	t.Setenv(EnvFD, strconv.Itoa(fds[1]))
	t.Setenv(EnvRank, "0")
	t.Setenv(EnvSize, "1")
	t.Setenv(EnvWatch, "k")
	t.Setenv(EnvSpawned, "1")
	var e environ
	c, err := e.client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !c.Spawned || !c.CanWatch() {
		t.Errorf("spawned %v, watches %v; want both", c.Spawned, c.CanWatch())
	}
	for _, name := range []string{EnvFD, EnvWatch, EnvSpawned} {
		if v, ok := os.LookupEnv(name); ok {
			t.Errorf("a child would inherit %s=%s", name, v)
		}
	}
	// The descriptor of that number is another one now.
	t.Setenv(EnvFD, strconv.Itoa(fds[1]))
	if _, err := e.client(t.Context()); !errors.Is(err, ErrTaken) {
		t.Errorf("again: %v, want ErrTaken", err)
	}
	if err := c.Finalize(t.Context()); err != nil {
		t.Error(err)
	}
}

// A pipe has no copy that is closed on exec: the inherited descriptor itself must be.
func TestInheritedPipeStaysHere(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	fd, err := unix.FcntlInt(r.Fd(), unix.F_DUPFD, 0)
	r.Close()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := inheritedConn(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v; want FD_CLOEXEC", flags, err)
	}
}
