package sctp

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"

	"github.com/weftstack/weft/sctp/internal/core"
)

// Dynamic SCTP ports (RFC 6335, Section 6).
const firstEphemeral, lastEphemeral = 49152, 65535

// peerKey finds an association without its verification tag.
type peerKey struct {
	remote      netip.AddrPort
	local, peer uint16
}

// demux finds the association or endpoint that a packet is for.
type demux struct {
	mu     sync.RWMutex
	tags   tagTable
	peers  map[peerKey]*Association
	ports  map[uint16]*Endpoint
	closed bool
	gone   retiredTags
}

func (d *demux) init() {
	d.peers = map[peerKey]*Association{}
	d.ports = map[uint16]*Endpoint{}
}

func (d *demux) byTag(tag uint32) *Association {
	d.mu.RLock()
	a := d.tags.get(tag)
	d.mu.RUnlock()
	return a
}

// retired reports whether an association that is gone had the tag.
func (d *demux) retired(tag uint32, now core.Time) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.gone.has(tag, now)
}

func (d *demux) byPeer(k peerKey) *Association {
	d.mu.RLock()
	a := d.peers[k]
	d.mu.RUnlock()
	return a
}

func (d *demux) endpoint(port uint16) *Endpoint {
	d.mu.RLock()
	e := d.ports[port]
	d.mu.RUnlock()
	return e
}

func (d *demux) len() int { return d.tags.len() }

func (d *demux) isClosed() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.closed
}

// addEndpoint gives e a port: the one asked for, or a free one for 0.
func (d *demux) addEndpoint(e *Endpoint, port uint16) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return ErrClosed
	case len(d.ports) >= MaxPorts:
		return ErrLimit
	case port != 0 && d.ports[port] != nil:
		return ErrPortInUse
	}
	if port == 0 {
		// RFC 6056, Section 3.3.1: random ports are harder to guess. Less than
		// all of the range can be in use, by MaxPorts.
		const n = lastEphemeral - firstEphemeral + 1
		start := rand.IntN(n)
		for i := range n {
			port = uint16(firstEphemeral + (start+i)%n)
			if d.ports[port] == nil {
				break
			}
		}
		if d.ports[port] != nil {
			return ErrLimit
		}
	}
	e.port = port
	e.listen()
	d.ports[port] = e
	return nil
}

func (d *demux) removeEndpoint(e *Endpoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ports[e.port] == e {
		delete(d.ports, e.port)
	}
}

// full reports whether the limit of associations is reached.
func (d *demux) full(limit int) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.tags.len() >= limit
}

// add makes an association known by its tag and its peer's addresses. An
// address of mine that another association has already is an error, ErrExists;
// any other such address stays with that one: peers may list private addresses
// that others have, too.
func (d *demux) add(a *Association, tag uint32, keys, mine []peerKey, limit int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return ErrClosed
	case d.tags.len() >= limit:
		return ErrLimit
	case d.tags.get(tag) != nil:
		return ErrExists
	}
	for _, k := range mine {
		if d.peers[k] != nil {
			return ErrExists
		}
	}
	d.tags.put(tag, a)
	for _, k := range keys {
		if d.peers[k] == nil {
			d.peers[k] = a
		}
	}
	a.tag.Store(tag)
	a.keys = keys
	return nil
}

// update changes the tag and addresses an association is known by. Addresses
// that another association has stay with that one.
func (d *demux) update(a *Association, tag uint32, keys []peerKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tags.get(a.tag.Load()) != a {
		return // it has ended
	}
	if old := a.tag.Load(); old != tag && d.tags.get(tag) == nil {
		d.tags.remove(old)
		d.gone.add(old, a.cookiesUntil())
		d.tags.put(tag, a)
		a.tag.Store(tag)
	}
	for _, k := range a.keys {
		if !slices.Contains(keys, k) && d.peers[k] == a {
			delete(d.peers, k)
		}
	}
	for _, k := range keys {
		if d.peers[k] == nil {
			d.peers[k] = a
		}
	}
	a.keys = keys
}

func (d *demux) remove(a *Association) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if tag := a.tag.Load(); d.tags.get(tag) == a {
		d.tags.remove(tag)
		d.gone.add(tag, a.cookiesUntil())
	}
	for _, k := range a.keys {
		if d.peers[k] == a {
			delete(d.peers, k)
		}
	}
	a.keys = nil
}

// associations returns those of an endpoint.
func (d *demux) associations(e *Endpoint) (list []*Association) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, s := range d.tags.slots {
		if s.a != nil && s.a.ep == e {
			list = append(list, s.a)
		}
	}
	return list
}

// endpoints returns all endpoints.
func (d *demux) endpoints() []*Endpoint {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return slices.Collect(maps.Values(d.ports))
}

// close lets nothing be added any more and returns the endpoints; false if it
// was called before.
func (d *demux) close() (list []*Endpoint, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, false
	}
	d.closed = true
	for _, e := range d.ports {
		list = append(list, e)
	}
	return list, true
}
