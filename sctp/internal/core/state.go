package core

// State is the state of an association (RFC 9260, Section 4).
type State uint8

// The states of RFC 9260, Figure 3.
const (
	Closed State = iota
	CookieWait
	CookieEchoed
	Established
	ShutdownPending
	ShutdownSent
	ShutdownReceived
	ShutdownAckSent
)

var stateNames = [...]string{"CLOSED", "COOKIE-WAIT", "COOKIE-ECHOED", "ESTABLISHED",
	"SHUTDOWN-PENDING", "SHUTDOWN-SENT", "SHUTDOWN-RECEIVED", "SHUTDOWN-ACK-SENT"}

// String returns the name that RFC 9260 gives the state.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// canQueue reports whether the user may hand over data for sending.
// RFC 9260, Section 9.2: "An endpoint SHOULD reject any new data request from
// its upper layer if it is in the SHUTDOWN-PENDING, SHUTDOWN-SENT,
// SHUTDOWN-RECEIVED, or SHUTDOWN-ACK-SENT state."
func (s State) canQueue() bool { return s == CookieWait || s == CookieEchoed || s == Established }

// canSendData reports whether DATA chunks may leave. COOKIE-ECHOED is not in
// it: there DATA leaves only behind the COOKIE ECHO.
func (s State) canSendData() bool {
	return s == Established || s == ShutdownPending || s == ShutdownReceived
}

// canReceiveData reports whether DATA chunks are accepted (RFC 9260, Section 6,
// Figure 6 and Section 9.2). In COOKIE-ECHOED the COOKIE ACK may have been
// lost or reordered; the data is then not acknowledged and comes again.
func (s State) canReceiveData() bool {
	return s == Established || s == ShutdownPending || s == ShutdownSent
}

// connected reports whether both tags are known and agreed on.
func (s State) connected() bool { return s >= Established }

// setState moves the association to state s, for the reason given. Every transition goes
// through it.
func (c *situation) setState(s State, reason string) {
	from := c.state
	c.state = s
	if s != Established { // else recheckSlow clears it, together with what else has changed
		c.slow |= slowState
	}
	if c.cfg.TellStates {
		c.events.push(Event{Kind: EventState, Change: &Transition{From: from, To: s, Reason: reason}})
	}
}

// endReason returns the reason for the end of an association that ends with err.
func endReason(err error) string {
	if err == nil {
		return "graceful shutdown"
	}
	return err.Error()
}
