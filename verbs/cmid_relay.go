package verbs

import (
	"context"
	"time"

	"github.com/weftstack/weft/sctp/relay"
)

// ResolveProcess makes the connection one through gateways, as Device.ConnectRelay does: to the device of the process
// at addr. Like ResolveAddr it raises CMAddrResolved, but there is nothing to be found out. Errors: ErrNoTransport
// without Config.Relay, relay.ErrAddress.
func (id *CMID) ResolveProcess(addr relay.Address, timeout time.Duration) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if addr == (relay.Address{}) {
		return explain(relay.ErrAddress, "process %v", addr)
	}
	if id.ch.dev.relay == nil {
		return ErrNoTransport
	}
	if err := id.enter(cmBusy, cmIdle); err != nil {
		return err
	}
	id.process = addr
	id.run(timeout, func(context.Context) (CMEvent, cmState) { return CMEvent{Type: CMAddrResolved}, cmAddr })
	return nil
}

// RemoteProcess returns the address of the peer's process if the connection goes through gateways, else zero.
func (id *CMID) RemoteProcess() relay.Address {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.process
}
