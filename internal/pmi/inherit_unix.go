//go:build unix

package pmi

import (
	"errors"

	"golang.org/x/sys/unix"
)

// checkInherited returns an error if a descriptor cannot be the connection that a
// launcher gives its child, and else keeps it from the children of this process.
func checkInherited(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFSOCK && kind != unix.S_IFIFO {
		return errors.New("neither a socket nor a pipe: not the connection to the launcher")
	}
	unix.CloseOnExec(fd)
	return nil
}
