package tool

import (
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// TPvarSessionCreate is MPI_T_pvar_session_create.
func TPvarSessionCreate(session uintptr) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	if session == 0 {
		return abi.TErrInvalid
	}
	h, err := pvarSessions.Put(&pvarSession{handles: make(map[abi.Handle]*pvarHandle)})
	if err != nil {
		return abi.TErrOutOfSessions
	}
	cbinding.SetHandle(session, h)
	return 0
}

// TPvarSessionFree is MPI_T_pvar_session_free. It frees the handles of the session.
func TPvarSessionFree(session uintptr) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	if session == 0 {
		return abi.TErrInvalid
	}
	s := pvarSessions.Get(*cbinding.At[abi.Handle](session))
	if s == nil {
		return abi.TErrInvalidSession
	}
	for h := range s.handles {
		pvarHandles.Delete(h)
	}
	pvarSessions.Delete(*cbinding.At[abi.Handle](session))
	cbinding.SetHandle(session, abi.TPvarSessionNull)
	return 0
}

// TPvarHandleAlloc is MPI_T_pvar_handle_alloc. Counters are stopped, at 0.
func TPvarHandleAlloc(session abi.Handle, pvarIndex int, object, handle, count uintptr) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	s := pvarSessions.Get(session)
	if s == nil {
		return abi.TErrInvalidSession
	}
	v := pvarAt(pvarIndex)
	if v == nil {
		return abi.TErrInvalidIndex
	}
	if handle == 0 || count == 0 {
		return abi.TErrInvalid
	}
	x := &pvarHandle{pvar: v, session: session}
	h, err := pvarHandles.Put(x)
	if err != nil {
		return abi.TErrOutOfHandles
	}
	s.handles[h] = x
	cbinding.SetHandle(handle, h)
	cbinding.StoreInt(count, 1, false)
	return 0
}

// TPvarHandleFree is MPI_T_pvar_handle_free.
func TPvarHandleFree(session abi.Handle, handle uintptr) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	if handle == 0 {
		return abi.TErrInvalid
	}
	h := *cbinding.At[abi.Handle](handle)
	s, _, code := pvarOf(session, h)
	if code != 0 {
		return code
	}
	delete(s.handles, h)
	pvarHandles.Delete(h)
	cbinding.SetHandle(handle, abi.TPvarHandleNull)
	return 0
}

// pvarOf returns a session, and the handle in it, or an error code.
func pvarOf(session, handle abi.Handle) (*pvarSession, *pvarHandle, int) {
	s := pvarSessions.Get(session)
	if s == nil {
		return nil, nil, abi.TErrInvalidSession
	}
	h := pvarHandles.Get(handle)
	if h == nil || h.session != session {
		return nil, nil, abi.TErrInvalidHandle
	}
	return s, h, 0
}

// eachCounter calls f for the counter of a handle, or for all of the session with
// MPI_T_PVAR_ALL_HANDLES, which leaves out variables that are no counters. refused is the error code
// for one of those.
func eachCounter(session, handle abi.Handle, refused int, f func(h *pvarHandle, now uint64)) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	if handle == abi.TPvarAllHandles {
		s := pvarSessions.Get(session)
		if s == nil {
			return abi.TErrInvalidSession
		}
		stats := toolStats()
		for _, h := range s.handles {
			if h.counts() {
				f(h, uint64(h.pvar.read(&stats)))
			}
		}
		return 0
	}
	_, h, code := pvarOf(session, handle)
	if code != 0 {
		return code
	}
	if !h.counts() {
		return refused
	}
	f(h, h.now())
	return 0
}

// TPvarStart is MPI_T_pvar_start.
func TPvarStart(session, handle abi.Handle) int {
	return eachCounter(session, handle, abi.TErrPvarNoStartstop, func(h *pvarHandle, now uint64) {
		if !h.running {
			h.set(h.value, now)
			h.running = true
		}
	})
}

// TPvarStop is MPI_T_pvar_stop.
func TPvarStop(session, handle abi.Handle) int {
	return eachCounter(session, handle, abi.TErrPvarNoStartstop, func(h *pvarHandle, now uint64) {
		h.set(h.current(now), now)
		h.running = false
	})
}

// TPvarReset is MPI_T_pvar_reset.
func TPvarReset(session, handle abi.Handle) int {
	return eachCounter(session, handle, abi.TErrPvarNoWrite, func(h *pvarHandle, now uint64) { h.set(0, now) })
}

// TPvarRead is MPI_T_pvar_read.
func TPvarRead(session, handle abi.Handle, buf uintptr) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	_, h, code := pvarOf(session, handle)
	if code != 0 {
		return code
	}
	if buf == 0 {
		return abi.TErrInvalid
	}
	*cbinding.At[uint64](buf) = h.current(h.now())
	return 0
}

// TPvarReadreset is MPI_T_pvar_readreset. Nothing is counted between the two.
func TPvarReadreset(session, handle abi.Handle, buf uintptr) int {
	if handle == abi.TPvarAllHandles {
		handle = abi.TPvarHandleNull
	}
	if buf == 0 {
		return abi.TErrInvalid
	}
	return eachCounter(session, handle, abi.TErrPvarNoAtomic, func(h *pvarHandle, now uint64) {
		*cbinding.At[uint64](buf) = h.current(now)
		h.set(0, now)
	})
}

// TPvarWrite is MPI_T_pvar_write.
func TPvarWrite(session, handle abi.Handle, buf uintptr) int {
	if handle == abi.TPvarAllHandles {
		handle = abi.TPvarHandleNull
	}
	if buf == 0 {
		return abi.TErrInvalid
	}
	return eachCounter(session, handle, abi.TErrPvarNoWrite, func(h *pvarHandle, now uint64) {
		h.set(*cbinding.At[uint64](buf), now)
	})
}
