package sctp

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"testing"
	"time"
)

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// stalled waits until the peer has taken all that it takes: until the amount that waits at the sender
// has not changed for a while.
func stalled(t *testing.T, a *Association) int {
	t.Helper()
	last, same := -1, 0
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if n := a.BufferedAmount(); n != last {
			last, same = n, 0
		} else if same++; same == 30 {
			return n
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the amount that waits keeps changing")
	return 0
}

const smallBuffer = 128 << 10

// A peer sends on one stream what nobody reads: it has to stop, and nothing is lost when the reader
// comes.
func TestNobodyReads(t *testing.T) {
	a, b := pair(t, false, WithMaxReceiveBufferSize(smallBuffer))
	s, err := a.OpenStream(1, PayloadTypeWebRTCBinary)
	if err != nil {
		t.Fatal(err)
	}
	const n, size = 4000, 500
	for i := range n {
		msg := make([]byte, size)
		msg[0], msg[1] = byte(i), byte(i>>8)
		if _, err := s.Write(msg); err != nil {
			t.Fatal(err)
		}
	}
	r, err := b.AcceptStream()
	if err != nil {
		t.Fatal(err)
	}
	left := stalled(t, a)
	if left == 0 {
		t.Fatal("all is acknowledged, although nobody reads")
	}
	b.mu.Lock()
	unread := b.unread
	b.mu.Unlock()
	if unread > unreadShare*smallBuffer+unreadMore {
		t.Errorf("%d bytes are unread", unread)
	}
	t.Logf("%d bytes wait at the sender, %d at the receiver", left, unread)
	r.SetReadDeadline(time.Now().Add(20 * time.Second))
	buf := make([]byte, size)
	for i := range n {
		k, err := r.Read(buf)
		if err != nil || k != size || int(buf[0])|int(buf[1])<<8 != i {
			t.Fatalf("message %d: %d bytes, %v, %v", i, k, buf[:2], err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unread != 0 {
		t.Errorf("%d bytes count as unread, but all was read", b.unread)
	}
}

// A peer opens streams that nobody accepts: it has to stop before they take more than the receive
// buffer, and all are accepted later.
func TestNobodyAccepts(t *testing.T) {
	before := heap()
	a, b := pair(t, false, WithMaxReceiveBufferSize(smallBuffer))
	const n = 2000
	for i := range n {
		s, err := a.OpenStream(uint16(i), PayloadTypeWebRTCBinary)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	if left := stalled(t, a); left == 0 {
		t.Fatal("all is acknowledged, although nobody accepts")
	}
	b.mu.Lock()
	waiting, unread := b.accepting.n, b.unread
	b.mu.Unlock()
	t.Logf("%d streams wait, %d bytes; heap +%d", waiting, unread, heap()-before)
	if unread > unreadShare*smallBuffer+unreadMore {
		t.Errorf("%d bytes are unread", unread)
	}
	time.AfterFunc(20*time.Second, func() { b.Close() })
	for i := range n {
		s, err := b.AcceptStream()
		if err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		if _, err := s.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// Messages of which the end does not come may take so much memory, and no more.
func TestIncompleteMessages(t *testing.T) {
	a, b := pair(t, false, WithMaxReceiveBufferSize(smallBuffer), WithMaxMessageSize(64<<20))
	s, err := a.OpenStream(1, PayloadTypeWebRTCBinary)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(make([]byte, 40<<20)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-b.done:
	case <-time.After(20 * time.Second):
		t.Fatal("a message of 40 MiB is being assembled")
	}
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, ErrChunk) {
		t.Errorf("Read = %v, want ErrChunk", err)
	}
}

// WithMaxReassemblyQueueEntries bounds the messages that are unread.
func TestMaxQueueEntries(t *testing.T) {
	a, b := pair(t, false, WithMaxReassemblyQueueEntries(10))
	s, err := a.OpenStream(1, PayloadTypeWebRTCBinary)
	if err != nil {
		t.Fatal(err)
	}
	for range 11 {
		if _, err := s.Write([]byte{1}); err != nil {
			break
		}
	}
	select {
	case <-b.done:
	case <-time.After(10 * time.Second):
		t.Fatal("11 messages wait, 10 may")
	}
}

// Reset and reuse of a stream: what was written before Close comes, then io.EOF, and the number can
// be used again, many times.
func TestCloseAndReuse(t *testing.T) {
	a, b := pair(t, false)
	for i := range 20 {
		s, err := a.OpenStream(3, PayloadTypeWebRTCBinary)
		if err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			if _, err := s.Write([]byte{byte(i), byte(k)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write([]byte{1}); !errors.Is(err, ErrStreamClosed) {
			t.Errorf("Write after Close = %v", err)
		}
		r, err := b.AcceptStream()
		if err != nil {
			t.Fatal(err)
		}
		r.SetReadDeadline(time.Now().Add(10 * time.Second))
		buf := make([]byte, 9)
		for k := range 3 {
			if n, err := r.Read(buf); err != nil || n != 2 || buf[0] != byte(i) || buf[1] != byte(k) {
				t.Fatalf("round %d, message %d: %v, %v", i, k, buf[:n], err)
			}
		}
		if _, err := r.Read(buf); err != io.EOF {
			t.Fatalf("Read = %v, want io.EOF", err)
		}
		if err := r.Close(); err != nil || r.State() != StreamStateClosed {
			t.Fatalf("Close: %v, state %v", err, r.State())
		}
		s.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := s.Read(buf); err != io.EOF || s.State() != StreamStateClosed {
			t.Fatalf("Read = %v, want io.EOF; state %v", err, s.State())
		}
	}
}

func TestReads(t *testing.T) {
	a, b := pair(t, true)
	s, _ := a.OpenStream(1, PayloadTypeWebRTCBinary)
	if _, err := s.WriteSCTP([]byte("hello"), PayloadTypeWebRTCString); err != nil {
		t.Fatal(err)
	}
	r, err := b.AcceptStream()
	if err != nil {
		t.Fatal(err)
	}
	if n, _, err := r.ReadSCTP(make([]byte, 2)); err != io.ErrShortBuffer || n != 5 {
		t.Errorf("short buffer: %d, %v", n, err)
	}
	buf := make([]byte, 9)
	if n, ppi, err := r.ReadSCTP(buf); err != nil || string(buf[:n]) != "hello" || ppi != PayloadTypeWebRTCString {
		t.Errorf("Read = %q, %v, %v", buf[:n], ppi, err)
	}
	r.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := r.Read(buf); err != ErrReadDeadlineExceeded || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read = %v, want ErrReadDeadlineExceeded", err)
	}
	if _, err := s.Write(make([]byte, 65537)); !errors.Is(err, ErrOutboundPacketTooLarge) {
		t.Errorf("Write = %v, want ErrOutboundPacketTooLarge", err)
	}
	if n, err := s.Write(nil); n != 0 || err != nil {
		t.Errorf("Write of nothing = %d, %v", n, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := a.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	r.SetReadDeadline(time.Time{})
	if _, err := r.Read(buf); err != io.EOF {
		t.Errorf("Read after a shutdown = %v, want io.EOF", err)
	}
	if _, err := b.AcceptStream(); err != io.EOF {
		t.Errorf("AcceptStream after a shutdown = %v, want io.EOF", err)
	}
	if _, err := b.OpenStream(5, 0); !errors.Is(err, ErrAssociationClosed) {
		t.Errorf("OpenStream after a shutdown = %v", err)
	}
	if _, err := s.Write([]byte{1}); !errors.Is(err, ErrPayloadDataStateNotExist) {
		t.Errorf("Write after a shutdown = %v", err)
	}
}

func TestAbort(t *testing.T) {
	a, b := pair(t, false)
	s, _ := a.OpenStream(1, PayloadTypeWebRTCBinary)
	s.SetReadDeadline(time.Now().Add(10 * time.Second))
	b.Abort("enough")
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, ErrChunk) || !errors.Is(err, ErrUserInitiatedAbort) {
		t.Errorf("Read = %v, want ErrChunk and ErrUserInitiatedAbort", err)
	}
}

// The callback comes once all is acknowledged, and the amounts are 0 then.
func TestBufferedAmountLow(t *testing.T) {
	a, b := pair(t, false)
	s, _ := a.OpenStream(1, PayloadTypeWebRTCBinary)
	low := make(chan struct{}, 1)
	s.OnBufferedAmountLow(func() {
		select {
		case low <- struct{}{}:
		default:
		}
	})
	if _, err := s.Write(make([]byte, 65536)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-low:
	case <-time.After(10 * time.Second):
		t.Fatal("no callback")
	}
	if s.BufferedAmount() != 0 || a.BufferedAmount() != 0 {
		t.Errorf("BufferedAmount = %d and %d", s.BufferedAmount(), a.BufferedAmount())
	}
	if m, ok := b.Metadata(); !ok || !m.MessageInterleavingEnabled || m.PartialReliabilityMode != PartialReliabilityModeIForwardTSN {
		t.Errorf("Metadata = %+v, %v", m, ok)
	}
	if a.MTU() != defaultMTU/4*4 || a.CWND() == 0 || a.RWND() == 0 || a.SRTT() <= 0 || a.BytesSent() < 65536 || b.BytesReceived() < 65536 {
		t.Errorf("MTU %d, CWND %d, RWND %d, SRTT %v, sent %d, received %d",
			a.MTU(), a.CWND(), a.RWND(), a.SRTT(), a.BytesSent(), b.BytesReceived())
	}
}

// With BlockWrite a write waits until its deadline.
func TestBlockWrite(t *testing.T) {
	a, _ := pair(t, false, WithBlockWrite(true), WithMaxReceiveBufferSize(16<<10))
	s, _ := a.OpenStream(1, PayloadTypeWebRTCBinary)
	s.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		_, err = s.Write(make([]byte, 1000))
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Write = %v, want context.DeadlineExceeded", err)
	}
}

// A stream that is closed while the reset for an earlier one of the same number is under way is reset after that.
func TestCloseDuringReset(t *testing.T) {
	a, b := pair(t, false)
	s, err := a.OpenStream(3, PayloadTypeWebRTCBinary)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	r, err := b.AcceptStream()
	if err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	s.out.state, a.resetting = resetPending, true // the answer has come, and reset is yet to see it
	a.mu.Unlock()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	a.wereReset([]*outgoing{s.out})
	r.SetReadDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, 9)
	if n, err := r.Read(buf); n != 1 || err != nil {
		t.Fatalf("Read = %d, %v", n, err)
	}
	if n, err := r.Read(buf); err != io.EOF {
		t.Errorf("Read = %d, %v, want io.EOF", n, err)
	}
}
