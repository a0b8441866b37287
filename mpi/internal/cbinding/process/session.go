package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// SessionInit is MPI_Session_init.
func SessionInit(info, handler abi.Handle, result uintptr) int {
	const proc = "MPI_Session_init"
	cbinding.NullHandle(result, abi.SessionNull)
	e, err := cbinding.ErrhandlerFor(cbinding.OfSession, handler)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	// Errors go to the handler of the session that there is to be.
	s := &cbinding.Session{Object: cbinding.Object{Kind: cbinding.OfSession, Handle: abi.SessionNull}}
	s.Handler.Store(e)
	hints, err := cbinding.HintsOf(info)
	if err == nil {
		err = cbinding.Out("session", result)
	}
	if err == nil {
		err = beginSession(s, hints)
	}
	if err != nil {
		return s.Done(proc, err)
	}
	h, err := cbinding.Sessions.Put(s)
	if err != nil {
		return s.Done(proc, errors.Join(err, endSession(s)))
	}
	s.Handle = h
	cbinding.SetHandle(result, h)
	return 0
}

func beginSession(s *cbinding.Session, hints mpi.Info) (err error) {
	cbinding.State.Mu.Lock()
	defer cbinding.State.Mu.Unlock()
	cbinding.CallStartHooks()
	if s.Session, err = mpi.SessionInit(cbinding.Background, hints); err != nil {
		return err
	}
	if err = cbinding.StayUntilExit(); err != nil {
		return err
	}
	self, err := s.Session.Group(mpi.PsetSelf)
	if err != nil {
		return err
	}
	cbinding.State.Rank.Store(int32(self.WorldRank(0)))
	cbinding.State.Live.Add(1)
	return nil
}

func endSession(s *cbinding.Session) error {
	s.DropBuffer()
	err := s.Finalize(cbinding.Background)
	cbinding.State.Live.Add(-1)
	return err
}

// SessionFinalize is MPI_Session_finalize.
func SessionFinalize(session uintptr) int {
	const proc = "MPI_Session_finalize"
	if session == 0 {
		return cbinding.Fail(proc, cbinding.NullError("session"))
	}
	h := *cbinding.At[abi.Handle](session)
	s, err := cbinding.SessionOf(h)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if !cbinding.Sessions.Delete(h) { // another thread has ended it
		return cbinding.Fail(proc, cbinding.Sessions.Missing(h))
	}
	cbinding.SetHandle(session, abi.SessionNull)
	if err := endSession(s); err != nil { // it has ended all the same
		return s.Done(proc, err)
	}
	return 0
}

// SessionGetInfo is MPI_Session_get_info.
func SessionGetInfo(session abi.Handle, info uintptr) int {
	const proc = "MPI_Session_get_info"
	cbinding.NullHandle(info, abi.InfoNull)
	s, err := cbinding.SessionOf(session)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return s.Done(proc, cbinding.NewInfoHandle(info, cbinding.UsedInfo(s.Info())))
}

// SessionGetNumPsets is MPI_Session_get_num_psets.
func SessionGetNumPsets(session, info abi.Handle, n uintptr) int {
	const proc = "MPI_Session_get_num_psets"
	s, err := cbinding.SessionOf(session)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if _, err = cbinding.HintsOf(info); err == nil {
		err = cbinding.SetInt(n, len(s.Psets()), false)
	}
	return s.Done(proc, err)
}

// SessionGetNthPset is MPI_Session_get_nth_pset. psetLen counts the 0 at the end, on its way in and out;
// if it is 0 the name is not stored.
func SessionGetNthPset(session, info abi.Handle, n int, psetLen, name uintptr) int {
	const proc = "MPI_Session_get_nth_pset"
	s, err := cbinding.SessionOf(session)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if _, err := cbinding.HintsOf(info); err != nil {
		return s.Done(proc, err)
	}
	psets := s.Psets()
	switch {
	case psetLen == 0:
		return s.Done(proc, cbinding.NullError("pset_len"))
	case n < 0 || n >= len(psets):
		return s.Done(proc, cbinding.ArgError(abi.ErrArg, "n", n, fmt.Sprintf("is not the number of one of the %d process sets", len(psets))))
	case *cbinding.At[int32](psetLen) < 0:
		return s.Done(proc, cbinding.ArgError(abi.ErrArg, "pset_len", *cbinding.At[int32](psetLen), "is negative"))
	}
	if err := cbinding.SetStr(name, 0, psets[n], int(*cbinding.At[int32](psetLen))); err != nil {
		return s.Done(proc, err)
	}
	return s.Done(proc, cbinding.SetInt(psetLen, len(psets[n])+1, false))
}

// psetName reads the name of a process set. That of a predefined one is a URI, whose scheme and authority
// have no case (RFC 3986, Section 6.2.2.1).
func psetName(p uintptr) (string, error) {
	name, err := cbinding.Str("pset_name", p, abi.MaxPsetNameLen)
	for _, known := range []string{mpi.PsetWorld, mpi.PsetSelf} {
		if strings.EqualFold(name, known) {
			return known, err
		}
	}
	return name, err
}

// SessionGetPsetInfo is MPI_Session_get_pset_info.
func SessionGetPsetInfo(session abi.Handle, name, info uintptr) int {
	const proc = "MPI_Session_get_pset_info"
	cbinding.NullHandle(info, abi.InfoNull)
	s, err := cbinding.SessionOf(session)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	pset, err := psetName(name)
	if err != nil {
		return s.Done(proc, err)
	}
	i, err := s.PsetInfo(pset)
	if err == nil {
		err = cbinding.NewInfoHandle(info, cbinding.NewInfo(i))
	}
	return s.Done(proc, err)
}

// GroupFromSessionPset is MPI_Group_from_session_pset. For a process set that does not exist the group is
// MPI_GROUP_NULL (MPI-4.1, Section 11.3.2), and the error that of an argument, as in MPICH.
func GroupFromSessionPset(session abi.Handle, name, newgroup uintptr) int {
	cbinding.NullHandle(newgroup, abi.GroupNull)
	const proc = "MPI_Group_from_session_pset"
	s, err := cbinding.SessionOf(session)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	pset, err := psetName(name)
	if err == nil {
		err = cbinding.Out("newgroup", newgroup)
	}
	if err != nil {
		return s.Done(proc, err)
	}
	g, err := s.Session.Group(pset)
	if err == nil {
		err = cbinding.NewGroup(newgroup, g, s)
	}
	return s.Done(proc, err)
}

// worldSession is the session of groups of communicators of MPI_Init.
var worldSession atomic.Pointer[cbinding.Session]

func init() {
	cbinding.AtInit(func(w *mpi.World) {
		if s, err := w.NewSession(nil); err == nil {
			worldSession.Store(&cbinding.Session{Object: cbinding.Object{Kind: cbinding.OfSession}, Session: s})
		}
	})
}

// sessionFor returns the session in which communicators of g are made.
func sessionFor(g *cbinding.Group) (*cbinding.Session, error) {
	if g.Session != nil {
		return g.Session, nil
	}
	if s := worldSession.Load(); s != nil && cbinding.TheWorld() != nil {
		return s, nil
	}
	return nil, cbinding.ArgError(abi.ErrGroup, "group", g.Group, "is of no session")
}

// fromGroup ends a call that makes a communicator of groups: without an object, errors go to the handler
// that the communicator is to have. f makes it, unless bad is not nil: then the caller refuses the call.
func fromGroup(proc string, handler abi.Handle, f func(o *cbinding.Object, bad error) error) int {
	e, err := cbinding.ErrhandlerFor(cbinding.OfComm, handler)
	if err != nil {
		o := cbinding.NoObject()
		return o.Done(proc, f(o, err))
	}
	o := &cbinding.Object{Kind: cbinding.OfComm}
	o.Handler.Store(e)
	return o.Done(proc, f(o, nil))
}

// CommCreateFromGroup is MPI_Comm_create_from_group. It does not communicate: an error is local. If the group and the
// tag are known the call counts, so that the next one of this rank is the next one of the others.
func CommCreateFromGroup(group abi.Handle, stringtag uintptr, info, handler abi.Handle, newcomm uintptr) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	return fromGroup("MPI_Comm_create_from_group", handler, func(o *cbinding.Object, bad error) error {
		g, tag, err := groupArguments(group, stringtag)
		if err != nil {
			return err
		}
		hints, err := cbinding.HintsOf(info)
		bad = cmp.Or(bad, err, cbinding.CommRoom("newcomm", newcomm))
		if bad == nil && g.Size() == 0 {
			cbinding.SetHandle(newcomm, abi.CommNull)
			return nil
		}
		s, err := sessionFor(g)
		if err != nil {
			return err
		}
		c, err := s.CommFromGroup(cbinding.Background, g.Group, tag, hints)
		if err != nil {
			return cmp.Or(bad, err)
		}
		if bad != nil {
			c.Free()
			return bad
		}
		return newSessionComm(s, newcomm, c, o)
	})
}

// IntercommCreateFromGroups is MPI_Intercomm_create_from_groups. The remote group counts at the leader. An error of
// one rank is an error on all of its group. The groups do not communicate: the other one gets its communicator.
func IntercommCreateFromGroups(localGroup abi.Handle, localLeader int, remoteGroup abi.Handle, remoteLeader int,
	stringtag uintptr, info, handler abi.Handle, newcomm uintptr) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	return fromGroup("MPI_Intercomm_create_from_groups", handler, func(o *cbinding.Object, bad error) error {
		g, tag, err := groupArguments(localGroup, stringtag)
		if err != nil {
			return err
		}
		hints, err := cbinding.HintsOf(info)
		bad = cmp.Or(bad, err, cbinding.CommRoom("newintercomm", newcomm))
		if localLeader < 0 || localLeader >= g.Size() {
			bad = cmp.Or(bad, cbinding.MemberError("local_leader", localLeader, g))
		}
		var remote mpi.Group
		if g.Rank(int(cbinding.State.Rank.Load())) == localLeader {
			r, err := cbinding.GroupOf(remoteGroup)
			switch {
			case err != nil:
				bad = cmp.Or(bad, err)
			case remoteLeader < 0 || remoteLeader >= r.Size():
				bad = cmp.Or(bad, cbinding.MemberError("remote_leader", remoteLeader, r))
			default:
				remote = r.Group
			}
		}
		s, err := sessionFor(g)
		if err != nil {
			return err
		}
		if bad != nil {
			return o.RefuseCall(bad, func(ctx context.Context) {
				_, _ = s.IntercommFromGroups(ctx, g.Group, localLeader, remote, tag, hints)
			})
		}
		c, err := s.IntercommFromGroups(cbinding.Background, g.Group, localLeader, remote, tag, hints)
		if err != nil {
			return err
		}
		return newSessionComm(s, newcomm, c, o)
	})
}

// groupArguments reads the arguments that say which call of a group it is.
func groupArguments(group abi.Handle, stringtag uintptr) (g *cbinding.Group, tag string, err error) {
	if g, err = cbinding.GroupOf(group); err != nil {
		return nil, "", err
	}
	tag, err = cbinding.Str("stringtag", stringtag, abi.MaxStringtagLen)
	return g, tag, err
}

// newSessionComm stores the handle of a communicator that was made in s, with the error handler of o.
func newSessionComm(s *cbinding.Session, p uintptr, c *mpi.Comm, o *cbinding.Object) error {
	n := &cbinding.Communicator{Comm: c, Session: s}
	n.Handler.Store(o.Handler.Load())
	return n.Publish(p)
}
