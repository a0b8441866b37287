package reasm

import "testing"

func TestRecvWindow(t *testing.T) {
	var w window
	w.init(100000)
	if got := w.open(); got != 100000 {
		t.Errorf("open = %d, want 100000", got)
	}
	w.held = 100000 - swsSegment
	w.payload = w.held
	if got := w.open(); got != swsSegment {
		t.Errorf("open = %d, want %d", got, swsSegment)
	}
	w.held++ // RFC 9260, Section 6.2: silly window syndrome
	if got := w.open(); got != 0 {
		t.Errorf("open = %d, want 0", got)
	}
	w.advertised(w.open())
	w.held = 100000 - 25000 + 1
	if w.grown() {
		t.Error("update for less than a quarter")
	}
	w.held--
	if !w.grown() {
		t.Error("no update for a quarter")
	}
	w.advertised(60000)
	w.held = 0
	if w.grown() {
		t.Error("update of a window that is wide open")
	}
	w.held = 300000
	if got := w.open(); got != 0 {
		t.Errorf("open = %d, want 0 when overdrawn", got)
	}
}

func TestRoomWhenTheWindowIsClosed(t *testing.T) {
	r := newRecv(Config{Limit: 10000})
	m := newTSNMap(1)
	m.Observe(5)
	for _, tt := range []struct {
		name                     string
		held, credit             int
		cumPlus1, filler, newest bool
	}{
		{"not full", 9999, 0, true, true, true},
		{"full, nothing under way", 10000, 99, true, true, false},
		{"full, more under way", 10000, 100, true, true, true},
		{"overdrawn", 12500, 100, true, false, false},
		{"overdrawn even more", 15000 + messageRecord, 100, false, false, false},
	} {
		r.window.held, r.window.credit = tt.held, tt.credit
		got := [3]bool{r.Room(m, 1, 100), r.Room(m, 3, 100), r.Room(m, 6, 100)}
		if want := [3]bool{tt.cumPlus1, tt.filler, tt.newest}; got != want {
			t.Errorf("%s: room = %v, want %v", tt.name, got, want)
		}
	}
}

func TestCreditIsWhatMayBeUnderWay(t *testing.T) {
	var w window
	w.init(1000)
	w.take(300)
	w.advertised(500) // 700 may be under way by the window of before
	if w.credit != 700 {
		t.Errorf("credit = %d, want 700", w.credit)
	}
	w.take(700)
	w.take(1)
	w.advertised(0)
	if w.credit != 0 {
		t.Errorf("credit = %d, want 0", w.credit)
	}
	w.advertised(400)
	if w.credit != 400 {
		t.Errorf("credit = %d, want 400", w.credit)
	}
}

// What the user keeps and what it gives back may be counted in another order than it happened.
func TestKeepCountsTheSum(t *testing.T) {
	r := newRecv(Config{Limit: 10_000})
	open := r.Rwnd()
	r.Keep(-3000)
	if got := r.Rwnd(); got != open {
		t.Errorf("the window is %d with less than nothing kept, want %d", got, open)
	}
	r.Keep(3000)
	if got := r.Rwnd(); got != open {
		t.Errorf("the window is %d with nothing kept, want %d", got, open)
	}
	r.Keep(3000)
	if got := r.Rwnd(); got != open-3000 {
		t.Errorf("the window is %d with 3000 kept, want %d", got, open-3000)
	}
}
