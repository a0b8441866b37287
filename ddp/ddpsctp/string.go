package ddpsctp

import "fmt"

// String names the endpoint by its address.
func (e *Endpoint) String() string { return fmt.Sprintf("ddpsctp.Endpoint %v", e.ep.Addr()) }

// String names the association by its endpoint.
func (a *Association) String() string {
	if a.ep == nil {
		return "ddpsctp.Association"
	}
	return fmt.Sprintf("ddpsctp.Association of %v", a.ep)
}

// String tells the stream identifier.
func (s *Session) String() string { return fmt.Sprintf("ddpsctp.Session %d", s.sid.Load()) }

// String tells the session.
func (r *Request) String() string { return fmt.Sprintf("ddpsctp.Request of %v", r.s) }

// String tells what it is only: the rest is guarded by a lock.
func (c *Acceptor) String() string { return "ddpsctp.Acceptor" }
