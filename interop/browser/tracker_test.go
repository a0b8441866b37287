package main

import "testing"

// TestTracker sends messages of a size in an order with gaps, repeats and damage, and checks each count.
func TestTracker(t *testing.T) {
	for _, text := range []bool{false, true} {
		for _, size := range []int{2, 3, 4, 7, 8, 9, 300, maxMessage} {
			var tr tracker
			b := make([]byte, size)
			add := func(seq uint32) {
				formatOf(text).fill(b, seq)
				tr.add(b, text)
			}
			for seq := range uint32(20) {
				add(seq)
			}
			add(25) // 20 to 24 are missing
			add(22) // late
			add(22) // doubled
			add(3)  // doubled
			want := report{Messages: 24, Bytes: uint64(24 * size), Late: 1, Doubled: 2, Missing: 4}
			if text {
				want.Text = 24
			}
			if tr.report != want {
				t.Errorf("text %v, %d bytes: %+v, want %+v", text, size, tr.report, want)
			}
			if size <= 8 {
				continue
			}
			formatOf(text).fill(b, 26)
			b[size-1] ^= 1
			if tr.add(b, text); tr.Corrupt != 1 {
				t.Errorf("text %v, %d bytes: %d messages are corrupt, want 1", text, size, tr.Corrupt)
			}
		}
	}
}

// TestTrackerWraps numbers messages beyond 32 bits, in headers of any length.
func TestTrackerWraps(t *testing.T) {
	for size := 1; size <= 9; size++ {
		var tr tracker
		b := make([]byte, size)
		tr.next = 1<<32 - 500
		for i := range uint32(1000) {
			binaryFormat.fill(b, tr.next)
			tr.add(b, false)
			if want := (report{Messages: uint64(i + 1), Bytes: uint64(i+1) * uint64(size)}); tr.report != want {
				t.Fatalf("%d bytes: %+v, want %+v", size, tr.report, want)
			}
		}
	}
}

// TestTrackerIsBounded jumps through the numbers: the tracker remembers no more than maxMissing.
func TestTrackerIsBounded(t *testing.T) {
	var tr tracker
	b := make([]byte, 16)
	for range 1000 {
		binaryFormat.fill(b, tr.next+1<<30)
		tr.add(b, false)
	}
	if got := len(tr.missing); got != maxMissing {
		t.Errorf("%d numbers remembered, want %d", got, maxMissing)
	}
	if want := uint64(1000) << 30; tr.Missing != want {
		t.Errorf("%d missing, want %d", tr.Missing, want)
	}
}

// TestProtocol takes the protocols of channels apart.
func TestProtocol(t *testing.T) {
	for _, test := range []struct {
		protocol, service string
		options           sourceOptions
		ok                bool
	}{
		{"echo", "echo", sourceOptions{}, true},
		{"both?size=16&count=3&close=1&text=1", "both", sourceOptions{16, 3, true, true}, true},
		{"source?size=262144", "source", sourceOptions{size: maxMessage}, true},
		{"source?size=262145", "source", sourceOptions{}, false},
		{"source?size=-1", "source", sourceOptions{}, false},
		{"source?count=x", "source", sourceOptions{}, false},
		{"", "", sourceOptions{}, false},
		{"shell", "shell", sourceOptions{}, false},
		{"%", "", sourceOptions{}, false},
	} {
		service, options, err := parseProtocol(test.protocol)
		if (err == nil) != test.ok {
			t.Errorf("%q: error %v, want none: %v", test.protocol, err, test.ok)
		}
		if err == nil && (service != test.service || options != test.options) {
			t.Errorf("%q: %q %+v, want %q %+v", test.protocol, service, options, test.service, test.options)
		}
	}
}
