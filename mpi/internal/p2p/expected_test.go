package p2p

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// What receives, probes and sends wait for is listed, and is gone once they have ended; standing receives of services
// are not.
func TestExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestEngine(t)
		list := func() string {
			all := c.Engine.Expected()
			slices.SortFunc(all, func(a, b Expected) int { return cmp.Or(int(a.Kind)-int(b.Kind), int(a.Tag-b.Tag)) })
			text := ""
			for _, v := range all {
				text += fmt.Sprintf("%d %d %d %d %d;", v.Kind, v.Slot, v.Peer, v.Tag, v.Room)
			}
			return text
		}
		if got := list(); got != "" {
			t.Errorf("%s, want nothing", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r, err := c.Irecv(SlotUser, make([]byte, 12), 1, 5)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Isend(SlotColl, SendSync, nil, 1, 6)
		if err != nil {
			t.Fatal(err)
		}
		standing := GetRequest(c.Engine)
		standing.Standing = true
		c.StartRecv(standing, SlotWin, nil, 1, 0)
		done := make(chan error)
		go func() {
			_, _, err := c.Probe(ctx, AnySource, AnyTag, false)
			done <- err
		}()
		synctest.Wait()
		want := fmt.Sprintf("0 %d 1 5 12;1 %d %d %d 0;3 %d 1 6 0;", SlotUser, SlotUser, AnySource, AnyTag, SlotColl)
		if got := list(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		cancel()
		if err := <-done; err == nil {
			t.Error("the probe found a message")
		}
		r.Cancel(context.Canceled)
		c.Engine.IDs.remove(s.id, s.Peer)
		if got := list(); got != "" {
			t.Errorf("%s, want nothing", got)
		}
	})
}
