package relay_test

import (
	"testing"
	"time"

	"github.com/weftstack/weft/internal/relaytest"
	"github.com/weftstack/weft/sctp/relay"
)

const testJob = relaytest.Job

// What tests use of package relaytest, by short names.
var (
	jobKey, siteKey            = relaytest.Key, relaytest.LegKey
	lan, wan                   = relaytest.LAN, relaytest.WAN
	lanAddr, wanAddr, nodeAddr = relaytest.LANAddr, relaytest.WANAddr, relaytest.NodeAddr
	address, sctpAddr          = relaytest.Address, relaytest.Addr
)

type node = relaytest.Node

// world has sites of gateways and processes on a network in memory.
type world struct{ *relaytest.World }

// newWorld makes sites 1 to n, each with some gateways, that are linked all with all, or, with routes, in a line.
func newWorld(t testing.TB, seed uint64, sites, gateways int, line bool, set func(*relay.GatewayConfig)) *world {
	return &world{relaytest.NewWith(t, seed, sites, gateways, line, set)}
}

// connected waits until the gateways have their legs.
func (w *world) connected() {
	time.Sleep(time.Second)
}

func wantNil(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
