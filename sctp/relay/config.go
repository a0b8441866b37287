package relay

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay/frame"
)

// Address names a process: site, node of the site, and process of the node, each from 1.
type Address = frame.Address

// Mode tells when Send of a Sender returns.
type Mode uint8

// The modes. In the first two a message survives the death of gateways.
const (
	// Piecewise returns when the node has a copy of the message, which it keeps until the target
	// has confirmed it: the buffer is free early.
	Piecewise Mode = iota
	// Chained returns when the target process has all of the message in its memory.
	Chained
	// Lossy returns when Piecewise does. The node keeps a frame only until the gateway that it went to has
	// acknowledged it, so it needs little memory, but what a gateway holds when it dies, or drops, is lost: then the
	// flow ends with ErrLost on both sides. These are the semantics of MPI5000 and ICGM.
	Lossy
)

const (
	// MinKey is the length in bytes of the shortest key.
	MinKey = 16
	// DefaultFlowWindow bounds what a flow has under way, and what a target keeps of it unread:
	// 1.8 times what fits into 1 Gb/s with a round trip of 18 ms.
	DefaultFlowWindow = 4 << 20
	// MinFlowWindow is the smallest flow window.
	MinFlowWindow = 64 << 10
	// DefaultSendMemory and DefaultRecvMemory bound the memory in bytes of all flows of a node.
	DefaultSendMemory, DefaultRecvMemory = 64 << 20, 64 << 20
	// FlowReserve is what each flow may use in each direction, in bytes, even when others use all
	// of the memory, so that it is not held up by them.
	FlowReserve = 32 << 10
	// DefaultMaxFlows bounds the flows of a node in each direction, and those of a gateway.
	DefaultMaxFlows = 1 << 16
	// DefaultPeerTimeout is after how long without an answer of the target a flow ends.
	DefaultPeerTimeout = 30 * time.Second

	// initialWindow is the window of a flow that has not been answered yet, in bytes.
	initialWindow = 64 << 10
	// maxCredit is the largest credit that a frame takes.
	maxCredit = frame.MaxSize + creditCost
)

// NodeConfig holds the parameters of a Node. Address, Job, Key, Gateways and Transport must be set.
type NodeConfig struct {
	// Address is that of this process, Job the job that it belongs to, and Key the key of the
	// job, of at least MinKey random bytes.
	Address Address
	Job     uint32
	Key     []byte

	// Gateways are the gateways of the site: the node has a leg to each, and its flows share them.
	Gateways []sctp.Addr

	// Direct, if not nil, is a way to other processes beside the gateways: it gives the address where one listens
	// (its Node.Addr, over the network between the sites), or false if there is none. It must not block. Direct legs are opened
	// when they are needed, by whichever side, authenticated by Key, and closed when they are not used. Flows
	// take one while no gateway of the site is up or a gateway cannot reach the process, with DirectFirst always when it is
	// up. Nodes accept direct legs only if they have Direct themselves. With Direct, Gateways may be empty.
	Direct      func(Address) (sctp.Addr, bool)
	DirectFirst bool

	// Transport carries the associations, on the SCTP port Port, or a free one if it is 0. It
	// belongs to the caller, and must be closed after the node.
	Transport *sctp.Transport
	Port      uint16
	// SCTP are the parameters of the associations. This package sets their streams and upcalls.
	SCTP sctp.Config

	// Mode tells when Send returns.
	Mode Mode

	// FlowWindow, SendMemory, RecvMemory and MaxFlows are limits; the constants of these names
	// are the defaults. In addition each flow may use FlowReserve.
	FlowWindow, SendMemory, RecvMemory, MaxFlows int

	// LegTimeout is after how long without a frame a gateway is dead, PeerTimeout after how
	// long without an answer of its target a flow ends with ErrUnreachable (negative: never).
	LegTimeout, PeerTimeout time.Duration

	// Incarnation tells this life of the process from former ones: a later one is greater, in serial
	// number arithmetic. The default, 0, takes milliseconds from the clock. A flow that is begun again
	// takes the next one (see Node.Sender), so numbers of lives must not be consecutive.
	Incarnation uint32

	// OnFragment, if not nil, is called with each fragment of a message as soon as it has arrived
	// in order, in place of Receiver.Recv: on the goroutine that received it, with no lock held, for one
	// fragment of a flow at a time. It must not block; it may call TrySend. The memory is valid until it
	// returns.
	OnFragment func(*Receiver, *Fragment)

	// OnProgress, if not nil, is called after the target of a flow has confirmed something, which may have made room
	// for TrySend, and after the flow has ended: see Sender.Progress. No lock is held; calls may overlap, also for one
	// flow. It must not block; it may call TrySend.
	OnProgress func(*Sender)

	// Log, if not nil, gets a line for each leg that comes or goes, and for flows that end.
	Log *slog.Logger
}

func (c *NodeConfig) check() error {
	switch {
	case !valid(c.Address):
		return fmt.Errorf("%w: address %v: numbers begin with 1", ErrConfig, c.Address)
	case c.Job == 0 || c.Job > frame.MaxJob:
		return fmt.Errorf("%w: job %d, want 1 to %d", ErrConfig, c.Job, frame.MaxJob)
	case len(c.Key) < MinKey:
		return fmt.Errorf("%w: key of %d bytes, want at least %d", ErrConfig, len(c.Key), MinKey)
	case len(c.Gateways) == 0 && c.Direct == nil:
		return fmt.Errorf("%w: no gateways", ErrConfig)
	case c.Transport == nil:
		return fmt.Errorf("%w: no transport", ErrConfig)
	case c.Mode > Lossy:
		return fmt.Errorf("%w: mode %d", ErrConfig, c.Mode)
	}
	def(&c.FlowWindow, DefaultFlowWindow)
	def(&c.SendMemory, DefaultSendMemory)
	def(&c.RecvMemory, DefaultRecvMemory)
	def(&c.MaxFlows, DefaultMaxFlows)
	def(&c.LegTimeout, DefaultLegTimeout)
	def(&c.PeerTimeout, DefaultPeerTimeout)
	switch {
	case c.FlowWindow < MinFlowWindow:
		return fmt.Errorf("%w: FlowWindow %d, want at least %d", ErrConfig, c.FlowWindow, MinFlowWindow)
	case c.SendMemory < 0 || c.RecvMemory < 0 || c.MaxFlows < 0:
		return fmt.Errorf("%w: negative limit", ErrConfig)
	case c.LegTimeout < MinLegTimeout:
		return fmt.Errorf("%w: LegTimeout %v, want at least %v", ErrConfig, c.LegTimeout, MinLegTimeout)
	}
	if c.Incarnation == 0 {
		c.Incarnation = newIncarnation()
	}
	return nil
}

func valid(a Address) bool { return a.Site != 0 && a.Node != 0 && a.Process != 0 }

// def gives v its default.
func def[T int | uint16 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}
