package sctp

import (
	"sync"
	"testing"

	"github.com/pion/logging"

	weft "github.com/weftstack/weft/sctp"
)

// observingLoggers is a LoggerFactory that keeps what it is given to read statistics.
type observingLoggers struct {
	logging.LoggerFactory
	mu   sync.Mutex
	read []func() weft.Stats
}

func (l *observingLoggers) ObserveStats(read func() weft.Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read = append(l.read, read)
}

func (l *observingLoggers) all() []func() weft.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.read
}

// TestObserveStats has the factory of two ends count what is sent.
func TestObserveStats(t *testing.T) {
	l := &observingLoggers{LoggerFactory: logging.NewDefaultLoggerFactory()}
	a, b := pair(t, true, WithLoggerFactory(l))
	read := l.all()
	if len(read) != 2 {
		t.Fatalf("the factory was told of %d associations, want 2", len(read))
	}
	s, err := a.OpenStream(1, PayloadTypeWebRTCBinary)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if got := read[0]().MessagesSent + read[1]().MessagesSent; got != 1 {
		t.Errorf("%d messages sent, want 1", got)
	}
	a.Close()
	b.Close()
	if got := read[0]().MessagesSent + read[1]().MessagesSent; got != 1 {
		t.Errorf("%d messages sent after the end, want 1", got)
	}
}
