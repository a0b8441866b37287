package sctp

import (
	"net/netip"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core"
)

// What happens while an upcall takes its time is remembered up to a bound; of the
// beginning, a restart and the end it tells all the same.
func TestNotificationsAreBounded(t *testing.T) {
	var tr [2]*Transport
	for i := range tr {
		var err error
		tr[i], err = NewTransport(TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
		if err != nil {
			t.Fatal(err)
		}
		defer tr[i].Close()
	}
	blocked, release := make(chan struct{}), make(chan struct{})
	var told []NotificationKind
	done := make(chan struct{})
	server, err := tr[0].Listen(0, &Config{OneToMany: true, OnNotify: func(_ *Association, n Notification) {
		if len(told) == 0 {
			close(blocked)
			<-release
		}
		if told = append(told, n.Kind); n.Kind == NotifyDown {
			close(done)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := tr[1].Listen(0, &Config{Backlog: -1})
	if err != nil {
		t.Fatal(err)
	}
	peer, err := client.Connect(t.Context(), server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	<-blocked
	a := server.Associations()[0]
	a.mu.Lock()
	var k wakeList
	for range 3 * maxNotes {
		a.event(&core.Event{Kind: core.EventPeerError}, &k)
	}
	if len(a.notes) != maxNotes {
		t.Errorf("%d notifications wait, want %d", len(a.notes), maxNotes)
	}
	for range maxNotes {
		a.event(&core.Event{Kind: core.EventRestart}, &k)
		a.event(&core.Event{Kind: core.EventPeerError}, &k)
	}
	if len(a.notes) != maxNotes+1 {
		t.Errorf("%d notifications wait after restarts, want %d", len(a.notes), maxNotes+1)
	}
	a.mu.Unlock()
	peer.Abort("enough")
	<-peer.Done()
	close(release)
	<-done
	if told[0] != NotifyUp || len(told) > maxNotes+10 {
		t.Errorf("%d notifications, the first one %v", len(told), told[0])
	}
}
