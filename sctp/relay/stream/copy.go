package stream

import (
	"io"

	"github.com/weftstack/weft/internal/bufpool"
)

const (
	// CopyBuffer is the length in bytes of the buffer that ReadFrom and WriteTo hold while bytes are
	// under way, and smallCopy that of the one that ReadFrom holds while it waits for more.
	CopyBuffer = 32 << 10
	smallCopy  = 2 << 10
)

// WriteTo implements io.WriterTo: it writes to w what arrives, until the other end has ended its direction. It holds a
// buffer of CopyBuffer bytes while it writes, and none while it waits.
func (c *Conn) WriteTo(w io.Writer) (total int64, err error) {
	for {
		b := bufpool.Get(CopyBuffer)
		n, err := c.tryRead(b.Bytes(CopyBuffer))
		if n > 0 {
			var k int
			k, err = w.Write(b.Bytes(CopyBuffer)[:n])
			total += int64(k)
			if err == nil && k < n {
				err = io.ErrShortWrite
			}
		}
		b.Put()
		switch {
		case err == io.EOF && n == 0:
			return total, nil
		case err != nil:
			return total, err
		}
		if n == 0 {
			if err := c.awaitRead(); err == io.EOF {
				return total, nil
			} else if err != nil {
				return total, err
			}
		}
	}
}

// ReadFrom implements io.ReaderFrom: it sends what it reads from r until io.EOF. It holds a buffer of 2 KiB while r
// has nothing, and one of CopyBuffer bytes while r has much.
func (c *Conn) ReadFrom(r io.Reader) (total int64, err error) {
	small := bufpool.Get(smallCopy)
	defer small.Put()
	var large *bufpool.Buffer
	defer func() {
		if large != nil {
			large.Put()
		}
	}()
	for {
		b := small.Bytes(smallCopy)
		if large != nil {
			b = large.Bytes(CopyBuffer)
		}
		n, err := r.Read(b)
		if n > 0 {
			k, werr := c.Write(b[:n])
			total += int64(k)
			if werr != nil {
				return total, werr
			}
		}
		switch {
		case err == io.EOF:
			return total, nil
		case err != nil:
			return total, err
		case large == nil && n == smallCopy:
			large = bufpool.Get(CopyBuffer)
		case large != nil && n < smallCopy:
			large.Put()
			large = nil
		}
	}
}
