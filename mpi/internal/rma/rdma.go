package rma

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
	"github.com/weftstack/weft/verbs"
)

// register registers the caller's memory and completes what the other ranks need for access.
// Without a device it does nothing.
func (w *Window) register(mine *Part) error {
	d, err := w.c.Device()
	if d == nil || err != nil {
		return err
	}
	access := verbs.Access(0)
	if w.access&AccessRead != 0 {
		access |= verbs.RemoteRead
	}
	if w.access&AccessWrite != 0 {
		access |= verbs.RemoteWrite
	}
	if w.access&AccessUpdate != 0 {
		access |= verbs.RemoteAtomic
	}
	if w.mr, mine.Key, err = d.Expose(w.mem, access); err != nil {
		return fmt.Errorf("mpi: registering the window: %w", err)
	}
	w.dev = d
	return nil
}

// unregister ends all RDMA access to the caller's memory.
func (w *Window) unregister() error {
	if w.dev == nil {
		return nil
	}
	return w.dev.Revoke(w.mr)
}

// connTo returns the connection to a target and its registered memory.
func (w *Window) connTo(ctx context.Context, target int) (*rdmadev.Conn, verbs.RemoteBuf, error) {
	info := &w.remote[target]
	c, err := w.dev.Conn(ctx, w.to[target].handle, &info.Key)
	return c, verbs.RemoteBuf{STag: info.Key.STag, Len: info.Bytes}, err
}

// posted records that operations of the window up to op were posted, which are writes or are not. Of two connections
// one has failed: it is left, and synchronization waits for its end and tells why.
func (t *targetState) posted(c *rdmadev.Conn, op uint64, writes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn != nil && t.conn != c {
		if why := c.Failure(); why != nil { // another goroutine has a new one already
			t.leave(c, why)
			return
		}
		if why := t.conn.Failure(); why != nil && t.flushed < t.last {
			t.leave(t.conn, why)
		}
	}
	if t.conn != c {
		t.conn, t.last, t.wrote, t.flushed = c, 0, 0, 0
	}
	t.last = max(t.last, op)
	if writes {
		t.wrote = max(t.wrote, op)
	}
}

// leave records a connection that has failed, with operations in progress. t.mu is held.
func (t *targetState) leave(c *rdmadev.Conn, why error) {
	t.left = append(t.left, c)
	t.err = cmp.Or(t.err, why)
}

// postRDMA posts one operation of the window.
func (w *Window) postRDMA(
	ctx context.Context, c *rdmadev.Conn, target int, wr verbs.SendWR, g *rdmadev.Registration,
) (uint64, error) {
	if g != nil {
		wr.SGL = g.SGL()
	}
	n, err := c.Post(ctx, wr, g)
	if err != nil {
		return 0, err
	}
	w.to[target].posted(c, n, wr.Op == verbs.OpWrite)
	return n, nil
}

// writeRDMA is Put by RDMA Write.
func (w *Window) writeRDMA(ctx context.Context, src []byte, target, off int) error {
	c, remote, err := w.connTo(ctx, target)
	if err != nil {
		return err
	}
	if len(src) <= rdmadev.MaxInline {
		wr := verbs.SendWR{Op: verbs.OpWrite, Inline: src, Remote: remote.At(uint64(off))}
		_, err := w.postRDMA(ctx, c, target, wr, nil)
		return err
	}
	for len(src) > 0 {
		n := min(len(src), rdmadev.MaxSegment)
		g, err := w.dev.Registrations.Get(w.dev.PD(), src[:n], 0)
		if err != nil {
			return err
		}
		wr := verbs.SendWR{Op: verbs.OpWrite, Remote: remote.At(uint64(off))}
		if _, err := w.postRDMA(ctx, c, target, wr, g); err != nil {
			return err
		}
		src, off = src[n:], off+n
	}
	return nil
}

// readRDMA is Get by RDMA Read.
func (w *Window) readRDMA(ctx context.Context, dst []byte, target, off int) error {
	c, remote, err := w.connTo(ctx, target)
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		n := min(len(dst), rdmadev.MaxSegment)
		g, err := w.dev.Registrations.Get(w.dev.PD(), dst[:n], verbs.LocalWrite)
		if err != nil {
			return err
		}
		wr := verbs.SendWR{Op: verbs.OpRead, Remote: remote.At(uint64(off))}
		if _, err := w.postRDMA(ctx, c, target, wr, g); err != nil {
			return err
		}
		dst, off = dst[n:], off+n
	}
	return nil
}

// atomicRDMA performs an RDMA atomic on one word, at a byte offset that locateUpdate has checked, and waits for the old
// value (RFC 7306, Section 5).
func (w *Window) atomicRDMA(ctx context.Context, wr verbs.SendWR, old []byte, target, off int) error {
	c, remote, err := w.connTo(ctx, target)
	if err != nil {
		return err
	}
	wr.Remote = remote.At(uint64(off))
	n, err := c.Atomic(ctx, wr, old)
	if n > 0 { // given up: synchronization waits for it, and so do later updates in messages
		t := &w.to[target]
		t.posted(c, n, false)
		t.atomics.Store(true)
	}
	return err
}

// swapWR returns the work request of a CompareAndSwap of one word.
func swapWR(operands []byte) verbs.SendWR {
	return verbs.SendWR{
		Op:      verbs.OpCompareSwap,
		Compare: binary.NativeEndian.Uint64(operands), CompareMask: ^uint64(0),
		Operand: binary.NativeEndian.Uint64(operands[8:]), OperandMask: ^uint64(0),
	}
}

// fetchWR returns the work request of a FetchAndOp of one word, or false if RDMA has no such
// atomic.
func fetchWR(code op.Code, value []byte) (verbs.SendWR, bool) {
	v := binary.NativeEndian.Uint64(value)
	switch code {
	case op.CodeSum:
		return verbs.SendWR{Op: verbs.OpFetchAdd, Operand: v}, true
	case op.CodeNoOp:
		return verbs.SendWR{Op: verbs.OpFetchAdd}, true
	case op.CodeReplace: // a masked swap that compares no bits
		return verbs.SendWR{Op: verbs.OpCompareSwap, Operand: v, OperandMask: ^uint64(0)}, true
	}
	return verbs.SendWR{}, false
}
