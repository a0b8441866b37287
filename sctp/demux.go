package sctp

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/tagtable"
)

// Dynamic SCTP ports (RFC 6335, Section 6).
const firstEphemeral, lastEphemeral = 49152, 65535

// peerKey finds an association without its verification tag.
type peerKey struct {
	remote      netip.AddrPort
	local, peer uint16
}

// peerKeys is how an association is found by the addresses of its peer.
type peerKeys struct{ confirmed, claimed []peerKey }

// demux finds the association or endpoint that a packet is for.
type demux struct {
	mu     sync.RWMutex
	tags   tagtable.Table[Association]
	peers  map[peerKey]*Association   // by confirmed addresses
	claims map[peerKey][]*Association // by addresses that peers only say are theirs
	ports  map[uint16]*Endpoint
	closed bool
	gone   retiredTags
}

func (d *demux) init() {
	d.peers = map[peerKey]*Association{}
	d.claims = map[peerKey][]*Association{}
	d.ports = map[uint16]*Endpoint{}
}

func (d *demux) byTag(tag uint32) *Association {
	d.mu.RLock()
	a := d.tags.Get(tag)
	d.mu.RUnlock()
	return a
}

// retired reports whether an association that is gone had the tag.
func (d *demux) retired(tag uint32, now clock.Time) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.gone.has(tag, now)
}

// byPeer returns the association with the peer that has an address. What a peer lists
// in its INIT, or adds later, is not known to be its own before it was confirmed (RFC
// 9260, Section 5.4), so it does not identify the peer: otherwise a peer could take the
// place of the host that has the address (RFC 5062, Section 2, address camping).
func (d *demux) byPeer(k peerKey) *Association {
	d.mu.RLock()
	a := d.peers[k]
	d.mu.RUnlock()
	return a
}

// byPeerTag is byPeer for an answer to a packet of ours with the tag of the peer: to a
// heartbeat, perhaps, by which an address was to be confirmed. RFC 5062, Section 2.2,
// counts on such answers to end the association of a peer that listed the address of
// another.
func (d *demux) byPeerTag(k peerKey, tag uint32) *Association {
	d.mu.RLock()
	a, claims := d.peers[k], slices.Clone(d.claims[k])
	d.mu.RUnlock()
	if a != nil && len(claims) == 0 {
		return a
	}
	for _, c := range claims {
		if _, peer := c.VerificationTags(); peer == tag {
			return c
		}
	}
	return a
}

func (d *demux) endpoint(port uint16) *Endpoint {
	d.mu.RLock()
	e := d.ports[port]
	d.mu.RUnlock()
	return e
}

func (d *demux) len() int { return d.tags.Len() }

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
	return d.tags.Len() >= limit
}

// add makes an association known by its tag and its peer's addresses. If another association
// has one of the confirmed addresses already it returns that one, and ErrExists.
func (d *demux) add(a *Association, tag uint32, keys peerKeys, limit int) (*Association, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, ErrClosed
	case d.tags.Get(tag) != nil:
		return nil, ErrExists
	}
	for _, k := range keys.confirmed {
		if d.peers[k] != nil {
			return d.peers[k], ErrExists
		}
	}
	if d.tags.Len() >= limit { // not before: a peer that opens at the same time must not be refused
		return nil, ErrLimit
	}
	d.putTag(tag, a)
	d.put(a, keys)
	a.tag.Store(tag)
	return nil, nil
}

// put makes an association known by the addresses of its peer. One that is confirmed for
// another association, too, stays with that one: hosts behind NATs may have the same.
func (d *demux) put(a *Association, keys peerKeys) {
	for _, k := range keys.confirmed {
		if d.peers[k] == nil {
			d.peers[k] = a
		}
	}
	for _, k := range keys.claimed {
		d.claims[k] = append(d.claims[k], a)
	}
	a.keys = keys
}

// take undoes put.
func (d *demux) take(a *Association) {
	for _, k := range a.keys.confirmed {
		if d.peers[k] == a {
			delete(d.peers, k)
		}
	}
	for _, k := range a.keys.claimed {
		list := d.claims[k]
		if i := slices.Index(list, a); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		if d.claims[k] = list; len(list) == 0 {
			delete(d.claims, k)
		}
	}
	a.keys = peerKeys{}
}

// update changes the tag and addresses an association is known by.
func (d *demux) update(a *Association, tag uint32, keys peerKeys) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tags.Get(a.tag.Load()) != a {
		return // it has ended
	}
	if old := a.tag.Load(); old != tag && d.tags.Get(tag) == nil {
		d.removeTag(old)
		d.gone.add(old, a.cookiesUntil())
		d.putTag(tag, a)
		a.tag.Store(tag)
	}
	d.take(a)
	d.put(a, keys)
}

func (d *demux) remove(a *Association) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if tag := a.tag.Load(); d.tags.Get(tag) == a {
		d.removeTag(tag)
		d.gone.add(tag, a.cookiesUntil())
	}
	d.take(a)
}

// associations returns those of an endpoint.
func (d *demux) associations(e *Endpoint) (list []*Association) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for a := range d.tags.All() {
		if a.ep == e {
			list = append(list, a)
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
