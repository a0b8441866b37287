package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

// digest is what a worker computes of one piece.
type digest struct {
	sum  [sha256.Size]byte
	hist [256]uint64
}

// compute digests one piece.
func compute(piece []byte) digest {
	d := digest{sum: sha256.Sum256(piece)}
	for _, b := range piece {
		d.hist[b]++
	}
	return d
}

// A task message is the task's index, the bytes of the piece following.
const taskHeader = 8

// A result message is the index, the digest and the histogram.
const resultLen = 8 + sha256.Size + 256*8

// appendResult encodes the result of task index.
func appendResult(b []byte, index uint64, d *digest) []byte {
	b = binary.BigEndian.AppendUint64(b, index)
	b = append(b, d.sum[:]...)
	for _, n := range d.hist {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

// parseResult decodes what appendResult wrote.
func parseResult(b []byte) (index uint64, d digest, err error) {
	if len(b) != resultLen {
		return 0, d, fmt.Errorf("result of %d bytes, want %d", len(b), resultLen)
	}
	index = binary.BigEndian.Uint64(b)
	b = b[8+copy(d.sum[:], b[8:]):]
	for i := range d.hist {
		d.hist[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return index, d, nil
}

// source gives the pieces of the input.
type source interface {
	// count returns the number of tasks, size the number of bytes in all.
	count() int
	size() int64
	// read fills buf, of the task size, with piece i and returns its part in use.
	read(i int, buf []byte) ([]byte, error)
	Close() error
}

// open opens the source that the options ask for.
func open(o *options) (source, error) {
	if o.input == "" {
		return &synthetic{n: o.tasks, task: int64(o.task), seed: o.seed}, nil
	}
	f, err := os.Open(o.input)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", o.input)
	case info.Size() > maxTasks*int64(o.task):
		err = fmt.Errorf("%s: more than %d tasks", o.input, maxTasks)
	default:
		return &file{f: f, length: info.Size(), task: int64(o.task)}, nil
	}
	f.Close()
	return nil, err
}

// file is a source on disk.
type file struct {
	f            *os.File
	length, task int64
}

func (s *file) count() int   { return int((s.length + s.task - 1) / s.task) }
func (s *file) size() int64  { return s.length }
func (s *file) Close() error { return s.f.Close() }

func (s *file) read(i int, buf []byte) ([]byte, error) {
	at := int64(i) * s.task
	buf = buf[:min(s.task, s.length-at)]
	_, err := s.f.ReadAt(buf, at)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s was truncated while being read", s.f.Name())
	}
	return buf, err
}

// synthetic is a source that makes its data up.
type synthetic struct {
	n    int
	task int64
	seed uint64
}

func (s *synthetic) count() int   { return s.n }
func (s *synthetic) size() int64  { return int64(s.n) * s.task }
func (s *synthetic) Close() error { return nil }

func (s *synthetic) read(i int, buf []byte) ([]byte, error) {
	buf = buf[:s.task]
	r := rand.NewPCG(s.seed, uint64(i))
	whole := len(buf) &^ 7
	for j := 0; j < whole; j += 8 {
		binary.LittleEndian.PutUint64(buf[j:], r.Uint64())
	}
	for j := whole; j < len(buf); j++ {
		buf[j] = byte(r.Uint64())
	}
	return buf, nil
}
