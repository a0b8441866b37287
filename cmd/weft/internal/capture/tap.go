package capture

import (
	"bufio"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/weftstack/weft/sctp"
)

// Tap writes what a transport sends and receives to a capture file.
type Tap struct {
	mu   sync.Mutex
	file *os.File
	out  *bufio.Writer
	w    *pcapgo.Writer
	buf  gopacket.SerializeBuffer
	err  error
}

func NewTap(name string) (*Tap, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	c := &Tap{file: f, out: bufio.NewWriter(f), buf: gopacket.NewSerializeBuffer()}
	c.w = pcapgo.NewWriterNanos(c.out)
	if err := c.w.WriteFileHeader(maxDatagram+64, layers.LinkTypeRaw); err != nil {
		f.Close()
		return nil, err
	}
	return c, nil
}

// Record writes one packet to the file. It has the signature of sctp.TransportConfig.Tap.
func (c *Tap) Record(e sctp.TapEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := record{when: time.Now().UnixNano(), local: e.Local, remote: e.Remote, payload: e.Data}
	if !e.Sent {
		r.local, r.remote = r.remote, r.local
	}
	if c.err == nil && c.file != nil {
		c.err = writeDatagram(c.w, c.buf, &r)
	}
}

// Close flushes and closes the file and returns the first error of the capture.
func (c *Tap) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := errors.Join(c.err, c.out.Flush(), c.file.Close())
	c.file = nil
	return err
}
