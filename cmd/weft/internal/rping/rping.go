// Package rping is `weft rping`: an RDMA ping that works with rping of librdmacm.
package rping

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"github.com/weftstack/weft/cmd/weft/internal/capture"
	"github.com/weftstack/weft/ddp/ddpmpa"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
)

var errData = errors.New("data mismatch")

// pinger is one end of a connection.
type pinger struct {
	*options
	qp    *verbs.QP
	cq    *verbs.CQ
	msg   *verbs.MR // receives
	start *verbs.MR // the client's data
	data  *verbs.MR // where the data goes, on either side
	one   [1]verbs.WC
	recvs int // completions that came while another was waited for
	sent  int
}

// run is either end, from start to end.
func (o *options) run(ctx context.Context) error {
	dev, done, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	addr := net.JoinHostPort(o.addr, strconv.Itoa(o.port))
	if o.server {
		return o.serve(ctx, dev, addr)
	}
	r, err := o.newEnd(dev)
	if err != nil {
		return err
	}
	defer r.qp.Close()
	return r.ping(ctx, dev, addr)
}

// open opens the device, and with --sctp a transport under it.
func (o *options) open(ctx context.Context) (*verbs.Device, func(), error) {
	cfg := verbs.Config{TCP: ddpmpa.Params{NoCRC: !o.crc, Markers: o.markers}, TCPRevision1: o.revision == 1}
	if o.source != "" {
		ip, err := lookupIP(ctx, o.source)
		if err != nil {
			return nil, nil, err
		}
		cfg.TCPSource = ip
	}
	closers := []func(){}
	if o.sctp {
		local, err := o.localUDP(ctx, cfg.TCPSource)
		if err != nil {
			return nil, nil, err
		}
		tc := sctp.TransportConfig{LocalAddrs: []netip.AddrPort{local}}
		if o.pcap != "" {
			capture, err := capture.NewTap(o.pcap)
			if err != nil {
				return nil, nil, err
			}
			tc.Tap = capture.Record
			closers = append(closers, func() {
				if err := capture.Close(); err != nil {
					fmt.Fprintln(o.log, "weft rping:", err)
				}
			})
		}
		tr, err := sctp.NewTransport(tc)
		if err != nil {
			return nil, nil, err
		}
		cfg.Transport = tr
		if o.server {
			cfg.Port = uint16(o.port)
		}
		closers = append(closers, func() { tr.Close() })
	}
	done := func() {
		for i := len(closers) - 1; i >= 0; i-- {
			closers[i]()
		}
	}
	dev, err := verbs.Open(cfg)
	if err != nil {
		done()
		return nil, nil, err
	}
	closers = append(closers, func() { dev.Close() })
	return dev, done, nil
}

// localUDP is the UDP address to bind: the server's, or any of the family in
// which the client reaches it.
func (o *options) localUDP(ctx context.Context, source netip.Addr) (netip.AddrPort, error) {
	if o.server {
		if o.addr == "" {
			return netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(o.port)), nil
		}
		ip, err := lookupIP(ctx, o.addr)
		return netip.AddrPortFrom(ip, uint16(o.port)), err
	}
	if source.IsValid() {
		return netip.AddrPortFrom(source, 0), nil
	}
	// What the route to the server begins with.
	conn, err := net.Dial("udp", net.JoinHostPort(o.addr, strconv.Itoa(o.port)))
	if err != nil {
		return netip.AddrPort{}, err
	}
	defer conn.Close()
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(local.Addr().Unmap(), 0), nil
}

func lookupIP(ctx context.Context, host string) (netip.Addr, error) {
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, err
	}
	return ips[0].Unmap(), nil
}

// newEnd makes what a connection needs.
func (o *options) newEnd(dev *verbs.Device) (*pinger, error) {
	r := &pinger{options: o}
	var err error
	pd := dev.AllocPD()
	r.debugf("created pd")
	if r.cq, err = dev.NewCQ(64); err != nil {
		return nil, err
	}
	r.debugf("created cq")
	for _, m := range []struct {
		mr     **verbs.MR
		size   int
		access verbs.Access
	}{{&r.msg, infoLen, verbs.LocalWrite}, {&r.start, o.size, verbs.RemoteRead}, {&r.data, o.size, verbs.RemoteWrite}} {
		if *m.mr, err = pd.Register(make([]byte, m.size), m.access); err != nil {
			return nil, err
		}
	}
	r.debugf("allocated & registered buffers...")
	if r.qp, err = pd.NewQP(verbs.QPConfig{SendCQ: r.cq, RecvCQ: r.cq, IRD: 1, ORD: 1}); err != nil {
		return nil, err
	}
	r.debugf("created qp")
	if err := r.postRecv(); err != nil {
		r.qp.Close()
		return nil, err
	}
	return r, nil
}

func (o *options) debugf(format string, args ...any) {
	if o.debug {
		fmt.Fprintf(o.out, format+"\n", args...)
	}
}

func (r *pinger) postRecv() error {
	return r.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{r.msg.Slice(0, infoLen)}})
}

// await waits for one more completion of the kind that n counts.
func (r *pinger) await(ctx context.Context, n *int) error {
	for *n == 0 {
		if _, err := r.cq.Wait(ctx, r.one[:]); err != nil {
			return err
		}
		if err := r.one[0].Err(); err != nil {
			return err
		}
		if r.one[0].Recv {
			r.debugf("recv completion")
			r.recvs++
		} else {
			r.debugf("%v completion", r.one[0].Op)
			r.sent++
		}
	}
	*n--
	return nil
}

// message waits for a message: an advertisement, or a word to go ahead.
func (r *pinger) message(ctx context.Context) (verbs.RemoteBuf, uint32, error) {
	if err := r.await(ctx, &r.recvs); err != nil {
		return verbs.RemoteBuf{}, 0, err
	}
	if r.one[0].Recv && r.one[0].Len != infoLen {
		return verbs.RemoteBuf{}, 0, fmt.Errorf("advertisement of %d bytes, want %d", r.one[0].Len, infoLen)
	}
	b := r.msg.Bytes()
	buf := verbs.RemoteBuf{TO: binary.BigEndian.Uint64(b), STag: binary.BigEndian.Uint32(b[8:])}
	n := binary.BigEndian.Uint32(b[12:])
	if r.server {
		r.debugf("Received rkey %x addr %x len %d from peer", buf.STag, buf.TO, n)
	}
	return buf, n, r.postRecv()
}

// do carries out one work request.
func (r *pinger) do(ctx context.Context, wr verbs.SendWR) error {
	wr.Flags |= verbs.Signaled
	if err := r.qp.PostSend(wr); err != nil {
		if end := r.qp.Err(); end != nil {
			return end
		}
		return err
	}
	return r.await(ctx, &r.sent)
}

// advertise tells the peer of a region; nil is a word to go ahead.
func (r *pinger) advertise(ctx context.Context, mr *verbs.MR) error {
	info := make([]byte, infoLen)
	if mr != nil {
		buf := mr.Remote()
		binary.BigEndian.PutUint64(info, buf.TO)
		binary.BigEndian.PutUint32(info[8:], buf.STag)
		binary.BigEndian.PutUint32(info[12:], uint32(mr.Len()))
		r.debugf("RDMA addr %x rkey %x len %d", buf.TO, buf.STag, mr.Len())
	}
	return r.do(ctx, verbs.SendWR{Op: verbs.OpSend, Inline: info})
}

// listener takes connections over either lower layer.
type listener interface {
	Accept(ctx context.Context) (*verbs.ConnRequest, error)
	Close() error
}

func (o *options) listen(ctx context.Context, dev *verbs.Device, addr string) (listener, net.Addr, error) {
	if o.sctp {
		l, err := dev.Listen()
		return l, dev.Addr(), err
	}
	l, err := dev.ListenTCP(ctx, addr)
	if err != nil {
		return nil, nil, err
	}
	return l, l.Addr(), nil
}

// serve takes one client, or with -P many.
func (o *options) serve(ctx context.Context, dev *verbs.Device, addr string) error {
	l, at, err := o.listen(ctx, dev, addr)
	if err != nil {
		return err
	}
	defer l.Close()
	o.debugf("rdma_listen")
	if o.listening != nil {
		o.listening(at)
	}
	var clients sync.WaitGroup
	defer clients.Wait()
	room := make(chan struct{}, maxClients)
	for {
		req, err := l.Accept(ctx)
		if err != nil {
			if ctx.Err() != nil { // interrupted
				return nil
			}
			return err
		}
		if !o.persistent {
			return o.client1(ctx, dev, req)
		}
		select {
		case room <- struct{}{}:
		default:
			req.Reject(nil)
			continue
		}
		clients.Add(1)
		go func() {
			defer clients.Done()
			defer func() { <-room }()
			if err := o.client1(ctx, dev, req); err != nil {
				fmt.Fprintln(o.log, "weft rping:", err)
			}
		}()
	}
}

// client1 serves one client to its end.
func (o *options) client1(ctx context.Context, dev *verbs.Device, req *verbs.ConnRequest) error {
	r, err := o.newEnd(dev)
	if err != nil {
		req.Reject(nil)
		return err
	}
	defer r.qp.Close()
	from := req.RemoteTCP
	if from == nil {
		from = req.Remote
	}
	r.debugf("accepting client connection request from %v", from)
	if err := req.Accept(r.qp, verbs.ConnParams{}); err != nil {
		return err
	}
	for err == nil {
		err = r.answer(ctx)
	}
	if errors.Is(r.qp.Err(), verbs.ErrDisconnected) {
		fmt.Fprintln(r.log, "server DISCONNECT EVENT...")
		return nil
	}
	if ctx.Err() != nil { // interrupted
		return r.disconnect(context.WithoutCancel(ctx))
	}
	return err
}

// disconnect ends the connection. Like rping it has all the answers by then, and does not
// mind how the peer ends its direction.
func (r *pinger) disconnect(ctx context.Context) error {
	if err := r.qp.Disconnect(ctx); ctx.Err() != nil {
		return err
	}
	return nil
}

// answer is one ping on the server.
func (r *pinger) answer(ctx context.Context) error {
	source, n, err := r.message(ctx)
	if err != nil {
		return err
	}
	r.debugf("server received sink adv")
	if uint64(n) > uint64(r.data.Len()) {
		return fmt.Errorf("the client advertised %d bytes; -S allows %d", n, r.data.Len())
	}
	r.debugf("server posted rdma read req")
	if err := r.do(ctx, verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{r.data.Slice(0, int(n))},
		Remote: source}); err != nil {
		return err
	}
	r.debugf("server received read complete")
	text, _, _ := bytes.Cut(r.data.Bytes()[:n], []byte{0})
	if r.verbose {
		fmt.Fprintf(r.out, "server ping data: %s\n", text)
	}
	if err := r.advertise(ctx, nil); err != nil {
		return err
	}
	r.debugf("server posted go ahead")
	sink, m, err := r.message(ctx)
	if err != nil {
		return err
	}
	r.debugf("server received sink adv")
	back := int(min(uint32(len(text)+1), n, m)) // the text and its end
	if err := r.do(ctx, verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{r.data.Slice(0, back)},
		Remote: sink}); err != nil {
		return err
	}
	r.debugf("server rdma write complete")
	if err := r.advertise(ctx, nil); err != nil {
		return err
	}
	r.debugf("server posted go ahead")
	return nil
}

// connect connects the client.
func (r *pinger) connect(ctx context.Context, dev *verbs.Device, addr string) error {
	if r.sctp {
		peer, err := sctp.ResolveAddr(ctx, addr)
		if err == nil {
			_, err = dev.Connect(ctx, peer, r.qp, verbs.ConnParams{})
		}
		return err
	}
	_, err := dev.ConnectTCP(ctx, addr, r.qp, verbs.ConnParams{})
	return err
}

// ping is the client.
func (r *pinger) ping(ctx context.Context, dev *verbs.Device, addr string) error {
	if err := r.connect(ctx, dev, addr); err != nil {
		return err
	}
	r.debugf("rdma_connect successful")
	for n := uint64(0); r.count == 0 || n < r.count; n++ {
		if err := r.once(ctx, n); err != nil {
			if ctx.Err() != nil { // interrupted
				return r.disconnect(context.WithoutCancel(ctx))
			}
			if errors.Is(r.qp.Err(), verbs.ErrDisconnected) {
				fmt.Fprintln(r.log, "client DISCONNECT EVENT...")
			}
			return err
		}
	}
	return r.disconnect(ctx)
}

// fill makes the data of the n-th ping: a text, then letters, which start one
// further each time.
func (r *pinger) fill(b []byte, n uint64) {
	const first, last = 'A', 'z'
	at := copy(b, fmt.Sprintf("rdma-ping-%d: ", n))
	for i := range b[at:] {
		b[at+i] = first + byte((n+uint64(i))%(last-first+1))
	}
	b[len(b)-1] = 0
}

// once is one ping on the client.
func (r *pinger) once(ctx context.Context, n uint64) error {
	r.fill(r.start.Bytes(), n)
	for _, mr := range []*verbs.MR{r.start, r.data} {
		if err := r.advertise(ctx, mr); err != nil {
			return err
		}
		if _, _, err := r.message(ctx); err != nil {
			return err
		}
	}
	if r.validate && !bytes.Equal(r.start.Bytes(), r.data.Bytes()) {
		return errData
	}
	if r.verbose {
		fmt.Fprintf(r.out, "ping data: %s\n", bytes.TrimRight(r.data.Bytes(), "\x00"))
	}
	return nil
}
