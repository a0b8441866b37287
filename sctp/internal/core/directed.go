package core

// route is what a message demands of the packets that its chunks go in; 0 is
// nothing. All new chunks of a packet demand the same.
type route uint32

// routeVia is the route by a path.
func routeVia(i int) route { return route(i + 1) }

// path returns the path that the route demands, -1 for none.
func (r route) path() int { return int(r&0xff) - 1 }

// head returns the message to continue or begin now, nil if there is none. It
// drops messages that expired before they were begun.
func (q *SendQueue) head(now Time) *outMsg {
	for {
		m := q.cur
		if m == nil {
			if q.stalled {
				return nil
			}
			sid, found := q.sched.next()
			if !found {
				return nil
			}
			m = q.streams[sid].head
		}
		if m.expires == 0 || now < m.expires {
			return m
		}
		// RFC 3758, Section 4.1: when "the lifetime of the message has expired"
		// it "MUST be treated as abandoned" before it is transmitted.
		if m.sent == 0 {
			q.dropUnsent(m)
			continue
		}
		if q.sb == nil || !q.partial || !q.sb.abandon(m) {
			return m
		}
	}
}

// newDataPath returns the path of the next packet with new data, and whether it is
// the one that the message to be sent first names: RFC 9260, Section 6.4, "By
// default, an endpoint SHOULD always transmit to the primary path, unless the SCTP
// user explicitly specifies the destination transport address". Otherwise it is d:
// also when that path cannot be used, because the endpoint "SHOULD try to send the
// data to an alternate active destination transport address if one exists".
func (a *Assoc) newDataPath(now Time, d int) (i int, named bool) {
	q := a.tx.q
	if q.routed == 0 {
		return d, false
	}
	q.route = 0
	m := q.head(now)
	if m == nil {
		return d, false
	}
	q.route = m.route
	if i := m.route.path(); i >= 0 && a.paths[i].usable() {
		return i, true
	}
	return d, false
}

// takesNew reports whether the new data that is sent first may go to path i.
func (a *Assoc) takesNew(now Time, i int) bool {
	d, named := a.newDataPath(now, a.dataPath())
	return i == d || !named && a.carries(i, d)
}

// forgetPath lets the messages that were to go by a path take any: its address is
// not the peer's any more.
func (q *SendQueue) forgetPath(i int) {
	if q.routed == 0 {
		return
	}
	for k := range q.streams {
		for m := q.streams[k].head; m != nil; m = m.next {
			if m.route.path() != i {
				continue
			}
			if m.route -= routeVia(i); m.route == 0 {
				q.routed--
			}
		}
	}
}
