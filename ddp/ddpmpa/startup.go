package ddpmpa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weftstack/weft/ddp"
)

// StartupTimeout bounds the wait for a startup frame unless Params.Timeout does
// (RFC 5044, Section 7.1.2, rules 8 and 10).
const StartupTimeout = 10 * time.Second

// defaultEMSS is the segment size of a connection that does not tell: an MTU
// of 1500 less the headers of IPv6 and TCP with timestamps.
const defaultEMSS = 1428

// Params are what a side brings to a connection.
type Params struct {
	// Markers requires markers of the peer.
	Markers bool
	// NoCRC tells the peer that this side can do without CRCs. They are not
	// used if both sides can. The application must have asked for it (RFC
	// 5044, Section 4.4).
	NoCRC bool
	// Enhanced, for Initiate, asks for an enhanced connection (RFC 6581):
	// revision 2, else revision 1. With PeerToPeer the zero-length Write is
	// always offered as ready-to-receive indication: the channel sends it by
	// itself. RTRSend and RTRRead are offered if set: the caller is then to
	// send what Frame.Indication of the reply says.
	Enhanced *ddp.Enhanced
	// Private is the private data of the request; at most MaxPrivate octets,
	// ddp.EnhancedLen less with Enhanced.
	Private []byte
	// Timeout bounds the wait for the peer's startup frame, from the call of
	// Initiate or Respond to its last octet (context.DeadlineExceeded). 0 is
	// StartupTimeout, or the deadline of the context if that has one; if it is
	// negative only the context bounds the wait.
	Timeout time.Duration
}

// rtrWrite is a zero-length RDMA Write message, which touches nothing: a
// ready-to-receive indication (RFC 6581, Section 9.2; RFC 5040, Section 4.1).
var rtrWrite = ddp.AppendHeader(nil, &ddp.Header{Tagged: true, Last: true, Ctrl: 0x40})

// Initiate starts MPA on a TCP connection as the initiator: it sends a request
// and waits for the reply, until ctx is done or Params.Timeout has passed. If
// the reply accepts, the channel is not nil; it runs after Run. If it rejects,
// the TCP connection stays open, else after an error it is closed.
//
// Of the indications that the reply names, Frame.Indication tells the one to
// use. If it is IndicationNone, the channel is to be run, and the stream to Fail
// with FaultRTR.
func Initiate(ctx context.Context, c Conn, p Params) (*Channel, Frame, error) {
	f := Frame{Markers: p.Markers, CRC: !p.NoCRC, Revision: Revision1, Private: p.Private}
	limit := MaxPrivate
	if p.Enhanced != nil {
		f.Revision, f.IsEnhanced, f.Enhanced = Revision2, true, *p.Enhanced
		f.Enhanced.RTRWrite = true
		limit -= ddp.EnhancedLen
	}
	if len(p.Private) > limit {
		c.Close()
		return nil, Frame{}, privateError(len(p.Private), limit)
	}
	stop := deadline(ctx, c, p.Timeout, "reply")
	_, err := c.Write(AppendFrame(nil, &f))
	var reply Frame
	if err == nil {
		reply, err = readFrame(c, true)
	}
	err = stop(err)
	if err == nil && reply.IsEnhanced != f.IsEnhanced {
		// RFC 6581, Section 10: "MUST respond with an enhanced MPA message",
		// and the other way round. A rejection may have been the ULP's.
		if !reply.Rejected {
			err = ErrFrame
		}
	}
	if err != nil {
		c.Close()
		return nil, reply, err
	}
	if reply.Rejected {
		return nil, reply, nil
	}
	ch := newChannel(c, &f, &reply, false)
	ch.rtr = f.IsEnhanced && reply.Indication(f.Enhanced) == IndicationWrite
	ch.initiator = true
	return ch, reply, nil
}

// Indication is a ready-to-receive indication (RFC 6581, Section 9.2).
type Indication uint8

// Indications, in the order in which they are preferred: a zero-length Write
// touches nothing, a zero-length Read takes a place among the reads, and a
// zero-length Send takes a receive buffer of the responder.
const (
	// IndicationNotAsked: the connection is not of the peer-to-peer model.
	IndicationNotAsked Indication = iota
	// IndicationWrite is sent by the channel.
	IndicationWrite
	// IndicationRead and IndicationSend are the caller's to send, before
	// anything else.
	IndicationRead
	IndicationSend
	// IndicationNone: the two sides have none in common.
	IndicationNone
)

// Indication returns what the initiator is to send of what a reply names, and
// the initiator asked for.
func (f *Frame) Indication(asked ddp.Enhanced) Indication {
	e := f.Enhanced
	switch {
	case !f.IsEnhanced || !e.PeerToPeer || !asked.PeerToPeer:
		return IndicationNotAsked
	case e.RTRWrite: // always offered, see Params
		return IndicationWrite
	case e.RTRRead && asked.RTRRead:
		return IndicationRead
	case e.RTRSend && asked.RTRSend:
		return IndicationSend
	}
	return IndicationNone
}

// Request is a peer's request that was received and waits for an answer. It is
// answered once.
type Request struct {
	// Frame is the request frame; it is the caller's to keep.
	Frame
	conn     Conn
	p        Params
	answered atomic.Bool
}

// Respond starts MPA on a TCP connection as the responder: it waits for a
// request, until ctx is done or Params.Timeout has passed. Of p, Markers, NoCRC
// and Timeout are used. After an error the connection is closed.
func Respond(ctx context.Context, c Conn, p Params) (*Request, error) {
	stop := deadline(ctx, c, p.Timeout, "request")
	f, err := readFrame(c, false)
	err = stop(err)
	if err != nil {
		c.Close()
		return nil, err
	}
	return &Request{Frame: f, conn: c, p: p}, nil
}

// Conn returns the TCP connection.
func (r *Request) Conn() Conn { return r.conn }

// Accept accepts the request. e is the enhanced data of the reply, used if the
// request was enhanced. It does not block for longer than the kernel takes to
// buffer the frame. bind is called with the channel before the peer learns of
// the answer; after it the stream may send. After an error the TCP connection
// is closed.
func (r *Request) Accept(s Sink, bind func(*Channel) error, e ddp.Enhanced, private []byte) error {
	f := Frame{Reply: true, Markers: r.p.Markers, CRC: !r.p.NoCRC || r.CRC, Revision: r.Revision,
		IsEnhanced: r.IsEnhanced, Enhanced: e, Private: private}
	// RFC 6581, Section 9.2: mirror A, and offer what needs no receive buffer.
	p2p := r.Enhanced.PeerToPeer
	f.Enhanced.PeerToPeer, f.Enhanced.RTRSend = p2p, false
	f.Enhanced.RTRWrite, f.Enhanced.RTRRead = p2p, p2p && e.IRD > 0
	if len(private) > f.maxPrivate() {
		return privateError(len(private), f.maxPrivate())
	}
	if r.answered.Swap(true) {
		return ErrClosed
	}
	ch := newChannel(r.conn, &f, &r.Frame, true)
	if err := bind(ch); err != nil {
		ch.close(err)
		return err
	}
	if err := r.reply(&f); err != nil {
		ch.close(err)
		ch.Run(s)
		return err
	}
	ch.Run(s)
	return nil
}

func (f *Frame) maxPrivate() int {
	if f.IsEnhanced {
		return MaxPrivate - ddp.EnhancedLen
	}
	return MaxPrivate
}

func privateError(n, limit int) error {
	return fmt.Errorf("%w: %d bytes: at most %d", ErrPrivate, n, limit)
}

// Reject rejects the request at the direction of the consumer, and closes the
// TCP connection.
func (r *Request) Reject(e ddp.Enhanced, private []byte) error {
	f := Frame{Reply: true, Rejected: true, Markers: r.p.Markers, CRC: !r.p.NoCRC || r.CRC, Revision: r.Revision,
		IsEnhanced: r.IsEnhanced, Enhanced: e, Private: private}
	if len(private) > f.maxPrivate() {
		return privateError(len(private), f.maxPrivate())
	}
	if r.answered.Swap(true) {
		return ErrClosed
	}
	defer r.conn.Close()
	return r.reply(&f)
}

// Close drops the request and the TCP connection.
func (r *Request) Close() error {
	if r.answered.Swap(true) {
		return ErrClosed
	}
	return r.conn.Close()
}

func (r *Request) reply(f *Frame) error {
	r.conn.SetWriteDeadline(time.Now().Add(StartupTimeout))
	defer r.conn.SetWriteDeadline(time.Time{})
	if _, err := r.conn.Write(AppendFrame(nil, f)); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("reply to %v not sent in %v: %w: %w", r.conn.RemoteAddr(), StartupTimeout,
				context.DeadlineExceeded, err)
		}
		return lostError(err)
	}
	return nil
}

// readFrame reads one startup frame, and nothing after it.
func readFrame(c Conn, reply bool) (Frame, error) {
	var buf [FrameHeaderLen + MaxPrivate]byte
	have := 0
	// The first read is no longer than the shortest frame.
	for need := FrameHeaderLen; ; {
		n, err := c.Read(buf[have:need])
		have += n
		if n == 0 && err != nil {
			switch {
			case err == io.EOF && have > 0:
				return Frame{}, ErrFrame
			case reply && have == 0 && closed(err):
				return Frame{}, ErrNoReply
			}
			return Frame{}, lostError(err)
		}
		f, want, ok, err := ParseFrame(buf[:have], reply)
		if err != nil {
			return Frame{}, err
		}
		if ok {
			f.Private = bytes.Clone(f.Private)
			return f, nil
		}
		need = want
	}
}

// closed reports whether the peer ended the connection.
func closed(err error) bool {
	return err == io.EOF || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// deadline ends the calls on c, which wait for the frame named, when ctx is done or
// limit has passed. The function it returns puts an end to that; it is given the error
// that the calls ended with, and returns the one to tell.
func deadline(ctx context.Context, c Conn, limit time.Duration, frame string) func(error) error {
	start := time.Now()
	if _, limited := ctx.Deadline(); limit == 0 && !limited {
		limit = StartupTimeout
	}
	if limit > 0 {
		c.SetDeadline(start.Add(limit))
	}
	late := func(why error) error {
		return fmt.Errorf("ddpmpa: no MPA %s from %v after %v: %w", frame, c.RemoteAddr(),
			time.Since(start).Round(time.Millisecond), why)
	}
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.SetDeadline(time.Unix(1, 0))
		close(fired)
	})
	return func(err error) error {
		if !stop() {
			<-fired
			return late(ctx.Err())
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return late(fmt.Errorf("%w: %w", context.DeadlineExceeded, err))
		}
		if e := c.SetDeadline(time.Time{}); err == nil {
			err = e
		}
		return err
	}
}
