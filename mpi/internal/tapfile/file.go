// Package tapfile writes the datagrams that a rank sends to a file, which "weft pcap" and "weft run -capture" read.
package tapfile

import (
	"encoding/binary"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/weftstack/weft/sctp"
)

// A File records the datagrams that a rank sends. Each record is 8 bytes Unix
// time in nanoseconds; local and remote address, each 1 byte family (4 or 6), 16
// bytes address (an IPv4 one in the first four) and 2 bytes port; 4 bytes length;
// and the UDP payload; all big endian. Records are appended whole, one write each, so
// that a rank that is killed leaves a readable file.
type File struct {
	mu   sync.Mutex
	file *os.File
	buf  []byte
	err  error // the first error; nothing is written after it
}

// Open opens a file, or makes it, and records at its end.
func Open(name string) (*File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &File{file: f}, nil
}

// Tap is a sctp.TransportConfig.Tap.
func (c *File) Tap(e sctp.TapEvent) {
	if !e.Sent {
		return
	}
	now := time.Now().UnixNano()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	b := binary.BigEndian.AppendUint64(c.buf[:0], uint64(now))
	b = appendCaptureAddr(b, e.Local)
	b = appendCaptureAddr(b, e.Remote)
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.Data)))
	c.buf = append(b, e.Data...)
	_, c.err = c.file.Write(c.buf)
}

func appendCaptureAddr(b []byte, ap netip.AddrPort) []byte {
	a := ap.Addr().Unmap()
	if a.Is4() {
		ip := a.As4()
		b = append(append(b, 4), ip[:]...)
		b = append(b, make([]byte, 12)...)
	} else {
		ip := a.As16()
		b = append(append(b, 6), ip[:]...)
	}
	return binary.BigEndian.AppendUint16(b, ap.Port())
}

// Close ends the capture; c may be nil. It returns the first error of all.
func (c *File) Close() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.file.Close()
	if c.err != nil {
		return c.err
	}
	c.err = os.ErrClosed
	return err
}
