package perf

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/weftstack/weft/verbs"
)

// Messages of perftest's control connection, which is a queue pair of its own:
// the client sends, the server answers with a message of the same kind and
// length. Numbers are in network byte order.
const (
	peerVersion    = "6.06 weft" // the number is that of perftest 4.5
	minPeerVersion = 5.70        // older ones have other messages
	peerVersionLen = 16
	peerIntLen     = 4
	peerMTU        = "3\x00" // IBV_MTU_1024, as text
	peerDestLen    = 56
	peerNumberLen  = 8
)

// errPeerMessage is returned for a message that perftest would not send here.
var errPeerMessage = errors.New("unexpected message of the peer: do both sides run the same test?")

// peerControl is the control connection.
type peerControl struct {
	client bool
	qp     *verbs.QP
	cq     *verbs.CQ
	in     *verbs.MR
	got    []int // lengths of messages that arrived
	sent   int   // completions of sends
	end    error // why nothing more can be received
	one    [1]verbs.WC
}

// newControl connects the control connection.
func (e *peerEnd) newControl(ctx context.Context) (*peerControl, error) {
	c := &peerControl{client: e.client}
	var req *verbs.ConnRequest
	var err error
	if !e.client {
		if req, err = e.listener.Accept(ctx); err != nil {
			return nil, err
		}
	}
	if c.cq, err = e.device.NewCQ(8); err != nil {
		return nil, err
	}
	if c.in, err = e.pd.Register(make([]byte, peerDestLen), verbs.LocalWrite); err != nil {
		return nil, err
	}
	if c.qp, err = e.pd.NewQP(verbs.QPConfig{SendCQ: c.cq, RecvCQ: c.cq, SendDepth: 2, RecvDepth: 2}); err != nil {
		return nil, err
	}
	if err = c.postRecv(); err == nil {
		if e.client {
			_, err = e.device.ConnectTCP(ctx, e.addr, c.qp, verbs.ConnParams{})
		} else {
			err = req.Accept(c.qp, verbs.ConnParams{})
		}
	}
	if err != nil {
		c.qp.Close()
		return nil, err
	}
	return c, nil
}

func (c *peerControl) postRecv() error {
	return c.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{c.in.Slice(0, peerDestLen)}})
}

// swap sends a message and returns that of the other side, of the same length.
func (c *peerControl) swap(ctx context.Context, mine []byte) (theirs []byte, err error) {
	for _, send := range []bool{c.client, !c.client} {
		if send {
			err = c.send(ctx, mine)
		} else {
			theirs, err = c.receive(ctx, len(mine))
		}
		if err != nil {
			return nil, fmt.Errorf("control connection: %w", err)
		}
	}
	return theirs, nil
}

func (c *peerControl) send(ctx context.Context, b []byte) error {
	if err := c.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, Inline: b}); err != nil {
		return whyEnded(c.qp, err)
	}
	for c.sent == 0 {
		if err := c.reap(ctx); err != nil {
			return err
		}
	}
	c.sent--
	return nil
}

func (c *peerControl) receive(ctx context.Context, n int) ([]byte, error) {
	if c.end != nil {
		return nil, whyEnded(c.qp, c.end)
	}
	for len(c.got) == 0 {
		if err := c.reap(ctx); err != nil {
			return nil, err
		}
	}
	got := c.got[0]
	c.got = c.got[1:]
	if got != n {
		return nil, fmt.Errorf("%w: %d bytes, want %d", errPeerMessage, got, n)
	}
	b := bytes.Clone(c.in.Bytes()[:n])
	c.end = c.postRecv() // it may have been the last message
	return b, nil
}

// reap waits for a completion.
func (c *peerControl) reap(ctx context.Context) error {
	if _, err := c.cq.Wait(ctx, c.one[:]); err != nil {
		return err
	}
	wc := &c.one[0]
	if err := wc.Err(); err != nil {
		return err
	}
	if wc.Recv {
		c.got = append(c.got, int(wc.Len))
	} else {
		c.sent++
	}
	return nil
}

// whyEnded prefers the reason of a queue pair's end to what follows from it.
func whyEnded(qp *verbs.QP, err error) error {
	if errors.Is(err, verbs.ErrQPState) && qp.Err() != nil {
		return qp.Err()
	}
	return err
}

// agree exchanges versions, sizes of pages and cache lines, of which both take
// the larger, and a path MTU that means nothing to iWARP.
func (e *peerEnd) agree(ctx context.Context) error {
	theirs, err := e.ctl.swap(ctx, append([]byte(peerVersion), make([]byte, peerVersionLen-len(peerVersion))...))
	if err != nil {
		return err
	}
	if err := checkPeerVersion(theirs); err != nil {
		return err
	}
	e.patient = !bytes.Equal(bytes.TrimRight(theirs, "\x00"), []byte(peerVersion))
	page, err := e.ctl.swapInt(ctx, peerPage)
	if err != nil {
		return err
	}
	if e.page = max(peerPage, page); e.page > maxPeerPage {
		return fmt.Errorf("%w: pages of %d bytes", errPeerMessage, page)
	}
	if _, err := e.ctl.swapInt(ctx, peerLine); err != nil {
		return err
	}
	_, err = e.ctl.swap(ctx, []byte(peerMTU))
	return err
}

// checkPeerVersion looks at the number that a version begins with.
func checkPeerVersion(b []byte) error {
	text, _, _ := bytes.Cut(b, []byte{0})
	end := 0
	for end < len(text) && (text[end] == '.' || '0' <= text[end] && text[end] <= '9') {
		end++
	}
	v, err := strconv.ParseFloat(string(text[:end]), 64)
	if err != nil {
		return fmt.Errorf("%w: version %q", errPeerMessage, text)
	}
	if v < minPeerVersion {
		return fmt.Errorf("the peer runs perftest %v, want %v or later", v, minPeerVersion)
	}
	return nil
}

// swapInt exchanges a number that is not negative.
func (c *peerControl) swapInt(ctx context.Context, mine int) (int, error) {
	b, err := c.swap(ctx, binary.BigEndian.AppendUint32(nil, uint32(mine)))
	if err != nil {
		return 0, err
	}
	n := int32(binary.BigEndian.Uint32(b))
	if n < 0 {
		return 0, fmt.Errorf("%w: %d", errPeerMessage, n)
	}
	return int(n), nil
}

// peerDest is what a side tells of a queue pair: a number to show, the reads
// that it takes, and the memory to write to or to read from.
type peerDest struct {
	reads, qpn, key uint32
	address         uint64
}

// shake exchanges a peerDest. What is left out here (LID, PSN, GID, SRQ) is of
// InfiniBand.
func (c *peerControl) shake(ctx context.Context, mine peerDest) (theirs peerDest, err error) {
	b, err := c.swap(ctx, mine.marshal())
	if err != nil {
		return peerDest{}, err
	}
	return parsePeerDest(b), nil
}

func (d peerDest) marshal() []byte {
	b := make([]byte, peerDestLen)
	binary.BigEndian.PutUint32(b[4:], d.reads)
	binary.BigEndian.PutUint32(b[8:], d.qpn)
	binary.BigEndian.PutUint32(b[16:], d.key)
	binary.BigEndian.PutUint64(b[24:], d.address)
	return b
}

func parsePeerDest(b []byte) peerDest {
	return peerDest{reads: binary.BigEndian.Uint32(b[4:]), qpn: binary.BigEndian.Uint32(b[8:]),
		key: binary.BigEndian.Uint32(b[16:]), address: binary.BigEndian.Uint64(b[24:])}
}

// report exchanges results, number by number. That of a server is zero: it has
// measured nothing, and perftest has it send what is in its memory.
func (e *peerEnd) report(ctx context.Context, mine perftestRow) (perftestRow, error) {
	numbers := [5]uint64{uint64(mine.Size), uint64(mine.Iterations), math.Float64bits(mine.Peak),
		math.Float64bits(mine.Average), math.Float64bits(mine.MsgRate)}
	for i, n := range numbers {
		b, err := e.ctl.swap(ctx, binary.BigEndian.AppendUint64(make([]byte, 0, peerNumberLen), n))
		if err != nil {
			return perftestRow{}, err
		}
		numbers[i] = binary.BigEndian.Uint64(b)
	}
	if e.client {
		return perftestRow{}, nil
	}
	return peerReport(e.options, numbers)
}

// peerReport makes a row of the numbers of a client.
func peerReport(o *options, n [5]uint64) (perftestRow, error) {
	row := perftestRow{Mode: o.Mode, Peak: math.Float64frombits(n[2]), Average: math.Float64frombits(n[3]),
		MsgRate: math.Float64frombits(n[4]), Unit: o.unit()}
	if n[0] > maxPerfSize || n[1] > math.MaxInt32 {
		return row, fmt.Errorf("%w: %d times %d bytes", errPeerMessage, n[1], n[0])
	}
	row.Size, row.Iterations = int(n[0]), int(n[1])
	for _, v := range []float64{row.Peak, row.Average, row.MsgRate} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return row, fmt.Errorf("%w: a rate of %v", errPeerMessage, v)
		}
	}
	return row, nil
}
