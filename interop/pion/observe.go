package sctp

import (
	"github.com/pion/logging"

	weft "github.com/weftstack/weft/sctp"
)

// A statsObserver is a LoggerFactory that wants weft's statistics of the associations that it logs for.
// pion/webrtc hides the association, but not the factory: a program that gives each peer connection a
// factory of its own knows whose statistics they are. read may be called at any time, by any goroutine,
// also after the end of the association.
type statsObserver interface {
	ObserveStats(read func() weft.Stats)
}

// observe gives f the statistics of w, if it wants them.
func observe(f logging.LoggerFactory, w *weft.Association) {
	if o, ok := f.(statsObserver); ok {
		o.ObserveStats(w.Stats)
	}
}
