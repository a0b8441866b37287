package job

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"

	"github.com/weftstack/weft/mpi/internal/dynamic"
	"github.com/weftstack/weft/mpi/internal/hashid"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Intercommunicator handshake: makes an intercommunicator of two groups that share only a
// connection between one process of each, their roots (MPI-4.1, Section 11.8.1). It takes
// three exchanges, each of which gives every process the messages of all: who they are,
// which of them have a link already, and whether the missing links were made. So the
// handshake succeeds or fails on all processes alike.

// ConnectGroups makes the links between group and the one at the other end of the connection that open makes. It calls
// open at the root only. When all processes have their links it calls use with the id of an intercommunicator of both
// groups and handles of the members of the other one; then links that no communicator uses are closed.
func (j *Job) ConnectGroups(
	ctx context.Context, group dynamic.Comm, root int, accepts bool,
	open func(context.Context) (*dynamic.RootConn, error), use func(id uint64, others []int32),
) error {
	e, rank := j.Engine, group.Rank()
	var lerr error
	if accepts {
		lerr = j.Transport.Listen()
	}
	x := &dynamic.Exchange{Comm: group, Root: root, Limit: p2p.MaxRemotes}
	own := dynamic.GroupMessage{Head: &dynamic.GroupHeader{Transport: j.Options.Transport, Streams: j.Options.Streams}}
	if rank == root {
		var err error
		if x.Conn, err = open(ctx); err != nil {
			own.Err = mpierr.MakePortable(err)
			x.Cause = err
		}
		defer x.Conn.Close()
		if accepts {
			var id [8]byte
			_, _ = rand.Read(id[:]) // never fails
			own.Head.ID, own.Head.Key = binary.BigEndian.Uint64(id[:])|1, []byte(newJobKey())
		}
	}
	me := &dynamic.ProcessInfo{Job: e.Job, Rank: uint32(e.Rank), Addr: j.Transport.Addr(), Window: e.RemoteWindow(),
		Call: j.launcherName(), Site: j.Site()}
	mine, theirs, err := x.Allgather(ctx, own, dynamic.ProcessMessage{Member: me, Err: mpierr.MakePortable(lerr)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, linkSetupTimeout, errLinkSetupTimeout)
	defer cancel()
	if !accepts {
		mine.Head.ID, mine.Head.Key = theirs.Head.ID, theirs.Head.Key
	}
	m, peers, links, err := j.prepareLinks(rank, mine, theirs, accepts)
	defer m.end()
	mine, theirs, cerr := x.Allgather(
		ctx, dynamic.GroupMessage{}, dynamic.ProcessMessage{Links: links, Err: mpierr.MakePortable(err)})
	if cerr != nil {
		return cerr
	}
	err = m.link(ctx, rank, mine, theirs, peers, accepts)
	_, _, cerr = x.Allgather(ctx, dynamic.GroupMessage{}, dynamic.ProcessMessage{Err: mpierr.MakePortable(err)})
	if cerr != nil {
		return cerr
	}
	id := hashid.Of("meeting", hex.EncodeToString(m.key)) &^ uint64(p2p.SlotMask)
	others := make([]int32, len(peers))
	for i, p := range peers {
		others[i] = p.ProcHandle
		if p.Remote != nil {
			e.PublishRemote(p)
		}
	}
	use(id, others)
	return nil
}
