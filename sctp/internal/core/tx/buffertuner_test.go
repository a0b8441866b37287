package tx

import (
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// path acknowledges what a path of some rate and round-trip time would.
func (t *BufferTuner) path(now clock.Time, span, rtt clock.Time, rate int64) clock.Time {
	const step clock.Time = 1_000_000
	for end := now + span; now < end; now += step {
		t.Ack(now, int(rate*int64(step)/1_000_000_000), rtt)
	}
	return now
}

func TestSendTuneFollowsThePath(t *testing.T) {
	var s BufferTuner
	if got := s.Limit(0); got != tuneFloor {
		t.Errorf("limit at first = %d, want %d", got, tuneFloor)
	}
	const ms = 1_000_000
	now := s.path(1, 2000*ms, 100*ms, 125e6)
	want := int64(tuneFactor * 125e6 / 10)
	if got := s.Limit(0); got < want*8/10 || got > want*12/10 {
		t.Errorf("limit at 1 Gb/s and 100 ms = %d, want about %d", got, want)
	}
	// A pause is no loss of rate.
	now = s.path(now, 1000*ms, 100*ms, 1e6)
	if got := s.Limit(0); got < want*8/10 {
		t.Errorf("limit after a pause = %d, want about %d", got, want)
	}
	// A queue is no capacity.
	now = s.path(now, 1000*ms, 900*ms, 125e6)
	if got := s.Limit(0); got > want*12/10 {
		t.Errorf("limit with a queue = %d, want about %d", got, want)
	}
	// But a longer way is, in the end.
	now = s.path(now, 12_000*ms, 200*ms, 125e6)
	if got := s.Limit(0); got < 2*want*8/10 {
		t.Errorf("limit after the way became longer = %d, want about %d", got, 2*want)
	}
	// And a slower one.
	now = s.path(now, 12_000*ms, 1*ms, 1e6)
	if got := s.Limit(0); got != tuneFloor {
		t.Errorf("limit at 8 Mb/s = %d, want %d", got, tuneFloor)
	}
	if s.LowRTT(0) {
		t.Error("1 ms is near")
	}
	s.path(now, 12_000*ms, ms/10, 1e6)
	if !s.LowRTT(0) || s.LowRTT(2*ms) {
		t.Errorf("100 µs is near: %v, with a path of 2 ms besides: %v", s.LowRTT(0), s.LowRTT(2*ms))
	}
}

// Where the round trip is short, few bytes are queued before a large message, and as many
// small ones as elsewhere.
func TestNearLimitIsForLargeMessages(t *testing.T) {
	for _, size := range []int{64, lowRTTMessage - 1, lowRTTMessage, 2 * lowRTTMessage} {
		q := NewQueue(64<<20, 1, SchedFCFS)
		q.SetSoftLimit(tuneFloor, true)
		m, n := Message{Body: make([]byte, size)}, 0
		for q.Push(1, &m) == nil {
			n++
		}
		want := (tuneFloor + size + softCharge - 1) / (size + softCharge)
		if size >= lowRTTMessage {
			want = (tuneLowRTT + size - 1) / size
		}
		if n != want {
			t.Errorf("%d messages of %d bytes are queued, want %d", n, size, want)
		}
		q.SetSoftLimit(tuneFloor, false)
		if got := q.Unblocked(); got != (size >= lowRTTMessage) {
			t.Errorf("%d bytes: room without the limit: %v", size, got)
		}
	}
}

func TestSoftLimitTakesLargeMessagesWhole(t *testing.T) {
	q := NewQueue(4<<20, 1, SchedFCFS)
	q.SetSoftLimit(512<<10, false)
	m := Message{Body: make([]byte, 1<<20)}
	if err := q.Push(1, &m); err != nil {
		t.Fatal(err)
	}
	if err := q.Push(1, &m); err != ErrWouldBlock {
		t.Errorf("a message beyond the soft limit: %v, want ErrWouldBlock", err)
	}
	q.SetSoftLimit(4<<20, false)
	if !q.Unblocked() {
		t.Error("a larger soft limit did not unblock the queue")
	}
	m.Body = make([]byte, 2<<20)
	if err := q.Push(1, &m); err != nil {
		t.Errorf("a message that begins below the soft limit: %v", err)
	}
}

// Small messages take more of the caches than their bytes, so fewer bytes of
// them are queued.
func TestSoftLimitCountsMessages(t *testing.T) {
	q := NewQueue(64<<20, 1, SchedFCFS)
	q.SetSoftLimit(tuneFloor, false)
	m, n := Message{Body: make([]byte, 64)}, 0
	for q.Push(1, &m) == nil {
		n++
	}
	if want := (tuneFloor + 64 + softCharge - 1) / (64 + softCharge); n != want {
		t.Errorf("%d messages of 64 bytes are queued, want %d", n, want)
	}
}
