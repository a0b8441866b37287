package verbs

import "github.com/weftstack/weft/ddp"

// MW is a memory window of type 2: an STag for a part of a region, bound and
// invalidated by work requests, without a call that touches the region. A window
// is bound to the queue pair that the OpBindMW was posted to, and its peer may
// invalidate it.
type MW struct {
	pd *PD
	r  *ddp.Region
}

// AllocMW makes a window that is not bound.
func (pd *PD) AllocMW() (*MW, error) {
	r, err := pd.reserve()
	if err != nil {
		return nil, err
	}
	return &MW{pd: pd, r: r}, nil
}

// STag returns the steering tag that the window has when it is bound.
func (mw *MW) STag() uint32 { return mw.r.STag() }

// Bound reports whether the window is bound: a bind has been carried out, and
// neither side has invalidated it.
func (mw *MW) Bound() bool { return !mw.r.Revoked() }

// Invalidate takes back the rights without a work request, bound or not. When it
// returns no peer can change memory through the window.
func (mw *MW) Invalidate() { mw.r.Revoke() }

// Renew gives the window a new STag, for the next bind, and makes the old one
// unknown: what ibv_inc_rkey is for. It returns ErrBusy, and changes nothing,
// while the window is bound or posted work requests name it. It must not be
// called while another goroutine uses the window.
func (mw *MW) Renew() error { return mw.pd.renew(&mw.r) }

// pin checks a bind and pins the region and the window.
func (b *Bind) pin(pd *PD, op Opcode) error {
	if b.MR == nil || b.MR.pd != pd {
		return explain(ErrWorkRequest, "Bind without a region of this protection domain")
	}
	allowed := remoteAccess
	if op == OpFastRegister {
		allowed |= ReadSnapshot
	}
	if b.Access&^allowed != 0 {
		return explain(ErrWorkRequest, "Bind with access rights %#x: allowed are %#x", b.Access, allowed)
	}
	r := b.MR.r
	if op == OpFastRegister {
		if b.MR.size < 0 || b.MW != nil {
			return explain(ErrWorkRequest, "%v needs a region of AllocMR, and no window", op)
		}
		if len(b.Buf) > b.MR.size {
			return explain(ErrWorkRequest, "%v of %d bytes: the region is of at most %d", op, len(b.Buf), b.MR.size)
		}
		if !r.Pin() {
			return explain(ErrWorkRequest, "%v: the region was closed", op)
		}
		return nil
	}
	if b.MW == nil || b.MW.pd != pd || b.Buf != nil || b.MR.size >= 0 {
		return explain(ErrWorkRequest, "%v needs a window of this protection domain, a region that was registered, and no Buf", op)
	}
	if !within(b.Off, b.Len, len(b.MR.buf)) {
		return explain(ErrWorkRequest, "%v of %d bytes at %d of a region of %d", op, b.Len, b.Off, len(b.MR.buf))
	}
	need := MWBind
	if b.Access&(RemoteWrite|RemoteAtomic) != 0 {
		need |= LocalWrite
	}
	if r.Access()&need != need {
		return explain(ErrAccess, "%v with access rights %#x: the region has %#x, and needs %#x", op, b.Access, r.Access(),
			need)
	}
	if !r.Pin() {
		return explain(ErrWorkRequest, "%v: the region was closed", op)
	}
	if !b.MW.r.Pin() {
		r.Unpin()
		return explain(ErrWorkRequest, "%v: the window was closed", op)
	}
	return nil
}

// unpin takes back what pin pinned.
func (b *Bind) unpin() {
	b.MR.r.Unpin()
	if b.MW != nil {
		b.MW.r.Unpin()
	}
}

// append makes the list that rdmap.OpBind takes: memory, with its region if it
// is part of one, and what is to stand for it.
func (b *Bind) append(l []ddp.Mem) []ddp.Mem {
	if b.MW == nil {
		return append(l, ddp.Mem{B: b.Buf[:len(b.Buf):len(b.Buf)]}, ddp.Mem{Region: b.MR.r})
	}
	return append(l, ddp.Mem{B: b.MR.buf[b.Off : b.Off+b.Len : b.Off+b.Len], Region: b.MR.r}, ddp.Mem{Region: b.MW.r})
}

// Close frees the window, bound or not. It returns ErrBusy, and changes nothing,
// while posted work requests name it.
func (mw *MW) Close() error { return mw.pd.release(mw.r) }
