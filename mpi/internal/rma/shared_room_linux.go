package rma

import "golang.org/x/sys/unix"

// hasRoom reports whether the file system of a directory has room for n bytes. In a container that of shared memory
// may be small.
func hasRoom(dir string, n int) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return true
	}
	return uint64(n) <= st.Bavail*uint64(st.Bsize)
}
