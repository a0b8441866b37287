package sites

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

const (
	// MinKey is the length in bytes of the shortest key, and MaxKey that of the longest.
	MinKey, MaxKey = 16, 256
	// newKey is the length in bytes of the keys that WriteKey makes.
	newKey = 32
	// MaxJob is the largest number of a job of processes: the header of a frame has 24 bits for it.
	MaxJob = TCPJob - 1
	// TCPJob is the job of the gateways' own processes, which carry TCP connections.
	TCPJob = 1<<24 - 1
)

// ReadKey reads a key from a file: a line of hexadecimal digits. It refuses files that other users may read.
func ReadKey(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("key: %s is not a regular file", name)
	}
	if mode := st.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, fmt.Errorf("key: %s has mode %04o: others may read it; want 0600 (chmod 600 %[1]s)", name, mode)
	}
	b, err := io.ReadAll(io.LimitReader(f, 2*MaxKey+16))
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	// The content is a secret: an error must not show it.
	key, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(key) > MaxKey {
		return nil, fmt.Errorf("key: %s: want one line of %d to %d hexadecimal digits, as weft gateway keygen writes it",
			name, 2*MinKey, 2*MaxKey)
	}
	if len(key) < MinKey {
		return nil, fmt.Errorf("key: %s has %d bytes: want at least %d, so %d hexadecimal digits",
			name, len(key), MinKey, 2*MinKey)
	}
	return key, nil
}

// WriteKey writes a new random key to a file that must not exist, with mode 0600.
func WriteKey(name string) error {
	key := make([]byte, newKey)
	_, _ = rand.Read(key) // never fails
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(name)
		return fmt.Errorf("key: %w", err)
	}
	return nil
}

// JobKey returns the key of a job, which gateways and launchers make from the key for jobs. A process gets only
// that of its own job.
func JobKey(jobsKey []byte, job uint32) []byte {
	return derive(jobsKey, "weft job", job)
}

// SiteKey returns the key of the gateways of one site between each other.
func SiteKey(jobsKey []byte, site uint16) []byte {
	return derive(jobsKey, "weft site", uint32(site))
}

// derive returns HMAC-SHA-256 of a purpose and a number.
func derive(key []byte, purpose string, n uint32) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(binary.BigEndian.AppendUint32([]byte(purpose), n))
	return m.Sum(nil)
}

// NewJob returns a random job number of a class, which may be nil.
func (f *File) NewJob(c *Class) uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return f.jobNumber(binary.BigEndian.Uint32(b[:]), c)
}

// NamedJob returns the job number of a class, which may be nil, for all processes that have the name of the job
// from their process manager.
func (f *File) NamedJob(name string, c *Class) uint32 {
	h := sha256.Sum256([]byte(name))
	return f.jobNumber(binary.BigEndian.Uint32(h[:]), c)
}

// jobNumber makes a job number of class c.
func (f *File) jobNumber(random uint32, c *Class) uint32 {
	first, last := f.JobRange(c)
	return first + random%(last-first+1)
}

// JobRange returns the numbers of the jobs of a class, which may be nil. Each class has numbers of its own, so that
// gateways know the class of a job that they have not been told of.
func (f *File) JobRange(c *Class) (first, last uint32) {
	width := uint32(MaxJob+1) / uint32(len(f.Classes)+1)
	if c == nil {
		return 1, width - 1
	}
	return uint32(c.Number) * width, uint32(c.Number+1)*width - 1
}

// JobClass returns the class of a job, or nil.
func (f *File) JobClass(job uint32) *Class {
	for _, c := range f.Classes {
		if first, last := f.JobRange(c); first <= job && job <= last {
			return c
		}
	}
	return nil
}
