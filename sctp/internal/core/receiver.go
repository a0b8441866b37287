package core

import "github.com/weftstack/weft/sctp/internal/core/reasm"

// receiver is the receiving half of an association: the packet in hand, the data, and the
// congestion marks that are echoed. Of the association it knows the configuration and the
// events. Its methods are those of the user who reads.
type receiver struct {
	config *Config
	told   *eventQueue

	in  inbound
	ecn ecnState
	rx  dataReceiver
}

// share has the receiver use what it shares with the association.
func (r *receiver) share(cfg *Config, events *eventQueue) { r.config, r.told = cfg, events }

// consumed is called after the user has taken data: it may be time to tell the
// peer of the larger window.
func (r *receiver) consumed() {
	if r.rx.reasm.WindowGrown() {
		r.rx.sack.Force()
	}
}

// SetRecvBuffer changes the receive buffer to n bytes (0: the default). The peer may have
// to be told of a larger window: see WantTransmit.
func (r *receiver) SetRecvBuffer(n int) {
	r.config.RecvBuffer = clampRecvBuffer(n)
	if r.rx.reasm != nil {
		r.rx.reasm.SetLimit(r.config.RecvBuffer)
		r.consumed()
	}
}

// SetRecvShare bounds what may be received besides the receive buffer: memory that the
// association shares with others is short if n is less. It returns whether n counts.
func (r *receiver) SetRecvShare(n int) bool {
	q := r.rx.reasm
	if q == nil {
		return false
	}
	counts, changed := q.SetShare(n)
	if changed {
		r.consumed()
	}
	return counts
}

// RecvMemory returns how many bytes of memory what was received takes, and with it what
// the user keeps of it.
func (r *receiver) RecvMemory() int {
	q := r.rx.reasm
	if q == nil {
		return 0
	}
	return q.Memory()
}

// Readable reports whether Read would return something.
func (r *receiver) Readable() bool {
	if r.rx.reasm == nil {
		return false
	}
	_, ok := r.rx.reasm.Readable()
	return ok
}

// ReadableStream reports whether ReadStream of sid would return something.
func (r *receiver) ReadableStream(sid uint16) bool {
	return r.rx.reasm != nil && r.rx.reasm.ReadableStream(sid)
}

// Peek tells how many bytes of which message the next Read could return now; ok
// is false if there is none.
func (r *receiver) Peek() (n int, info reasm.RecvInfo, ok bool) {
	if r.rx.reasm == nil {
		return 0, reasm.RecvInfo{}, false
	}
	return r.rx.reasm.Peek(reasm.AnyStream)
}

// ReadableStreams appends the streams with something to read to dst.
func (r *receiver) ReadableStreams(dst []uint16) []uint16 {
	if r.rx.reasm == nil {
		return dst
	}
	return r.rx.reasm.AppendReadable(dst)
}

// Read copies the next message, or its next part, of any stream to dst. It
// never crosses the end of a message, which info.EOR tells; ok is false if
// there is nothing to read, and info then as it was. What was received can be read
// after the association has ended. A window update may have become due: see
// WantTransmit.
func (r *receiver) Read(dst []byte, info *reasm.RecvInfo) (n int, ok bool) {
	return r.read(reasm.AnyStream, dst, info)
}

// ReadStream is Read for one stream.
func (r *receiver) ReadStream(sid uint16, dst []byte, info *reasm.RecvInfo) (n int, ok bool) {
	return r.read(int(sid), dst, info)
}

func (r *receiver) read(sid int, dst []byte, info *reasm.RecvInfo) (n int, ok bool) {
	if r.rx.reasm == nil {
		return 0, false
	}
	n, ok = r.rx.reasm.Read(sid, dst, info)
	if ok && info.Aborted {
		r.told.push(Event{Kind: EventPartialAborted, Stream: info.SID})
	}
	r.consumed()
	return n, ok
}

// PopPiece takes the next fragment in delivery order, if there is one, to p, whose
// contents are forgotten; Config.Pieces must be set. Its bytes count against the
// receive window until ReleasePiece.
func (r *receiver) PopPiece(p *reasm.Piece) bool {
	return r.rx.reasm != nil && r.rx.reasm.PopPiece(p)
}

// ReleasePiece gives back the memory of a piece: its Data must not be used any
// more.
func (r *receiver) ReleasePiece(p *reasm.Piece) {
	p.Release() // whether or not the queue it came from is still there
	if r.rx.reasm != nil {
		r.consumed()
	}
}

// PausePieces holds back the pieces of a stream, or lets go of them again.
func (r *receiver) PausePieces(sid uint16, on bool) {
	if r.rx.reasm != nil {
		r.rx.reasm.PausePieces(sid, on)
	}
}

// KeepReceived counts n bytes against the receive window that the user keeps of
// pieces it has taken, beyond ReleasePiece: data that waits for what was lost, say.
// A negative n tells that it keeps fewer.
//
// Chunks that fill gaps are taken nevertheless: what is kept may wait for them.
func (r *receiver) KeepReceived(n int) {
	if r.rx.reasm == nil {
		return
	}
	r.rx.reasm.Keep(n)
	r.consumed()
}
