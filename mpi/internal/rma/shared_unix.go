//go:build unix

package rma

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// sharedDir is the directory of files in memory on Linux; other systems have none.
const sharedDir = "/dev/shm"

// makeShared makes a file of n bytes that ranks map.
func makeShared(n int) (name string, remove func() error, err error) {
	remove = func() error { return nil }
	dir := sharedDir
	if st, err := os.Stat(dir); err != nil || !st.IsDir() || !hasRoom(dir, n) {
		dir = "" // an access to memory that there is no room for would end the program
	}
	f, err := os.CreateTemp(dir, "weft-shared-")
	if err != nil && dir != "" {
		f, err = os.CreateTemp("", "weft-shared-")
	}
	if err != nil {
		return "", remove, err
	}
	remove = func() error { return os.Remove(f.Name()) }
	err = errors.Join(f.Truncate(int64(n)), f.Close())
	return f.Name(), remove, err
}

func mapShared(name string, n int) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmapShared(b []byte) error { return unix.Munmap(b) }
