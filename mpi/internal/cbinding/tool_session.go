package cbinding

import "github.com/weftstack/weft/mpi/internal/abi"

// TPvarSessionCreate is MPI_T_pvar_session_create.
func TPvarSessionCreate(session uintptr) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	if session == 0 {
		return abi.TErrInvalid
	}
	h, err := pvarSessions.put(&pvarSession{handles: make(map[Handle]*pvarHandle)})
	if err != nil {
		return abi.TErrOutOfSessions
	}
	setHandle(session, h)
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
	s := pvarSessions.get(*at[Handle](session))
	if s == nil {
		return abi.TErrInvalidSession
	}
	for h := range s.handles {
		pvarHandles.delete(h)
	}
	pvarSessions.delete(*at[Handle](session))
	setHandle(session, abi.TPvarSessionNull)
	return 0
}

// TPvarHandleAlloc is MPI_T_pvar_handle_alloc. Counters are stopped, at 0.
func TPvarHandleAlloc(session Handle, pvarIndex int, object, handle, count uintptr) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	s := pvarSessions.get(session)
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
	h, err := pvarHandles.put(x)
	if err != nil {
		return abi.TErrOutOfHandles
	}
	s.handles[h] = x
	setHandle(handle, h)
	storeInt(count, 1, false)
	return 0
}

// TPvarHandleFree is MPI_T_pvar_handle_free.
func TPvarHandleFree(session Handle, handle uintptr) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	if handle == 0 {
		return abi.TErrInvalid
	}
	h := *at[Handle](handle)
	s, _, code := pvarOf(session, h)
	if code != 0 {
		return code
	}
	delete(s.handles, h)
	pvarHandles.delete(h)
	setHandle(handle, abi.TPvarHandleNull)
	return 0
}

// pvarOf returns a session, and the handle in it, or an error code.
func pvarOf(session, handle Handle) (*pvarSession, *pvarHandle, int) {
	s := pvarSessions.get(session)
	if s == nil {
		return nil, nil, abi.TErrInvalidSession
	}
	h := pvarHandles.get(handle)
	if h == nil || h.session != session {
		return nil, nil, abi.TErrInvalidHandle
	}
	return s, h, 0
}

// eachCounter calls f for the counter of a handle, or for all of the session with
// MPI_T_PVAR_ALL_HANDLES, which leaves out variables that are no counters. refused is the error code
// for one of those.
func eachCounter(session, handle Handle, refused int, f func(h *pvarHandle, now uint64)) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	if handle == abi.TPvarAllHandles {
		s := pvarSessions.get(session)
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
func TPvarStart(session, handle Handle) int {
	return eachCounter(session, handle, abi.TErrPvarNoStartstop, func(h *pvarHandle, now uint64) {
		if !h.running {
			h.set(h.value, now)
			h.running = true
		}
	})
}

// TPvarStop is MPI_T_pvar_stop.
func TPvarStop(session, handle Handle) int {
	return eachCounter(session, handle, abi.TErrPvarNoStartstop, func(h *pvarHandle, now uint64) {
		h.set(h.current(now), now)
		h.running = false
	})
}

// TPvarReset is MPI_T_pvar_reset.
func TPvarReset(session, handle Handle) int {
	return eachCounter(session, handle, abi.TErrPvarNoWrite, func(h *pvarHandle, now uint64) { h.set(0, now) })
}

// TPvarRead is MPI_T_pvar_read.
func TPvarRead(session, handle Handle, buf uintptr) int {
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
	*at[uint64](buf) = h.current(h.now())
	return 0
}

// TPvarReadreset is MPI_T_pvar_readreset. Nothing is counted between the two.
func TPvarReadreset(session, handle Handle, buf uintptr) int {
	if handle == abi.TPvarAllHandles {
		handle = abi.TPvarHandleNull
	}
	if buf == 0 {
		return abi.TErrInvalid
	}
	return eachCounter(session, handle, abi.TErrPvarNoAtomic, func(h *pvarHandle, now uint64) {
		*at[uint64](buf) = h.current(now)
		h.set(0, now)
	})
}

// TPvarWrite is MPI_T_pvar_write.
func TPvarWrite(session, handle Handle, buf uintptr) int {
	if handle == abi.TPvarAllHandles {
		handle = abi.TPvarHandleNull
	}
	if buf == 0 {
		return abi.TErrInvalid
	}
	return eachCounter(session, handle, abi.TErrPvarNoWrite, func(h *pvarHandle, now uint64) {
		h.set(*at[uint64](buf), now)
	})
}
