package sockets_test

import (
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/sctp/sockets"
)

// The heap that a socket takes for a reader that does not read is bounded by its buffer, in
// bytes, whatever the size of the messages.
func TestHeapIsBounded(t *testing.T) {
	if sockets.RaceEnabled {
		t.Skip("the race detector takes memory of its own") // without it the test runs
	}
	for _, tt := range []struct {
		name string
		size int
	}{{"1 byte", 1}, {"257 bytes", 257}, {"1000 bytes", 1000}, {"beyond the buffer", 4 << 20}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const buffer = 2 << 20
				p := newPair(t, 1, sctptest.Link{})
				p.server.ReadBuffer, p.client.WriteBuffer = buffer, 16<<10
				c, s := p.connect()
				msg := make([]byte, tt.size)
				c.SetWriteTimeout(syscall.NsecToTimeval(int64(2 * time.Minute)))
				before := heap()
				sent := 0
				for ; ; sent++ {
					if _, err := c.Write(msg); err != nil {
						break
					}
				}
				took := heap() - before
				if tt.size > buffer {
					took -= tt.size // what is left of it waits in the send buffer
				}
				t.Logf("%d messages of %d bytes take %d KiB", sent, tt.size, took>>10)
				if took > 2*buffer+64<<10 {
					t.Errorf("%d messages of %d bytes take %d KiB, the buffer is %d KiB", sent, tt.size, took>>10, buffer>>10)
				}
				if sent*tt.size < buffer/1000 {
					t.Errorf("only %d messages of %d bytes were taken", sent, tt.size)
				}
				runtime.KeepAlive(s)
			})
		})
	}
}

func heap() int {
	runtime.GC()
	runtime.GC() // what pools have
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
