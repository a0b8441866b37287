package sockets

import (
	"fmt"
	"math"
	"syscall"
	"time"

	"github.com/weftstack/weft/sctp"
)

// SubscribeEvents chooses, by SCTP_EVENT_ bits, the notifications that are queued from now on,
// and whether reads return an SndRcvInfo (SCTP_EVENT_DATA_IO). It returns syscall.EINVAL for
// other bits. SCTP_EVENT_SENDER_DRY comes at once if nothing is outstanding (RFC 6458, Section
// 6.1.9).
func (c *SCTPConn) SubscribeEvents(flags int) error {
	if flags&^SCTP_EVENT_ALL != 0 {
		return c.opError("set", withErrno(fmt.Errorf("events %#x: at most %#x", flags, SCTP_EVENT_ALL), syscall.EINVAL))
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.opError("set", errClosed)
	}
	dry := flags&^c.events&SCTP_EVENT_SENDER_DRY != 0
	c.events = flags
	list := c.associations()
	c.mu.Unlock()
	for _, as := range list {
		if dry && as.a.State() == sctp.Established && as.a.Stats().Queued == 0 {
			as.notify(SCTP_EVENT_SENDER_DRY, &SenderDry{AssocID: as.id})
		}
	}
	return nil
}

// SubscribedEvents returns what SubscribeEvents has set.
func (c *SCTPConn) SubscribedEvents() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events, nil
}

func (c *SCTPConn) subscribed(event int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events&event != 0
}

// SetDefaultSentParam sets what SCTPWrite sends with if it is given no SndRcvInfo.
func (c *SCTPConn) SetDefaultSentParam(info *SndRcvInfo) error {
	if info == nil || info.Flags&^SCTP_UNORDERED != 0 {
		return c.opError("set", withErrno(fmt.Errorf("default parameters %+v: flags may be SCTP_UNORDERED", info), syscall.EINVAL))
	}
	c.mu.Lock()
	c.defaults = *info
	c.mu.Unlock()
	return nil
}

// GetDefaultSentParam returns what SetDefaultSentParam has set.
func (c *SCTPConn) GetDefaultSentParam() (*SndRcvInfo, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.defaults
	return &i, nil
}

// SetInitMsg sets what later associations are opened with. Those of a socket are opened with
// its SocketConfig, so it has no effect but to be returned: like the kernel's, it does not
// change an association. It returns syscall.EINVAL for a number outside 0 to 65535.
func (c *SCTPConn) SetInitMsg(numOstreams, maxInstreams, maxAttempts, maxInitTimeout int) error {
	for _, n := range []int{numOstreams, maxInstreams, maxAttempts, maxInitTimeout} {
		if n < 0 || n > math.MaxUint16 {
			return c.opError("set", withErrno(fmt.Errorf("InitMsg %d: 0 to 65535", n), syscall.EINVAL))
		}
	}
	return nil
}

// unchangeable is the error of parameters that are chosen before an association is opened.
func (c *SCTPConn) unchangeable(what string) error {
	return c.opError("set", fmt.Errorf("%s of an association: SocketConfig.%s sets it: %w", what, what, errUnsupported))
}

// SetRtoInfo returns an error that is errors.ErrUnsupported: SocketConfig.RtoInfo sets it.
func (c *SCTPConn) SetRtoInfo(RtoInfo) error { return c.unchangeable("RtoInfo") }

// SetAssocInfo returns an error that is errors.ErrUnsupported: SocketConfig.AssocInfo sets it.
func (c *SCTPConn) SetAssocInfo(AssocInfo) error { return c.unchangeable("AssocInfo") }

// SetSackTimer returns an error that is errors.ErrUnsupported, unless timer is what
// SocketConfig.SackTimer has set.
func (c *SCTPConn) SetSackTimer(timer *SackTimer) error {
	now, _ := c.GetSackTimer()
	if timer != nil && timer.SackDelay == now.SackDelay && timer.SackFrequency == now.SackFrequency {
		return nil
	}
	return c.unchangeable("SackTimer")
}

// GetSackTimer returns the parameters of delayed acknowledgements.
func (c *SCTPConn) GetSackTimer() (*SackTimer, error) {
	t := SackTimer{SackDelay: 200, SackFrequency: 2}
	if s := c.set.SackTimer; s != nil {
		if s.SackDelay != 0 {
			t.SackDelay = s.SackDelay
		}
		if s.SackFrequency != 0 {
			t.SackFrequency = s.SackFrequency
		}
	}
	return &t, nil
}

// GetRtoInfo returns the bounds of the retransmission timer.
func (c *SCTPConn) GetRtoInfo() (*RtoInfo, error) {
	r := RtoInfo{SrtoInitial: 1000, SrtoMax: 60000, StroMin: 200}
	if s := c.set.RtoInfo; s != nil {
		for _, f := range []struct{ to, from *uint32 }{{&r.SrtoInitial, &s.SrtoInitial}, {&r.SrtoMax, &s.SrtoMax}, {&r.StroMin, &s.StroMin}} {
			if *f.from != 0 {
				*f.to = *f.from
			}
		}
	}
	return &r, nil
}

// GetAssocInfo returns parameters of the association of a one-to-one socket.
func (c *SCTPConn) GetAssocInfo() (*AssocInfo, error) {
	as, err := c.find(0)
	if err != nil {
		return nil, c.opError("get", err)
	}
	st := as.a.Stats()
	i := AssocInfo{AssocID: as.id, AsocMaxRxt: 10, CookieLife: 60000, NumberPeerDestinations: uint16(len(st.Paths)), PeerRwnd: clamp32(st.PeerWindow), LocalRwnd: clamp32(c.set.ReadBuffer)}
	if s := c.set.AssocInfo; s != nil {
		if s.AsocMaxRxt != 0 {
			i.AsocMaxRxt = s.AsocMaxRxt
		}
		if s.CookieLife != 0 {
			i.CookieLife = s.CookieLife
		}
	}
	return &i, nil
}

// SetNoDelay with 1 does nothing: small messages are sent at once (RFC 6458, Section 8.1.5).
// With 0 it returns an error that is errors.ErrUnsupported.
func (c *SCTPConn) SetNoDelay(optval int) error {
	if optval == 0 {
		return c.opError("set", errUnsupported)
	}
	return nil
}

// GetNoDelay returns 1.
func (c *SCTPConn) GetNoDelay() (int, error) { return 1, nil }

func clamp32(n int) uint32 { return uint32(min(int64(max(n, 0)), math.MaxUint32)) }
func clamp16(n int) uint16 { return uint16(min(max(n, 0), math.MaxUint16)) }

// statusStates has the states of a Status.
var statusStates = map[sctp.State]StatusState{
	sctp.Closed: SCTP_CLOSED, sctp.CookieWait: SCTP_COOKIE_WAIT, sctp.CookieEchoed: SCTP_COOKIE_ECHOED,
	sctp.Established: SCTP_ESTABLISHED, sctp.ShutdownPending: SCTP_SHUTDOWN_PENDING, sctp.ShutdownSent: SCTP_SHUTDOWN_SENT,
	sctp.ShutdownReceived: SCTP_SHUTDOWN_RECEIVED, sctp.ShutdownAckSent: SCTP_SHUTDOWN_ACK_SENT,
}

// GetStatus describes the association of a one-to-one socket.
func (c *SCTPConn) GetStatus() (*Status, error) { return c.StatusOf(0) }

// StatusOf describes an association; 0 is that of a one-to-one socket. It does not block.
func (c *SCTPConn) StatusOf(id SCTPAssocID) (*Status, error) {
	as, err := c.find(id)
	if err != nil {
		return nil, c.opError("get", err)
	}
	st, fragment := as.a.Stats(), max(as.a.MaxPayload(), 1)
	out, in := as.a.Streams()
	s := &Status{
		AssocID: as.id, State: statusStates[as.a.State()], RWND: clamp32(st.PeerWindow), Instreams: in, Ostreams: out,
		Unackdata: clamp16((st.InFlight + fragment - 1) / fragment), FragmentationPoint: uint32(fragment),
	}
	waiting := 0
	c.mu.Lock()
	for _, it := range c.queue.items[c.queue.head:] {
		if it.from == as {
			waiting += len(it.data)
		}
	}
	c.mu.Unlock()
	s.Penddata = clamp16((waiting + fragment - 1) / fragment)
	if len(st.Paths) > 0 {
		p := &st.Paths[0]
		i := &s.PrimaryPeerAddr
		i.AssocID, i.CWND, i.MTU = as.id, clamp32(p.CWND), clamp32(p.MTU)
		i.SRTT, i.RTO = clamp32(int(p.SRTT.Milliseconds())), clamp32(int(p.RTO.Milliseconds()))
		copy(i.Address[:], appendSockaddr(nil, p.Remote.Addr(), as.a.RemoteAddr().Port))
		switch {
		case !p.Confirmed:
			i.State = SCTP_UNCONFIRMED
		case p.Active:
			i.State = SCTP_ACTIVE
		default:
			i.State = SCTP_INACTIVE
		}
	}
	return s, nil
}

// SetReadBuffer has no effect on associations that there are: SocketConfig.ReadBuffer bounds what
// they hold for reads, which GetReadBuffer tells. A number that is not positive is
// syscall.EINVAL.
func (c *SCTPConn) SetReadBuffer(bytes int) error { return c.setBuffer("read", bytes) }

// GetReadBuffer returns the receive buffer of an association, in bytes.
func (c *SCTPConn) GetReadBuffer() (int, error) { return c.set.ReadBuffer, nil }

// SetWriteBuffer is like SetReadBuffer for SocketConfig.WriteBuffer.
func (c *SCTPConn) SetWriteBuffer(bytes int) error { return c.setBuffer("write", bytes) }

// GetWriteBuffer returns the send buffer of an association, in bytes.
func (c *SCTPConn) GetWriteBuffer() (int, error) { return c.set.WriteBuffer, nil }

func (c *SCTPConn) setBuffer(which string, bytes int) error {
	switch {
	case bytes <= 0:
		return c.opError("set", withErrno(fmt.Errorf("%s buffer of %d bytes", which, bytes), syscall.EINVAL))
	case c.isClosed():
		return c.opError("set", errClosed)
	}
	return nil
}

// SetReadTimeout bounds how long each read waits, as SO_RCVTIMEO does: then it returns
// syscall.EAGAIN. 0 is no bound.
func (c *SCTPConn) SetReadTimeout(tv syscall.Timeval) error {
	return c.setTimeout(&c.readTimeout, timeval(tv))
}

// SetWriteTimeout bounds how long each write waits, as SO_SNDTIMEO does: then it returns
// syscall.EAGAIN. 0 is no bound.
func (c *SCTPConn) SetWriteTimeout(tv syscall.Timeval) error {
	return c.setTimeout(&c.writeTimeout, timeval(tv))
}

func (c *SCTPConn) setTimeout(to *time.Duration, d time.Duration) error {
	if d < 0 {
		return c.opError("set", withErrno(fmt.Errorf("timeout %v", d), syscall.EINVAL))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	*to = d
	return nil
}

// SetNonBlock has reads and writes return syscall.EAGAIN instead of waiting.
func (c *SCTPConn) SetNonBlock(nonBlock bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nonblock = nonBlock
	c.waiters.wake()
	return nil
}
