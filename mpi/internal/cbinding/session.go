package cbinding

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A session is an MPI_Session.
type session struct {
	object
	*mpi.Session
}

// SessionInit is MPI_Session_init.
func SessionInit(info, handler Handle, result uintptr) int {
	const proc = "MPI_Session_init"
	e, err := errhandlerFor(ofSession, handler)
	if err != nil {
		return fail(proc, err)
	}
	// Errors go to the handler of the session that there is to be.
	s := &session{object: object{what: ofSession, handle: abi.SessionNull}}
	s.handler.Store(e)
	hints, err := hintsOf(info)
	if err == nil {
		err = out("session", result)
	}
	if err == nil {
		err = s.begin(hints)
	}
	if err != nil {
		return s.done(proc, err)
	}
	h, err := sessions.put(s)
	if err != nil {
		return s.done(proc, errors.Join(err, s.end()))
	}
	s.handle = h
	setHandle(result, h)
	return 0
}

func (s *session) begin(hints mpi.Info) (err error) {
	state.mu.Lock()
	defer state.mu.Unlock()
	start()
	if s.Session, err = mpi.SessionInit(background, hints); err != nil {
		return err
	}
	if err = stayUntilExit(); err != nil {
		return err
	}
	self, err := s.Session.Group(mpi.PsetSelf)
	if err != nil {
		return err
	}
	state.rank.Store(int32(self.WorldRank(0)))
	state.live.Add(1)
	return nil
}

func (s *session) end() error {
	s.dropBuffer()
	err := s.Finalize(background)
	state.live.Add(-1)
	return err
}

// SessionFinalize is MPI_Session_finalize.
func SessionFinalize(session uintptr) int {
	const proc = "MPI_Session_finalize"
	if session == 0 {
		return fail(proc, nullError("session"))
	}
	h := *at[Handle](session)
	s, err := sessionOf(h)
	if err != nil {
		return fail(proc, err)
	}
	if !sessions.delete(h) { // another thread has ended it
		return fail(proc, sessions.missing(h))
	}
	setHandle(session, abi.SessionNull)
	if err := s.end(); err != nil { // it has ended all the same
		return s.done(proc, err)
	}
	return 0
}

// SessionGetInfo is MPI_Session_get_info.
func SessionGetInfo(session Handle, info uintptr) int {
	const proc = "MPI_Session_get_info"
	s, err := sessionOf(session)
	if err != nil {
		return fail(proc, err)
	}
	return s.done(proc, newInfoHandle(info, usedInfo(s.Info())))
}

// SessionGetNumPsets is MPI_Session_get_num_psets.
func SessionGetNumPsets(session, info Handle, n uintptr) int {
	const proc = "MPI_Session_get_num_psets"
	s, err := sessionOf(session)
	if err != nil {
		return fail(proc, err)
	}
	if _, err = hintsOf(info); err == nil {
		err = setInt(n, len(s.Psets()), false)
	}
	return s.done(proc, err)
}

// SessionGetNthPset is MPI_Session_get_nth_pset. psetLen counts the 0 at the end, on its way in and out;
// if it is 0 the name is not stored.
func SessionGetNthPset(session, info Handle, n int, psetLen, name uintptr) int {
	const proc = "MPI_Session_get_nth_pset"
	s, err := sessionOf(session)
	if err != nil {
		return fail(proc, err)
	}
	if _, err := hintsOf(info); err != nil {
		return s.done(proc, err)
	}
	psets := s.Psets()
	switch {
	case psetLen == 0:
		return s.done(proc, nullError("pset_len"))
	case n < 0 || n >= len(psets):
		return s.done(proc, argError(abi.ErrArg, "n", n, fmt.Sprintf("is not the number of one of the %d process sets", len(psets))))
	case *at[int32](psetLen) < 0:
		return s.done(proc, argError(abi.ErrArg, "pset_len", *at[int32](psetLen), "is negative"))
	}
	if err := setStr(name, 0, psets[n], int(*at[int32](psetLen))); err != nil {
		return s.done(proc, err)
	}
	return s.done(proc, setInt(psetLen, len(psets[n])+1, false))
}

// psetName reads the name of a process set. That of a predefined one is a URI, whose scheme and authority
// have no case (RFC 3986, Section 6.2.2.1).
func psetName(p uintptr) (string, error) {
	name, err := str("pset_name", p, abi.MaxPsetNameLen)
	for _, known := range []string{mpi.PsetWorld, mpi.PsetSelf} {
		if strings.EqualFold(name, known) {
			return known, err
		}
	}
	return name, err
}

// SessionGetPsetInfo is MPI_Session_get_pset_info.
func SessionGetPsetInfo(session Handle, name, info uintptr) int {
	const proc = "MPI_Session_get_pset_info"
	s, err := sessionOf(session)
	if err != nil {
		return fail(proc, err)
	}
	pset, err := psetName(name)
	if err != nil {
		return s.done(proc, err)
	}
	i, err := s.PsetInfo(pset)
	if err == nil {
		err = newInfoHandle(info, newInfo(i))
	}
	return s.done(proc, err)
}

// GroupFromSessionPset is MPI_Group_from_session_pset. For a process set that does not exist the group is
// MPI_GROUP_NULL (MPI-4.1, Section 11.3.2), and the error that of an argument, as in MPICH.
func GroupFromSessionPset(session Handle, name, newgroup uintptr) int {
	nullHandle(newgroup, abi.GroupNull)
	const proc = "MPI_Group_from_session_pset"
	s, err := sessionOf(session)
	if err != nil {
		return fail(proc, err)
	}
	pset, err := psetName(name)
	if err == nil {
		err = out("newgroup", newgroup)
	}
	if err != nil {
		return s.done(proc, err)
	}
	g, err := s.Session.Group(pset)
	if err == nil {
		err = newGroup(newgroup, g, s)
	}
	return s.done(proc, err)
}

// worldSession is the session of groups of communicators of MPI_Init.
var worldSession atomic.Pointer[session]

func init() {
	atInit(func(w *mpi.World) {
		if s, err := w.NewSession(nil); err == nil {
			worldSession.Store(&session{object: object{what: ofSession}, Session: s})
		}
	})
}

// sessionFor returns the session in which communicators of g are made.
func (g *group) sessionFor() (*session, error) {
	if g.session != nil {
		return g.session, nil
	}
	if s := worldSession.Load(); s != nil && theWorld() != nil {
		return s, nil
	}
	return nil, argError(abi.ErrGroup, "group", g.Group, "is of no session")
}

// fromGroup ends a call that makes a communicator of groups: without an object, errors go to the handler
// that the communicator was to have.
func fromGroup(proc string, handler Handle, f func(e *errhandler) error) int {
	e, err := errhandlerFor(ofComm, handler)
	if err != nil {
		return fail(proc, err)
	}
	o := object{what: ofComm}
	o.handler.Store(e)
	return o.done(proc, f(e))
}

// CommCreateFromGroup is MPI_Comm_create_from_group.
func CommCreateFromGroup(group Handle, stringtag uintptr, info, handler Handle, newcomm uintptr) int {
	nullHandle(newcomm, abi.CommNull)
	return fromGroup("MPI_Comm_create_from_group", handler, func(e *errhandler) error {
		g, err := groupOf(group)
		if err != nil {
			return err
		}
		tag, hints, err := groupArguments(stringtag, info, newcomm)
		if err != nil {
			return err
		}
		if g.Size() == 0 {
			setHandle(newcomm, abi.CommNull)
			return nil
		}
		s, err := g.sessionFor()
		if err != nil {
			return err
		}
		c, err := s.CommFromGroup(background, g.Group, tag, hints)
		if err != nil {
			return err
		}
		return s.newComm(newcomm, c, e)
	})
}

// IntercommCreateFromGroups is MPI_Intercomm_create_from_groups. The remote group counts at the leader.
func IntercommCreateFromGroups(localGroup Handle, localLeader int, remoteGroup Handle, remoteLeader int,
	stringtag uintptr, info, handler Handle, newcomm uintptr) int {
	nullHandle(newcomm, abi.CommNull)
	return fromGroup("MPI_Intercomm_create_from_groups", handler, func(e *errhandler) error {
		g, err := groupOf(localGroup)
		if err != nil {
			return err
		}
		tag, hints, err := groupArguments(stringtag, info, newcomm)
		if err != nil {
			return err
		}
		if localLeader < 0 || localLeader >= g.Size() {
			return memberError("local_leader", localLeader, g)
		}
		var remote mpi.Group
		if g.Rank(int(state.rank.Load())) == localLeader {
			r, err := groupOf(remoteGroup)
			if err != nil {
				return err
			}
			if remoteLeader < 0 || remoteLeader >= r.Size() {
				return memberError("remote_leader", remoteLeader, r)
			}
			remote = r.Group
		}
		s, err := g.sessionFor()
		if err != nil {
			return err
		}
		c, err := s.IntercommFromGroups(background, g.Group, localLeader, remote, tag, hints)
		if err != nil {
			return err
		}
		return s.newComm(newcomm, c, e)
	})
}

func groupArguments(stringtag uintptr, info Handle, newcomm uintptr) (tag string, hints mpi.Info, err error) {
	if tag, err = str("stringtag", stringtag, abi.MaxStringtagLen); err != nil {
		return "", nil, err
	}
	if hints, err = hintsOf(info); err != nil {
		return "", nil, err
	}
	return tag, hints, out("newcomm", newcomm)
}

// newComm stores the handle of a communicator that was made in s.
func (s *session) newComm(p uintptr, c *mpi.Comm, e *errhandler) error {
	o := &communicator{Comm: c, session: s}
	o.handler.Store(e)
	return o.put(p)
}
