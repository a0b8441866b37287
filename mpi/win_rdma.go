package mpi

import (
	"context"
	"encoding/binary"

	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/verbs"
)

// rmaPiece bounds one RDMA Write or Read, in bytes: the length of an iWARP message has 32 bits.
const rmaPiece = 1 << 30

// connTo returns the connection to a target and its registered memory.
func (w *window) connTo(ctx context.Context, target int) (*rmaConn, verbs.RemoteBuf, error) {
	info := &w.remote[target]
	c, err := w.dev.conn(ctx, int(w.c.group[target]), info)
	return c, verbs.RemoteBuf{STag: info.STag, Len: info.Bytes}, err
}

// posted records that an operation of the window was posted.
func (t *winTarget) posted(c *rmaConn, op uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn != c {
		if t.conn != nil && t.err == nil {
			t.err = t.conn.failure() // of operations on the old connection
		}
		t.conn, t.last = c, 0
	}
	t.last = max(t.last, op)
}

// postRDMA posts one operation of the window.
func (w *window) postRDMA(ctx context.Context, c *rmaConn, target int, wr verbs.SendWR, g *registration) (uint64, error) {
	if g != nil {
		wr.SGL = g.sgl[:]
	}
	n, err := c.post(ctx, wr, g)
	if err != nil {
		return 0, err
	}
	w.to[target].posted(c, n)
	return n, nil
}

// writeRDMA is Put by RDMA Write.
func (w *window) writeRDMA(ctx context.Context, src []byte, target, off int) error {
	c, remote, err := w.connTo(ctx, target)
	if err != nil {
		return err
	}
	if len(src) <= rmaInline {
		wr := verbs.SendWR{Op: verbs.OpWrite, Inline: src, Remote: remote.At(uint64(off))}
		_, err := w.postRDMA(ctx, c, target, wr, nil)
		return err
	}
	for len(src) > 0 {
		n := min(len(src), rmaPiece)
		g, err := w.dev.regs.get(w.dev.pd, src[:n], 0)
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
func (w *window) readRDMA(ctx context.Context, dst []byte, target, off int) error {
	c, remote, err := w.connTo(ctx, target)
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		n := min(len(dst), rmaPiece)
		g, err := w.dev.regs.get(w.dev.pd, dst[:n], verbs.LocalWrite)
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

// atomicRDMA performs an RDMA atomic on one word and waits for the old value (RFC 7306, Section 5).
func (w *window) atomicRDMA(ctx context.Context, wr verbs.SendWR, old []byte, target, disp int) error {
	off, done, err := w.locate(target, disp, 8, AccessUpdate)
	if done || err != nil {
		return err
	}
	c, remote, err := w.connTo(ctx, target)
	if err != nil {
		return err
	}
	wr.Remote = remote.At(uint64(off))
	return c.atomic(ctx, wr, old)
}

// atomic performs one RDMA atomic at a time and copies its result to old.
func (c *rmaConn) atomic(ctx context.Context, wr verbs.SendWR, old []byte) error {
	if err := c.solo.Lock(ctx); err != nil {
		return err
	}
	defer c.solo.Unlock()
	wr.SGL = []verbs.SGE{c.word.Slice(0, 8)}
	n, err := c.post(ctx, wr, nil)
	if err != nil {
		return err
	}
	if err := c.wait(ctx, n); err != nil {
		return err
	}
	copy(old, c.word.Bytes())
	return nil
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
