package relay_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
)

// lines is a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// A gateway that is away for long is in the log now and then, and its return at once.
func TestAbsentGatewayIsLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		w := newWorld(t, 1, 2, 1, false, func(c *relay.GatewayConfig) {
			if c.Site == 1 {
				c.Log = slog.New(slog.NewTextHandler(&log, nil))
			}
		})
		defer w.Close()
		w.connected()
		w.Kill(2, 1)
		time.Sleep(10 * time.Minute)
		if n := log.count("no leg to gateway"); n < 8 || n > 13 {
			t.Errorf("%d lines in 10 minutes, want one each minute", n)
		}
		w.Revive(2, 1)
		time.Sleep(10 * time.Second)
		if n := log.count("leg up"); n != 2 {
			t.Errorf("%d lines for legs that are up, want 2", n)
		}
	})
}
