package gateway

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// Config holds the parameters of a Station.
type Config struct {
	// Process is where the process is, and how it reaches other sites. It must have gateways.
	Process *sites.Process
	Host    Host

	// Transport carries the associations to the gateways. It belongs to the caller, and must be closed after the station.
	Transport *sctp.Transport
	SCTP      sctp.Config

	// Streams is the number of streams of a link for envelopes; there are as many for bodies, and stream 0.
	Streams int
	// MaxProcesses bounds the processes at other sites.
	MaxProcesses int
	// Timeout is after how long without an answer a process is taken for dead.
	Timeout time.Duration
	Log     *slog.Logger // nil: nothing is logged
}

// Host is the rank that has the station.
type Host interface {
	// Params returns the parameters of handshakes between ranks of the job, and false until the key is known. Then a
	// handshake that has begun waits for Station.Connect.
	Params() (handshake.Params, bool)
	// SetupParams returns those of a link setup between jobs.
	SetupParams(setup uint64) (handshake.Params, bool)
	// Claim makes l the link to a process of a link setup, and returns its peer, nil if the process is not to have one.
	Claim(setup uint64, number int, l *Link) *p2p.Peer
	// Linked is called when a link of a setup is up, or could not be made.
	Linked(setup uint64, number int, err error)
	// NoteLiveness notes whether a peer answers, and if not, for how long it has not.
	NoteLiveness(p *p2p.Peer, answers bool, since time.Duration)
}

// mode returns the mode of the relay.
func mode(m sites.Mode) relay.Mode {
	switch m {
	case sites.Chained:
		return relay.Chained
	case sites.Lossy:
		return relay.Lossy
	}
	return relay.Piecewise
}

func addressOf(p *sites.Process) relay.Address {
	return relay.Address{Site: p.Site, Node: p.Node, Process: p.Process}
}

// siteName names a site in messages.
func (c *Config) siteName(site uint16) string {
	if n := c.Process.Names[site]; n != "" {
		return n
	}
	return strconv.Itoa(int(site))
}

// gateways lists the gateways of the own site for messages.
func (c *Config) gateways() string {
	var b strings.Builder
	for i, a := range c.Process.Gateways {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(a.String())
	}
	return b.String()
}

// addressMark is what the relay address follows in the address of a process.
const addressMark = ";relay="

// JoinAddress returns the address of a process for its business card: what the transport within the site has, and where
// the process is for gateways.
func JoinAddress(direct string, p *sites.Process) string {
	return fmt.Sprintf("%s%s%d:%d/%d/%d", direct, addressMark, p.Job, p.Site, p.Node, p.Process)
}

// SplitAddress is the reverse of JoinAddress. job is 0 if the process has no site.
func SplitAddress(s string) (direct string, job uint32, a relay.Address) {
	direct, rest, ok := strings.Cut(s, addressMark)
	if !ok {
		return s, 0, a
	}
	if _, err := fmt.Sscanf(rest, "%d:%d/%d/%d", &job, &a.Site, &a.Node, &a.Process); err != nil {
		return direct, 0, relay.Address{}
	}
	return direct, job, a
}
