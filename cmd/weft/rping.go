package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"

	"github.com/weftstack/weft/verbs"
)

// Parameters of rping, as the program of librdmacm has them.
const (
	rpingPort    = 7174
	rpingSize    = 64
	rpingMinSize = 32 // the text in front of the data, and its end
	rpingMaxSize = 64 << 10
	rpingInfoLen = 16
)

var errRpingData = errors.New("data mismatch")

// rpingOptions are the flags of `weft rping`.
type rpingOptions struct {
	server, client bool
	addr           string
	port           int
	size           int
	count          uint64
	verbose        bool
	validate       bool
	debug          bool
	out, log       io.Writer
	listening      func(net.Addr) // for tests
}

func rpingFlags(o *rpingOptions) *flag.FlagSet {
	fs := flag.NewFlagSet("rping", flag.ContinueOnError)
	fs.BoolVar(&o.server, "s", false, "be the server")
	fs.BoolVar(&o.client, "c", false, "be the client")
	fs.StringVar(&o.addr, "a", "", "`address` to listen on or to connect to")
	fs.IntVar(&o.port, "p", rpingPort, "TCP `port`")
	fs.IntVar(&o.size, "S", rpingSize, "`bytes` of ping data")
	fs.Uint64Var(&o.count, "C", 0, "`number` of pings; 0 means until interrupted")
	fs.BoolVar(&o.verbose, "v", false, "print the ping data")
	fs.BoolVar(&o.validate, "V", false, "compare the ping data with what was sent")
	fs.BoolVar(&o.debug, "d", false, "say what is done")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), "usage: weft rping -s [-v] [-C COUNT] [-S SIZE] [-a ADDR] [-p PORT]\n"+
			"       weft rping -c [-vVd] [-C COUNT] [-S SIZE] -a ADDR [-p PORT]\n\n"+
			"Moves data from client to server and back by RDMA over TCP (iWARP), as rping of librdmacm does.\n\n")
		fs.PrintDefaults()
	}
	return fs
}

func rpingMain(args []string) int {
	o := rpingOptions{out: os.Stdout, log: os.Stderr}
	fs := rpingFlags(&o)
	if status, ok := parse(fs, args); !ok {
		return status
	}
	if o.server == o.client || fs.NArg() > 0 || o.client && o.addr == "" ||
		o.size < rpingMinSize || o.size > rpingMaxSize || o.port < 0 || o.port > 65535 {
		fmt.Fprintf(os.Stderr, "weft rping: want either -s or -c, -a with -c, and -S from %d to %d\n", rpingMinSize, rpingMaxSize)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "weft rping:", err)
		return exitFail
	}
	return exitOK
}

// rping is one end.
type rping struct {
	*rpingOptions
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
func (o *rpingOptions) run(ctx context.Context) error {
	dev, err := verbs.Open(verbs.Config{})
	if err != nil {
		return err
	}
	r := &rping{rpingOptions: o}
	pd := dev.AllocPD()
	if r.cq, err = dev.NewCQ(64); err != nil {
		return err
	}
	for mr, access := range map[**verbs.MR]verbs.Access{&r.msg: verbs.LocalWrite, &r.start: verbs.RemoteRead,
		&r.data: verbs.LocalWrite | verbs.RemoteWrite} {
		if *mr, err = pd.Register(make([]byte, o.size), access); err != nil {
			return err
		}
	}
	if r.qp, err = pd.NewQP(verbs.QPConfig{SendCQ: r.cq, RecvCQ: r.cq}); err != nil {
		return err
	}
	defer r.qp.Close()
	if err := r.postRecv(); err != nil {
		return err
	}
	addr := net.JoinHostPort(o.addr, strconv.Itoa(o.port))
	if o.server {
		return r.serve(ctx, dev, addr)
	}
	return r.ping(ctx, dev, addr)
}

func (r *rping) debugf(format string, args ...any) {
	if r.debug {
		fmt.Fprintf(r.log, format+"\n", args...)
	}
}

func (r *rping) postRecv() error {
	return r.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{r.msg.Slice(0, rpingInfoLen)}})
}

// await waits for one more completion of the kind that n counts.
func (r *rping) await(ctx context.Context, n *int) error {
	for *n == 0 {
		if _, err := r.cq.Wait(ctx, r.one[:]); err != nil {
			return err
		}
		if err := r.one[0].Err(); err != nil {
			return err
		}
		if r.one[0].Recv {
			r.recvs++
		} else {
			r.sent++
		}
	}
	*n--
	return nil
}

// message waits for a message: an advertisement, or a word to go ahead.
func (r *rping) message(ctx context.Context) (verbs.RemoteBuf, uint32, error) {
	if err := r.await(ctx, &r.recvs); err != nil {
		return verbs.RemoteBuf{}, 0, err
	}
	b := r.msg.Bytes()
	buf := verbs.RemoteBuf{TO: binary.BigEndian.Uint64(b), STag: binary.BigEndian.Uint32(b[8:])}
	n := binary.BigEndian.Uint32(b[12:])
	return buf, n, r.postRecv()
}

// do carries out one work request.
func (r *rping) do(ctx context.Context, wr verbs.SendWR) error {
	wr.Flags |= verbs.Signaled
	if err := r.qp.PostSend(wr); err != nil {
		return err
	}
	return r.await(ctx, &r.sent)
}

// advertise tells the peer of a region; nil is a word to go ahead.
func (r *rping) advertise(ctx context.Context, mr *verbs.MR) error {
	info := make([]byte, rpingInfoLen)
	if mr != nil {
		buf := mr.Remote()
		binary.BigEndian.PutUint64(info, buf.TO)
		binary.BigEndian.PutUint32(info[8:], buf.STag)
		binary.BigEndian.PutUint32(info[12:], uint32(mr.Len()))
		r.debugf("RDMA addr %x rkey %x len %d", buf.TO, buf.STag, mr.Len())
	}
	return r.do(ctx, verbs.SendWR{Op: verbs.OpSend, Inline: info})
}

// serve takes one client.
func (r *rping) serve(ctx context.Context, dev *verbs.Device, addr string) error {
	l, err := dev.ListenTCP(ctx, addr)
	if err != nil {
		return err
	}
	defer l.Close()
	if r.listening != nil {
		r.listening(l.Addr())
	}
	req, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	if err := req.Accept(r.qp, verbs.ConnParams{}); err != nil {
		return err
	}
	r.debugf("accepted a connection from %v", req.RemoteTCP)
	for n := uint64(0); r.count == 0 || n < r.count; n++ {
		if err = r.answer(ctx); err != nil {
			break
		}
	}
	if errors.Is(r.qp.Err(), verbs.ErrDisconnected) {
		fmt.Fprintln(r.out, "server DISCONNECT EVENT...")
		return nil
	}
	if err == nil {
		return r.qp.Disconnect(ctx)
	}
	return err
}

// answer is one ping on the server.
func (r *rping) answer(ctx context.Context) error {
	source, n, err := r.message(ctx)
	if err != nil {
		return err
	}
	if uint64(n) > uint64(r.data.Len()) {
		return fmt.Errorf("client has %d bytes, -S allows %d", n, r.data.Len())
	}
	if err := r.do(ctx, verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{r.data.Slice(0, int(n))}, Remote: source}); err != nil {
		return err
	}
	text, _, _ := bytes.Cut(r.data.Bytes()[:n], []byte{0})
	if r.verbose {
		fmt.Fprintf(r.out, "server ping data: %s\n", text)
	}
	if err := r.advertise(ctx, nil); err != nil {
		return err
	}
	sink, m, err := r.message(ctx)
	if err != nil {
		return err
	}
	back := int(min(uint32(len(text)+1), n, m)) // the text and its end
	if err := r.do(ctx, verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{r.data.Slice(0, back)}, Remote: sink}); err != nil {
		return err
	}
	return r.advertise(ctx, nil)
}

// ping is the client.
func (r *rping) ping(ctx context.Context, dev *verbs.Device, addr string) error {
	if _, err := dev.ConnectTCP(ctx, addr, r.qp, verbs.ConnParams{}); err != nil {
		return err
	}
	r.debugf("connected to %s", addr)
	for n := uint64(0); r.count == 0 || n < r.count; n++ {
		if err := r.once(ctx, n); err != nil {
			if ctx.Err() != nil { // interrupted
				return r.qp.Disconnect(context.WithoutCancel(ctx))
			}
			return err
		}
	}
	return r.qp.Disconnect(ctx)
}

// fill makes the data of the n-th ping: a text, then letters, which start one
// further each time.
func (r *rping) fill(b []byte, n uint64) {
	const first, last = 'A', 'z'
	at := copy(b, fmt.Sprintf("rdma-ping-%d: ", n))
	for i := range b[at:] {
		b[at+i] = first + byte((n+uint64(i))%(last-first+1))
	}
	b[len(b)-1] = 0
}

// once is one ping on the client.
func (r *rping) once(ctx context.Context, n uint64) error {
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
		return errRpingData
	}
	if r.verbose {
		fmt.Fprintf(r.out, "ping data: %s\n", bytes.TrimRight(r.data.Bytes(), "\x00"))
	}
	return nil
}
