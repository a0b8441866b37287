package verbs

import "github.com/weftstack/weft/ddp"

// Access is a set of rights to a memory region. Local reading needs none.
type Access = ddp.Access

// Access rights.
const (
	// LocalWrite lets work requests of this side write: receives, reads.
	LocalWrite = ddp.LocalWrite
	// RemoteRead lets peers read, RemoteWrite write, RemoteAtomic do atomic
	// operations. The latter two imply LocalWrite.
	RemoteRead   = ddp.RemoteRead
	RemoteWrite  = ddp.RemoteWrite
	RemoteAtomic = ddp.RemoteAtomic

	allAccess = LocalWrite | RemoteRead | RemoteWrite | RemoteAtomic
)

// MR is a registered memory region.
type MR struct {
	pd  *PD
	r   *ddp.Region
	buf []byte
}

// Register makes buf known to the device and usable with the given rights. The
// memory stays the caller's, but must not be given to another use as long as
// the region exists; its tagged offsets begin at 0.
func (pd *PD) Register(buf []byte, access Access) (*MR, error) {
	return pd.register(buf, access, nil)
}

// RegisterFor is Register for a region that the peer may name on qp's stream
// only (RFC 5042, Section 6.1.1: an STag "limited in scope to a single
// Stream"). Such a region may be invalidated by the peer (OpSendInvalidate).
func (pd *PD) RegisterFor(qp *QP, buf []byte, access Access) (*MR, error) {
	if qp.pd != pd {
		return nil, ErrAccess
	}
	return pd.register(buf, access, qp.stream.Scope())
}

func (pd *PD) register(buf []byte, access Access, scope *ddp.Scope) (*MR, error) {
	if access&^allAccess != 0 {
		return nil, ErrAccess
	}
	if access&(RemoteWrite|RemoteAtomic) != 0 {
		access |= LocalWrite
	}
	if err := pd.use(); err != nil {
		return nil, err
	}
	r, err := pd.dev.table.Add(buf, 0, access, &pd.domain, scope)
	if err != nil {
		pd.unuse()
		return nil, ErrLimit
	}
	return &MR{pd: pd, r: r, buf: buf}, nil
}

// STag returns the steering tag of the region: random, and not reused for a
// long time after Close.
func (mr *MR) STag() uint32 { return mr.r.STag() }

// Len returns the size of the region.
func (mr *MR) Len() int { return len(mr.buf) }

// Bytes returns the memory of the region.
func (mr *MR) Bytes() []byte { return mr.buf }

// Access returns the rights.
func (mr *MR) Access() Access { return mr.r.Access() }

// Slice returns a scatter/gather element. It is checked when it is posted.
func (mr *MR) Slice(off, n int) SGE { return SGE{mr, off, n} }

// Remote returns what a peer needs to access the region.
func (mr *MR) Remote() RemoteBuf {
	return RemoteBuf{STag: mr.r.STag(), TO: mr.r.Base(), Len: uint64(mr.Len())}
}

// Sync orders the caller's accesses to the memory with those of peers, in the
// sense of the Go memory model: call it before reading what a peer has written,
// once the peer told so, and after writing, before a peer is told to read. It
// waits for nothing.
func (mr *MR) Sync() { mr.r.Sync() }

// Invalidate revokes the remote rights for good. When it returns no peer can
// change the memory any more.
func (mr *MR) Invalidate() { mr.r.Revoke() }

// Invalidated reports whether the remote rights were revoked, by this side or
// by a peer.
func (mr *MR) Invalidated() bool { return mr.r.Revoked() }

// Close revokes all rights and frees the region. When it returns no peer can
// change the memory any more. It returns ErrBusy, and changes nothing, while
// posted work requests name the region. A peer's read that is being answered
// does not keep a region busy; it is terminated.
func (mr *MR) Close() error {
	if !mr.r.Retire() {
		if mr.r.Pinned() {
			return ErrBusy
		}
		return ErrClosed
	}
	mr.pd.dev.table.Remove(mr.r)
	mr.pd.unuse()
	return nil
}
