package relay_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
)

// A process or gateway that is closed is no loss to its peers and not worth a warning; one that falls silent is.
func TestClosedLegsAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log, own lines
		w := newWorld(t, 1, 2, 1, false, func(c *relay.GatewayConfig) {
			if c.Site == 1 {
				c.Log = slog.New(slog.NewTextHandler(&log, nil))
			}
		})
		defer w.Close()
		w.connected()
		g := w.Up[[2]uint16{1, 1}]
		want := func(what string, closed, lost int) {
			t.Helper()
			time.Sleep(2 * time.Second) // more than the leg timeout
			if n, c, d, warned := g.Stats().LegsLost, log.count("leg closed"), log.count("leg down"), log.count("level=WARN"); n != uint64(lost) ||
				c != closed || d != lost || warned != lost {
				t.Errorf("%s: %d legs lost, want %d; in the log %d closed, want %d, %d down and %d warnings", what, n, lost, c, closed, d, warned)
			}
		}
		a, b := w.Node(1, 1, nil), w.Node(1, 2, nil)
		want("two processes", 0, 0)
		a.Close()
		want("a process is closed", 1, 0)
		w.Net.Cut(nodeAddr(1, 2), lanAddr(1, 1))
		b.Close()
		want("a process falls silent", 1, 1)

		c := w.Node(2, 1, func(c *relay.NodeConfig) { c.Log = slog.New(slog.NewTextHandler(&own, nil)) })
		defer c.Close()
		far := w.Up[[2]uint16{2, 1}]
		delete(w.Up, [2]uint16{2, 1})
		far.Close()
		want("a gateway is closed", 2, 1)
		if n := c.Stats().LegsLost; n != 0 || own.count("leg closed") != 1 || own.count("level=WARN") != 0 {
			t.Errorf("a process whose gateway is closed: %d legs lost, in the log %d closed and %d warnings", n, own.count("leg closed"), own.count("level=WARN"))
		}
	})
}
