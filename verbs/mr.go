package verbs

import (
	"context"

	"github.com/weftstack/weft/ddp"
)

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
	// MWBind lets memory windows be bound to the region.
	MWBind = ddp.BindWindow
	// ReadSnapshot has peers that read get copies of the memory, which are made when
	// it is sent. Without it Read Responses refer to the memory, and what is lost on
	// the way and sent again is read from there again: of memory that changes
	// meanwhile a reader gets parts from before and after, in any order. With it each
	// byte is read once, in the order of addresses, where it is aligned 8 bytes at once
	// (atomic.LoadUint64). So a version at both ends tells the reader whether what is
	// between is whole: the owner of the memory changes, by atomic stores, the version
	// at the end, then what is between, then the version at the beginning.
	//
	// The copies of one queue pair hold at most ddp.MaxSnapshots bytes; reads that
	// need more wait until some were acknowledged. Windows bound to the region have
	// it, too, and Bind.Access may for OpFastRegister. MR.Drain does not wait for
	// copies.
	ReadSnapshot = ddp.ReadSnapshot

	remoteAccess = RemoteRead | RemoteWrite | RemoteAtomic
	allAccess    = LocalWrite | remoteAccess | MWBind | ReadSnapshot
)

// MR is a registered memory region (ibv_reg_mr).
type MR struct {
	pd  *PD
	r   *ddp.Region
	buf []byte
	// size is the most bytes a region of AllocMR may stand for; -1 for others.
	size int
}

// Register registers buf with the given rights (ibv_reg_mr). The caller keeps buf, but must
// not put it to another use until [MR.Close] has returned and, if peers may have read it,
// [MR.Drain]. Tagged offsets begin at 0.
func (pd *PD) Register(buf []byte, access Access) (*MR, error) {
	return pd.register(buf, 0, access, nil)
}

// RegisterAt is Register with tagged offsets that begin at base (ibv_reg_mr_iova),
// for peers that expect addresses. They must not wrap.
func (pd *PD) RegisterAt(buf []byte, base uint64, access Access) (*MR, error) {
	return pd.register(buf, base, access, nil)
}

// RegisterFor is Register for a region that the peer may name on qp's stream
// only (RFC 5042, Section 6.1.1: an STag "limited in scope to a single
// Stream"). Such a region may be invalidated by the peer (OpSendInvalidate).
func (pd *PD) RegisterFor(qp *QP, buf []byte, access Access) (*MR, error) {
	if qp.pd != pd {
		return nil, explain(ErrAccess, "QP %d is of another protection domain", qp.num)
	}
	return pd.register(buf, 0, access, qp.stream().Scope())
}

func (pd *PD) register(buf []byte, base uint64, access Access, scope *ddp.Scope) (*MR, error) {
	access, err := completed(access)
	if err != nil {
		return nil, err
	}
	if err := pd.refs.enter(); err != nil {
		return nil, err
	}
	r, err := pd.dev.table.Add(buf, base, access, &pd.domain, scope)
	if err != nil {
		pd.refs.leave()
		return nil, tableError(err)
	}
	return &MR{pd: pd, r: r, buf: buf, size: -1}, nil
}

// completed checks rights and adds what they imply.
func completed(access Access) (Access, error) {
	if access&^allAccess != 0 {
		return 0, explain(ErrAccess, "access rights %#x: there are only %#x", access, allAccess)
	}
	if access&(RemoteWrite|RemoteAtomic) != 0 {
		access |= LocalWrite
	}
	return access, nil
}

// AllocMR makes a region that stands for no memory yet: OpFastRegister gives it
// up to size bytes and remote rights, OpLocalInvalidate, Invalidate or the
// peer's OpSendInvalidate take them, and it can be registered again, under the
// same STag or, after Renew, under a new one. Such a region is for the peer: it
// cannot be named in scatter/gather lists.
func (pd *PD) AllocMR(size int) (*MR, error) {
	if err := checkLimit("size of a region", size, 0, MaxRegion); err != nil {
		return nil, err
	}
	r, err := pd.reserve()
	if err != nil {
		return nil, err
	}
	return &MR{pd: pd, r: r, size: size}, nil
}

// reserve makes a region without memory and counts it.
func (pd *PD) reserve() (*ddp.Region, error) {
	if err := pd.refs.enter(); err != nil {
		return nil, err
	}
	r, err := pd.dev.table.Reserve(&pd.domain)
	if err != nil {
		pd.refs.leave()
		return nil, tableError(err)
	}
	return r, nil
}

// STag returns the steering tag of the region: random, and not reused for a
// long time after Close.
func (mr *MR) STag() uint32 { return mr.r.STag() }

// Len returns the size of the region; of one made by AllocMR the most it may
// have.
func (mr *MR) Len() int {
	if mr.size >= 0 {
		return mr.size
	}
	return len(mr.buf)
}

// Bytes returns the memory of the region, nil for one made by AllocMR.
func (mr *MR) Bytes() []byte { return mr.buf }

// Access returns the rights, 0 for a region made by AllocMR.
func (mr *MR) Access() Access {
	if mr.size >= 0 {
		return 0
	}
	return mr.r.Access()
}

// Slice returns a scatter/gather element. It is checked when it is posted.
func (mr *MR) Slice(off, n int) SGE { return SGE{mr, off, n} }

// Remote returns what a peer needs to access the region; of one made by AllocMR
// the STag and size only.
func (mr *MR) Remote() RemoteBuf {
	b := RemoteBuf{STag: mr.r.STag(), Len: uint64(mr.Len())}
	if mr.size < 0 {
		b.TO = mr.r.Base()
	}
	return b
}

// Sync orders the caller's accesses to the memory with those of peers, in the
// sense of the Go memory model: call it before reading what a peer has written,
// once the peer told so, and after writing, before a peer is told to read. It
// waits for nothing.
func (mr *MR) Sync() { mr.r.Sync() }

// Invalidate revokes the remote rights, permanently unless AllocMR made the region. After
// it has returned, no peer can change the memory. Read Responses to peers may still be sent
// from it: see [MR.Drain]. It waits only for placements that are being copied.
func (mr *MR) Invalidate() { mr.r.Revoke() }

// AfterDrain invalidates the region and calls f once, when the transport no longer reads
// the memory for peers. Without ReadSnapshot, Read Responses reference the memory instead
// of copying it, until the peer has acknowledged them or the connection is lost. Memory that
// peers may have read must not be changed before that.
//
// Invalidate windows bound to the region first. If a region of AllocMR is registered again
// meanwhile, f also waits for reads of the new memory.
//
// f may be called before AfterDrain returns, or on a goroutine of the transport. It must not
// block or poll, but it may post work requests. The region may be closed before f is called.
func (mr *MR) AfterDrain(f func()) { mr.r.AfterSources(f) }

// Drain invalidates the region and blocks until the transport no longer reads the memory
// for peers, see [MR.AfterDrain], so that the caller may change it. It returns ctx.Err() if
// ctx is done before.
func (mr *MR) Drain(ctx context.Context) error {
	done := make(chan struct{})
	mr.AfterDrain(func() { close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Invalidated reports whether the remote rights were revoked, by this side or
// by a peer. A region of AllocMR begins like that.
func (mr *MR) Invalidated() bool { return mr.r.Revoked() }

// Renew gives a region of AllocMR a new STag, and makes the old one unknown. It
// returns ErrBusy, and changes nothing, while the region is registered or posted
// work requests name it, and ErrInvalid for other regions. It must not be called
// while another goroutine uses the region.
func (mr *MR) Renew() error {
	if mr.size < 0 {
		return ErrInvalid
	}
	return mr.pd.renew(&mr.r)
}

// renew replaces a region of reserve that is not bound by another.
func (pd *PD) renew(p **ddp.Region) error {
	old := *p
	if !old.Revoked() || old.Pinned() {
		return stagBusy(old)
	}
	r, err := pd.dev.table.Reserve(&pd.domain)
	if err != nil {
		return tableError(err)
	}
	if !old.Retire() {
		pd.dev.table.Remove(r)
		if old.Pinned() {
			return stagBusy(old)
		}
		return ErrClosed
	}
	pd.dev.table.Remove(old)
	*p = r
	return nil
}

// Change tells what Reregister changes.
type Change uint8

// What Reregister may change.
const (
	ChangeTranslation Change = 1 << iota
	ChangePD
	ChangeAccess
)

// Reregister changes the memory, the domain or the rights of a region, or
// several of them, as what says; other arguments are not looked at. When it
// returns no peer can change memory by the old STag; the region has a new one.
// It returns ErrBusy, and changes nothing, while posted work requests name the
// region or windows are bound to it, and ErrInvalid for regions of RegisterFor
// and AllocMR and for domains of another device. It must not be called while
// another goroutine uses the region.
func (mr *MR) Reregister(what Change, pd *PD, buf []byte, access Access) error {
	if mr.size >= 0 || mr.r.Scoped() {
		return ErrInvalid
	}
	base := mr.r.Base()
	if what&ChangePD == 0 {
		pd = mr.pd
	} else if pd == nil || pd.dev != mr.pd.dev {
		return ErrInvalid
	}
	if what&ChangeTranslation == 0 {
		buf = mr.buf
	}
	if what&ChangeAccess == 0 {
		access = mr.r.Access()
	}
	if what&^(ChangeTranslation|ChangePD|ChangeAccess) != 0 {
		return ErrInvalid
	}
	fresh, err := pd.register(buf, base, access, nil)
	if err != nil {
		return err
	}
	if err := mr.Close(); err != nil {
		fresh.Close()
		return err
	}
	*mr = *fresh
	return nil
}

// Close revokes all rights and frees the region (ibv_dereg_mr). After it has returned, no
// peer can change the memory. It returns [ErrBusy] and changes nothing while posted work
// requests name the region or windows are bound to it. A Read of a peer that is being
// answered does not keep the region busy: it is terminated. If peers may have read the
// memory, call [MR.Drain] before changing it.
func (mr *MR) Close() error { return mr.pd.release(mr.r) }

// release frees a region.
func (pd *PD) release(r *ddp.Region) error {
	if !r.Retire() {
		if r.Pinned() {
			return stagBusy(r)
		}
		return ErrClosed
	}
	pd.dev.table.Remove(r)
	pd.refs.leave()
	return nil
}

// stagBusy explains why a region or window cannot be closed or get another STag.
func stagBusy(r *ddp.Region) error {
	if r.Pinned() {
		return explain(ErrBusy, "STag %#x: posted work requests name it, or windows are bound to it", r.STag())
	}
	return explain(ErrBusy, "STag %#x: it is bound or registered", r.STag())
}
