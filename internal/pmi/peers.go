package pmi

import (
	"fmt"
	"io"
	"slices"
	"strconv"
)

// PeerState is what a rank has found out about another one, see Client.Report.
type PeerState string

// States of peers.
const (
	PeerSilent   PeerState = "silent"   // it does not answer, and is waited for
	PeerAnswered PeerState = "answered" // it did not, and does again
	PeerDead     PeerState = "dead"     // it is taken for dead
)

// cmdPeer tells the launcher of a peer. There is no reply.
const cmdPeer = "weft_peer"

// Report is what a rank says about another one.
type Report struct {
	Job   string // of the peer: the name of a key-value space
	Rank  int    // of the peer
	State PeerState
	Why   string // for people
}

// Report tells the launcher about a peer of this job, or of the one named. The launcher
// must be `weft run`, see CanWatch. It does not wait for anything but other calls of c.
func (c *Client) Report(r Report) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if r.Job == "" {
		r.Job = c.kvs
	}
	_, err := io.WriteString(c.conn, fmt.Sprintf("cmd=%s weft_job=%s rank=%d state=%s %s=%s\n",
		cmdPeer, r.Job, r.Rank, r.State, textKey, oneLine(r.Why)))
	return err
}

// report takes in what a rank says about a peer.
func (s *Server) report(rank int, m message) error {
	peer, err := m.number("rank")
	r := Report{Job: m.args["weft_job"], Rank: peer, State: PeerState(m.args["state"]), Why: m.args[textKey]}
	if err != nil || !slices.Contains([]PeerState{PeerSilent, PeerAnswered, PeerDead}, r.State) {
		return fmt.Errorf("%w: report of rank %s, %q", ErrProtocol, strconv.Quote(clip(m.args["rank"])),
			clip(m.args["state"]))
	}
	if s.OnReport != nil {
		s.OnReport(rank, r)
	}
	return nil
}
