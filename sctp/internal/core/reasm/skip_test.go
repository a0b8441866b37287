package reasm

import (
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/seq"
)

func TestForwardAbortsWhatWasBegun(t *testing.T) {
	for _, idata := range []bool{false, true} {
		r := newRecv(Config{Interleaved: idata, Pieces: true})
		mustAdd(t, r, chunk(1, 0, 0, 0, "B", "a"), chunk(4, 0, 1, 0, "BE", "b"), chunk(5, 1, 0, 0, "BU", "u"))
		wantPieces(t, r, "<0:a", "<1:u")
		r.SkipMessages(0, false, 0)
		if idata {
			r.SkipMessages(1, true, 0)
		}
		r.Forward(6)
		wantPieces(t, r, "0:>!", "1:>!", "<0:b>") // streams take turns
		if r.msgs > 1 {                           // one may wait to swallow remnants
			t.Errorf("idata %v: %d messages left", idata, r.msgs)
		}
	}
}

func TestForwardRemnantsAreSwallowed(t *testing.T) {
	// A peer that gives up a message in the middle and still sends its end.
	r := newRecv(Config{})
	mustAdd(t, r, chunk(1, 0, 0, 0, "B", "a"), chunk(4, 0, 0, 0, "E", "d"), chunk(5, 0, 1, 0, "BE", "next"))
	r.SkipMessages(0, false, 0)
	r.Forward(2)
	if res := r.Add(chunk(3, 0, 0, 0, "", "c"), nil); res != stale {
		t.Errorf("remnant: %v, want stale", res)
	}
	if res := r.CheckUpTo(5); res != taken {
		t.Errorf("CheckUpTo = %v", res)
	}
	wantRead(t, r, AnyStream, "next", true)
	// And a whole message of before the skip, which is not acceptable otherwise.
	if res := r.Add(chunk(6, 0, 0, 0, "B", "old"), nil); res != stale {
		t.Errorf("old message: %v, want stale", res)
	}
	if res := r.Add(chunk(7, 0, 0, 0, "E", "old"), nil); res != stale {
		t.Errorf("old message's end: %v, want stale", res)
	}
	if res := r.CheckUpTo(7); res != taken || r.msgs != 0 || r.frags != 0 {
		t.Errorf("CheckUpTo = %v, %d messages, %d fragments", res, r.msgs, r.frags)
	}
}

func TestForwardToTheLastFragmentReceived(t *testing.T) {
	// The message is abandoned, so what follows is another one.
	r := newRecv(Config{})
	mustAdd(t, r, chunk(2, 0, 0, 0, "BU", "a"))
	r.Forward(2)
	if r.frags != 0 {
		t.Errorf("%d fragments held, want 0", r.frags)
	}
	mustAdd(t, r, chunk(3, 0, 0, 0, "BU", "b"), chunk(4, 0, 0, 0, "EU", "c"))
	wantRead(t, r, AnyStream, "bc", true)
	if res := r.CheckUpTo(4); res != taken || r.msgs != 0 {
		t.Errorf("CheckUpTo = %v, %d messages left", res, r.msgs)
	}
}

func TestForwardFar(t *testing.T) {
	// Few messages, huge numbers: the work is bounded by what is held.
	r := newRecv(Config{Interleaved: true})
	mustAdd(t, r, chunk(3, 0, 5, 0, "BE", "five"), chunk(4, 0, 1<<30, 0, "BE", "far"), chunk(5, 0, 7, 0, "B", "lost"))
	r.SkipMessages(0, false, 1<<30+1)
	r.SkipMessages(0, false, 9) // a smaller one later does not take it back
	r.Forward(1 << 30)
	wantRead(t, r, AnyStream, "five", true)
	wantRead(t, r, AnyStream, "far", true)
	wantNothing(t, r, AnyStream)
	if st := r.stream(0); st.next != 1<<30+2 || r.frags != 0 {
		t.Errorf("next = %d, %d fragments; want %d, 0", st.next, r.frags, 1<<30+2)
	}
}

func TestResetStreams(t *testing.T) {
	for _, idata := range []bool{false, true} {
		for _, sids := range [][]uint16{{0, 2, 99}, nil} {
			r := newRecv(Config{Interleaved: idata})
			mustAdd(t, r, chunk(1, 0, 0, 0, "BE", "a"), chunk(2, 1, 0, 0, "BE", "b"))
			r.DeferReset(sids, 4)
			// RFC 6525, Section 5.2.2, E2: TSNs beyond 4 wait.
			mustAdd(t, r, chunk(5, 0, 0, 0, "BE", "A"), chunk(6, 2, 0, 0, "BE", "C"), chunk(4, 0, 2, 0, "BE", "d"))
			if len(sids) > 0 {
				mustAdd(t, r, chunk(7, 1, 1, 0, "BE", "e")) // not affected
			}
			wantRead(t, r, 0, "a", true)
			wantNothing(t, r, 0)
			wantNothing(t, r, 2)
			mustAdd(t, r, chunk(3, 0, 1, 0, "BE", "c"))
			if res := r.ResetStreams(sids); res != taken {
				t.Fatalf("reset: %v", res)
			}
			wantRead(t, r, 0, "c", true)
			wantRead(t, r, 0, "d", true)
			wantRead(t, r, 0, "A", true)
			wantRead(t, r, 2, "C", true)
			wantRead(t, r, 1, "b", true)
			if len(sids) > 0 {
				wantRead(t, r, 1, "e", true)
			} else {
				mustAdd(t, r, chunk(8, 1, 0, 0, "BE", "again"))
				wantRead(t, r, 1, "again", true)
			}
			if r.window.held != 0 {
				t.Errorf("%d bytes held", r.window.held)
			}
		}
	}
}

func TestResetHeldIsReleasedOnClose(t *testing.T) {
	r := newRecv(Config{})
	r.DeferReset(nil, 10)
	mustAdd(t, r, chunk(11, 3, 0, 0, "BE", "A"))
	r.Close()
	if r.frags != 0 || r.window.held != 0 {
		t.Errorf("%d fragments, %d bytes after close", r.frags, r.window.held)
	}
}

// What a reset holds back takes no more memory when it is placed: the window has counted
// the records of its messages already (RFC 9260, Section 6.2: a_rwnd; RFC 6525, Section 5.2.2, E2).
func TestHeldBackMessagesAreCharged(t *testing.T) {
	for name, release := range map[string]func(r *Queue){
		"reset":   func(r *Queue) { r.ResetStreams(nil) },
		"undefer": func(r *Queue) { r.Undefer(false, nil, 0) },
		"advance": func(r *Queue) { r.AdvanceDefer(1000) },
		"restart": func(r *Queue) { r.Restart(1000) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecv(Config{Limit: 4000})
			r.DeferReset(nil, 1)
			n := uint32(0)
			for ; r.window.used() < r.window.bound(); n++ {
				mustAdd(t, r, chunk(2+n, 0, n, 0, "BE", "tiny"))
			}
			before := r.window.held
			release(r)
			if r.window.held > before {
				t.Errorf("%d bytes held of %d tiny messages, %d before they were placed", r.window.held, n, before)
			}
			if err := r.Verify(); err != nil {
				t.Error(err)
			}
			r.Close()
			if r.window.held != 0 {
				t.Errorf("%d bytes held after Close", r.window.held)
			}
		})
	}
}

// A FORWARD-TSN that comes while the buffer is as full as may be adds no more than the record
// of what swallows the rest of the abandoned message.
func TestSkippedMessageWithFullBuffer(t *testing.T) {
	r := newRecv(Config{Limit: 2550})
	m := newTSNMap(1)
	n := uint32(1)
	for ; r.Room(m, seq.TSN(n), 4); n++ {
		mustAdd(t, r, chunk(n, 0, n-1, 0, "BE", "tiny"))
		m.Observe(seq.TSN(n))
	}
	before := r.window.held
	r.Forward(seq.TSN(n))
	if got := r.window.held - before; got != messageRecord {
		t.Errorf("%d bytes more are held, want the record of %d", got, messageRecord)
	}
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}
