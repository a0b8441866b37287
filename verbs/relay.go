package verbs

import (
	"context"

	"github.com/weftstack/weft/ddp/ddprelay"
	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// target names a device over SCTP, or over a relay node.
type target struct {
	sctp    sctp.Addr
	process relay.Address
}

// overRelay reports whether it is a process behind gateways.
func (t *target) overRelay() bool { return t.process != relay.Address{} }

func (t *target) String() string {
	if t.overRelay() {
		return t.process.String()
	}
	return t.sctp.String()
}

// reaches reports whether the device has what connects to the target.
func (d *Device) reaches(t *target) bool {
	if t.overRelay() {
		return d.relay != nil
	}
	return d.ep != nil
}

// dial returns the association with the device at a target, and opens it if there is none.
func (d *Device) dial(ctx context.Context, t *target) (*ddpsctp.Association, error) {
	if t.overRelay() {
		return d.relay.Dial(ctx, t.process)
	}
	return d.ep.Dial(ctx, t.sctp)
}

// listenRelay makes the device a service of the relay node.
func (d *Device) listenRelay() (err error) {
	d.relay, err = ddprelay.Listen(d.cfg.Relay, d.cfg.Service, ddprelay.Config{
		Streams: d.cfg.Streams, Backlog: d.cfg.Backlog, OnRequest: d.onRequest, OnNotify: d.onRelay,
	})
	return err
}

// onRelay takes a notification of the relay endpoint: upcall.
func (d *Device) onRelay(peer relay.Address, up bool, err error) {
	e := Event{Type: EventPeerDown, Process: peer, Err: err}
	if up {
		e.Type = EventPeerUp
	}
	d.events.push(e)
}

// ConnectRelay is Connect to the device of the process at addr that has the same Config.Service as this one, through
// the gateways of Config.Relay. All queue pairs with that device share an association, which gateways that die do not
// end. It ends, and the queue pairs with it, with relay.ErrRestarted if the process has restarted, and with
// relay.ErrUnreachable if it does not answer for relay.NodeConfig.PeerTimeout, which is noticed ddprelay.KeepAlive
// later if nothing is sent. Errors to test for: those of Connect, and of relay.Sender.Send.
//
// A write, read or send behaves as over SCTP, with the same checks at its target: it completes when the target
// process, not a gateway, has confirmed it.
func (d *Device) ConnectRelay(ctx context.Context, addr relay.Address, qp *QP, p ConnParams) (ConnInfo, error) {
	if err := d.checkConnect(qp, &p); err != nil {
		return ConnInfo{}, err
	}
	if addr == (relay.Address{}) {
		return ConnInfo{}, explain(relay.ErrAddress, "process %v", addr)
	}
	if d.relay == nil {
		return ConnInfo{}, ErrNoTransport
	}
	return qp.initiate(ctx, target{process: addr}, nil, p)
}

// RelayStats returns the counters of the device as a service of its relay node, zeros if it has none. Stats has those
// that are of Stats in it, too.
func (d *Device) RelayStats() ddprelay.Stats {
	if d.relay == nil {
		return ddprelay.Stats{}
	}
	return d.relay.Stats()
}

// add adds the counters of another endpoint.
func add(a *ddpsctp.Stats, b ddpsctp.Stats) {
	a.Initiated += b.Initiated
	a.Accepted += b.Accepted
	a.Rejected += b.Rejected
	a.Refused += b.Refused
	a.Killed += b.Killed
	a.Collided += b.Collided
	a.Dropped += b.Dropped
	a.NotDDP += b.NotDDP
	a.Associations += b.Associations
	a.Pending += b.Pending
}
