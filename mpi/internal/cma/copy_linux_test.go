package cma

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system copies pieces to memory up to the first that it cannot: that is an error.
func TestWritePiecesPartly(t *testing.T) {
	var x, y [1]byte
	if err := Read(os.Getpid(), uint64(uintptr(unsafe.Pointer(&x[0]))), y[:]); err != nil {
		t.Skip("the system copies no memory between processes: ", err)
	}
	page := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	if err := unix.Mprotect(mem[page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	base := uint64(uintptr(unsafe.Pointer(&mem[0])))
	for _, tt := range []struct {
		name   string
		pieces []Piece
		err    error
	}{
		{"all", []Piece{{8, 2}, {0, 1}, {page - 3, 3}}, nil},
		{"across the end", []Piece{{8, 3}, {page - 2, 3}}, io.ErrShortWrite},
		{"the last not", []Piece{{8, 3}, {page, 3}}, io.ErrShortWrite},
		{"none", []Piece{{page, 6}}, unix.EFAULT},
	} {
		clear(mem[:page])
		if err := WritePieces(os.Getpid(), base, []byte("abcdef"), tt.pieces); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.err)
		}
		if tt.err == nil && (!bytes.Equal(mem[8:10], []byte("ab")) || mem[0] != 'c' || string(mem[page-3:page]) != "def") {
			t.Errorf("%s: got %q, %q, %q", tt.name, mem[8:10], mem[:1], mem[page-3:page])
		}
	}
}

// TestReadScattered copies to as many places as there may be, and from memory that ends too early.
func TestReadScattered(t *testing.T) {
	page := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	for i := range page {
		mem[i] = byte(i)
	}
	base := uint64(uintptr(unsafe.Pointer(&mem[0])))
	to := make([]byte, 3*MaxPieces)
	pieces := make([][]byte, MaxPieces)
	for i := range pieces {
		pieces[i] = to[3*i:][:2]
	}
	if err := ReadScattered(os.Getpid(), base+5, pieces); err != nil {
		t.Skip("the system copies no memory between processes: ", err)
	}
	for i, b := range to {
		want := byte(0)
		if i%3 < 2 {
			want = byte(5 + i/3*2 + i%3)
		}
		if b != want {
			t.Fatalf("byte %d is %d, want %d", i, b, want)
		}
	}
	if err := unix.Mprotect(mem[page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	if err := ReadScattered(os.Getpid(), base+uint64(page)-3, pieces[:2]); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("across the end: %v, want %v", err, io.ErrUnexpectedEOF)
	}
}
