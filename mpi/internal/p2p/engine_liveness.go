package p2p

import (
	"sync"
	"time"
)

// LivenessReporter reports when a peer stops answering, and when it answers again.
type LivenessReporter struct {
	mu           sync.Mutex
	timer        *time.Timer // sets unresponsive; nil while the peer answers
	unresponsive bool        // the timer has expired
	over         bool        // the peer has ended

	reporting sync.Mutex // held during a report
	reported  bool       // unresponsive as last reported; guarded by reporting
}

// End ends the reports about a peer.
func (s *LivenessReporter) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.timer != nil {
		s.timer.Stop()
	}
}

// Note notes whether the peer answers. If not, it is unresponsive after a delay. note calls changed,
// on another goroutine, when there is something to report.
func (s *LivenessReporter) Note(answers bool, delay time.Duration, changed func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
	case !answers && s.timer == nil:
		var t *time.Timer
		t = time.AfterFunc(max(delay, 0), func() {
			s.mu.Lock()
			s.unresponsive = s.unresponsive || s.timer == t
			s.mu.Unlock()
			changed()
		})
		s.timer = t
	case answers && s.timer != nil:
		s.timer.Stop()
		s.timer, s.unresponsive = nil, false
		go changed() // which may wait for the launcher
	}
}

// Report calls f, one call at a time, if the peer has stopped or begun to answer since the last
// report.
func (s *LivenessReporter) Report(f func(unresponsive bool)) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	s.mu.Lock()
	unresponsive, over := s.unresponsive, s.over
	s.mu.Unlock()
	if unresponsive == s.reported || over {
		return
	}
	s.reported = unresponsive
	f(unresponsive)
}
