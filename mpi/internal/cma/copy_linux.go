package cma

import (
	"io"
	"sync"

	"golang.org/x/sys/unix"
)

// copyVectors are arguments of the system calls below. They escape, so they are pooled.
type copyVectors struct {
	local  [MaxPieces]unix.Iovec
	remote [MaxPieces]unix.RemoteIovec
	probe  [ProbeLen]byte
}

var vectorPool = sync.Pool{New: func() any { return new(copyVectors) }}

// Read copies len(b) bytes from the memory of another process.
func Read(pid int, addr uint64, b []byte) error {
	return copyAll(unix.ProcessVMReadv, pid, addr, b)
}

// Write copies b to the memory of another process.
func Write(pid int, addr uint64, b []byte) error {
	return copyAll(unix.ProcessVMWritev, pid, addr, b)
}

// Holds reports whether a process has the bytes want at addr.
func Holds(pid int, addr uint64, want *[ProbeLen]byte) bool {
	v := vectorPool.Get().(*copyVectors)
	defer vectorPool.Put(v)
	return Read(pid, addr, v.probe[:]) == nil && v.probe == *want
}

// vectorCall is one of the two system calls.
type vectorCall func(pid int, local []unix.Iovec, remote []unix.RemoteIovec, flags uint) (int, error)

func copyAll(call vectorCall, pid int, addr uint64, b []byte) error {
	v := vectorPool.Get().(*copyVectors)
	defer vectorPool.Put(v)
	for len(b) > 0 {
		v.local[0].Base = &b[0]
		v.local[0].SetLen(len(b))
		v.remote[0] = unix.RemoteIovec{Base: uintptr(addr), Len: len(b)}
		n, err := call(pid, v.local[:1], v.remote[:1], 0)
		if err != nil {
			v.local[0].Base = nil
			return err
		}
		if n <= 0 {
			return io.ErrUnexpectedEOF
		}
		b, addr = b[n:], addr+uint64(n) // a call copies 2 GiB at most
	}
	v.local[0].Base = nil
	return nil
}

// WritePieces copies b to up to MaxPieces places in the memory of another process, relative
// to base, by one system call.
func WritePieces(pid int, base uint64, b []byte, pieces []Piece) error {
	v := vectorPool.Get().(*copyVectors)
	defer vectorPool.Put(v)
	v.local[0].Base = &b[0]
	v.local[0].SetLen(len(b))
	for i, p := range pieces {
		v.remote[i] = unix.RemoteIovec{Base: uintptr(base) + uintptr(p.Off), Len: p.N}
	}
	n, err := unix.ProcessVMWritev(pid, v.local[:1], v.remote[:len(pieces)], 0)
	v.local[0].Base = nil
	if err == nil && n != len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// ReadScattered copies memory of another process from addr on to up to MaxPieces places, none of them
// empty, by one system call.
func ReadScattered(pid int, addr uint64, pieces [][]byte) error {
	n := 0
	for _, b := range pieces {
		n += len(b)
	}
	return ReadRuns(pid, []Run{{addr, n}}, pieces)
}

// ReadRuns copies up to MaxPieces runs of the memory of another process to up to MaxPieces places, none
// of them empty, by one system call. The places may have more room.
func ReadRuns(pid int, runs []Run, pieces [][]byte) error {
	v := vectorPool.Get().(*copyVectors)
	defer vectorPool.Put(v)
	all := 0
	for i, r := range runs {
		v.remote[i] = unix.RemoteIovec{Base: uintptr(r.Addr), Len: r.Len}
		all += r.Len
	}
	for i, b := range pieces {
		v.local[i].Base = &b[0]
		v.local[i].SetLen(len(b))
	}
	n, err := unix.ProcessVMReadv(pid, v.local[:len(pieces)], v.remote[:len(runs)], 0)
	for i := range pieces {
		v.local[i].Base = nil
	}
	if err == nil && n != all {
		err = io.ErrUnexpectedEOF
	}
	return err
}
