package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
)

// envQueuePairs has this test binary be the peer of TestThousandQueuePairsBetweenProcesses.
const envQueuePairs = "WEFT_INTEROP_QUEUE_PAIRS"

const (
	queuePairs = 1000
	pairSize   = 1024
)

func init() {
	playRole(envQueuePairs, func(string) error { return serveQueuePairs() })
}

// rnic is a device with a region of memory, on a transport of its own.
type rnic struct {
	tr  *sctp.Transport
	dev *verbs.Device
	pd  *verbs.PD
	mr  *verbs.MR
	cq  *verbs.CQ
	qps []*verbs.QP
}

func newRNIC(mem []byte, depth int) (*rnic, error) {
	tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	if err != nil {
		return nil, err
	}
	n := &rnic{tr: tr}
	if n.dev, err = verbs.Open(verbs.Config{Transport: tr}); err != nil {
		return nil, err
	}
	n.pd = n.dev.AllocPD()
	if n.mr, err = n.pd.Register(mem, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead); err != nil {
		return nil, err
	}
	if n.cq, err = n.dev.NewCQ(depth); err != nil {
		return nil, err
	}
	for range queuePairs {
		qp, err := n.pd.NewQP(verbs.QPConfig{SendCQ: n.cq, RecvCQ: n.cq, SendDepth: 4, RecvDepth: 1})
		if err != nil {
			return nil, err
		}
		n.qps = append(n.qps, qp)
	}
	return n, nil
}

// serveQueuePairs accepts all queue pairs, says where its memory is, and at the end of
// its input what is there and how many associations that took.
func serveQueuePairs() error {
	mem := make([]byte, queuePairs*pairSize)
	n, err := newRNIC(mem, queuePairs)
	if err != nil {
		return err
	}
	l, err := n.dev.Listen()
	if err != nil {
		return err
	}
	to := n.mr.Remote()
	fmt.Println(n.tr.LocalAddrs()[0], n.dev.Addr().Port, to.STag, to.TO)
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-ended // the test may have given up
		cancel()
	}()
	for _, qp := range n.qps {
		r, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		if err := r.Accept(qp, verbs.ConnParams{}); err != nil {
			return err
		}
	}
	<-ended
	right := 0
	for i := range queuePairs {
		if binary.BigEndian.Uint32(mem[i*pairSize:]) == uint32(i+1) && mem[(i+1)*pairSize-1] == 'w' {
			right++
		}
	}
	fmt.Println(right, n.tr.Stats().Associations)
	return nil
}

// A thousand queue pairs between two processes share one association. All of them are
// busy, and none gets much more or less done than another.
func TestThousandQueuePairsBetweenProcesses(t *testing.T) {
	bounded(t)
	ctx, cancel := context.WithTimeout(within(t), 5*time.Minute)
	defer cancel()
	cmd := commandIn(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), envQueuePairs+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	out := bufio.NewReader(pipe)
	var at string
	var port uint16
	var to verbs.RemoteBuf
	if line, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	} else if _, err := fmt.Sscan(line, &at, &port, &to.STag, &to.TO); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	to.Len = queuePairs * pairSize
	peer := sctp.Addr{Addrs: []netip.AddrPort{netip.MustParseAddrPort(at)}, Port: port}

	const deep, total = 2, 20 * queuePairs
	mem := make([]byte, queuePairs*pairSize)
	n, err := newRNIC(mem, (deep+1)*queuePairs)
	if err != nil {
		t.Fatal(err)
	}
	defer n.tr.Close()
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for w := range cap(errs) {
		wg.Go(func() {
			for i := w; i < queuePairs; i += cap(errs) {
				if _, err := n.dev.Connect(ctx, peer, n.qps[i], verbs.ConnParams{}); err != nil {
					errs <- fmt.Errorf("queue pair %d: %w", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
	if got := n.tr.Stats().Associations; got != 1 {
		t.Errorf("%d associations, want 1", got)
	}
	for i := range queuePairs { // not touched again while it is written
		b := mem[i*pairSize : (i+1)*pairSize]
		binary.BigEndian.PutUint32(b, uint32(i+1))
		b[pairSize-1] = 'w'
	}
	post := func(i int) {
		if err := n.qps[i].PostSend(verbs.SendWR{ID: uint64(i), Op: verbs.OpWrite, Flags: verbs.Signaled,
			SGL: []verbs.SGE{n.mr.Slice(i*pairSize, pairSize)}, Remote: to.At(uint64(i * pairSize))}); err != nil {
			t.Fatal(err)
		}
	}
	for range deep {
		for i := range n.qps {
			post(i)
		}
	}
	done, sum, flight := make([]int, queuePairs), 0, deep*queuePairs
	var wc [256]verbs.WC
	for flight > 0 {
		k, err := n.cq.Wait(ctx, wc[:])
		if err != nil {
			t.Fatal(err)
		}
		for i := range k {
			if wc[i].Status != verbs.StatusSuccess {
				t.Fatal(wc[i].Err())
			}
			if flight--; sum == total {
				continue // the last ones
			}
			done[wc[i].ID]++
			if sum++; sum < total {
				post(int(wc[i].ID))
				flight++
			}
		}
	}
	var squares float64
	least := total
	for _, d := range done {
		squares += float64(d) * float64(d)
		least = min(least, d)
	}
	index := float64(sum) * float64(sum) / (queuePairs * squares)
	t.Logf("Jain index %.4f, least %d, mean %.1f", index, least, float64(sum)/queuePairs)
	if index < 0.9 || least == 0 {
		t.Errorf("Jain index %.4f, least %d of %d on average", index, least, sum/queuePairs)
	}
	// The answer to a read tells that the writes before it have been placed.
	got := make([]byte, len(mem))
	back, err := n.pd.Register(got, verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	for i, qp := range n.qps {
		if err := qp.PostSend(verbs.SendWR{Op: verbs.OpRead, Flags: verbs.Signaled,
			SGL: []verbs.SGE{back.Slice(i*pairSize, pairSize)}, Remote: to.At(uint64(i * pairSize))}); err != nil {
			t.Fatal(err)
		}
	}
	for read := 0; read < queuePairs; {
		k, err := n.cq.Wait(ctx, wc[:])
		if err != nil {
			t.Fatal(err)
		}
		for i := range k {
			if wc[i].Status != verbs.StatusSuccess {
				t.Fatal(wc[i].Err())
			}
		}
		read += k
	}
	if !bytes.Equal(got, mem) {
		t.Error("what was written comes back different")
	}
	in.Close()
	line, err := out.ReadString('\n')
	if want := fmt.Sprintf("%d 1", queuePairs); err != nil || strings.TrimSpace(line) != want {
		t.Errorf("the peer says %q (%v), want %q: right parts of its memory, and associations", line, err, want)
	}
}
