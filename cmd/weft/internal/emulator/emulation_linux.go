package emulator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/weftstack/weft/cmd/weft/internal/launch"
	"github.com/weftstack/weft/cmd/weft/internal/process"
	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/netem"
	"github.com/weftstack/weft/internal/sites"
	"golang.org/x/sys/unix"
)

// emulation moves packets between the hosts' TUN interfaces.
type emulation struct {
	plan    *plan
	hosts   []*emHost // by index of the nodes of the plan
	fabric  *netem.Fabric
	start   time.Time
	steps   []netem.Step // not yet due, in order
	from    netem.Time   // when the steps behind those of time 0 begin to count; negative: not yet
	daemons *daemons     // nil: there are none
	changes chan changeRequest
	wake    int // eventfd: changes are waiting, or it is over
	over    atomic.Bool
	ended   chan struct{}
	begun   chan struct{} // closed when the commands start
	cross   *crossTraffic // nil: there is none

	polls []unix.PollFd
	buf   []byte
	out   *netem.Joiner // to interface i of the plan
	whole bool          // packets are not joined
	drops uint64        // packets that a TUN interface did not take, or frames that made no sense
	pcap  *pcapgo.Writer
	file  *bufio.Writer
	err   error
}

// run makes the hosts, runs the commands on them and takes all down again.
func run(o *options, commands [][]string) (int, error) {
	if os.Geteuid() != 0 {
		return cli.ExitFail, errors.New("creating network namespaces requires root")
	}
	if o.hasSitesFile() {
		var remove func()
		var err error
		if o.dir, remove, err = sitesDir(o.dir); err != nil {
			return cli.ExitFail, err
		}
		defer remove()
		if err := o.writeSites(o.dir); err != nil {
			return cli.ExitFail, err
		}
	}
	placed, argv := o.placement(o.withSitesFile(commands))
	for i := range argv {
		path, err := exec.LookPath(argv[i][0])
		if err != nil {
			return cli.ExitFail, err
		}
		if path, err = filepath.Abs(path); err != nil {
			return cli.ExitFail, err
		}
		argv[i] = append([]string{path}, argv[i][1:]...)
	}
	em, err := newEmulation(o)
	if err != nil {
		return cli.ExitFail, err
	}
	defer em.close()
	if o.control != "" {
		l, err := net.Listen("unix", o.control)
		if err != nil {
			return cli.ExitFail, err
		}
		defer l.Close()
		go em.serveControl(l)
	}

	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, process.PassedSignals()...)
	defer signal.Stop(signals)
	if o.timeout > 0 {
		timer := time.AfterFunc(o.timeout, func() { stop(fmt.Errorf("the commands did not end within %v", o.timeout)) })
		defer timer.Stop()
	}
	var names, gateways []string
	for i, n := range em.plan.nodes {
		switch n.kind {
		case kindHost:
			names = append(names, em.hosts[i].name)
		case kindGateway:
			gateways = append(gateways, em.hosts[i].name)
		}
	}
	go em.loop()
	defer em.stop()
	if err := em.prepare(ctx, o); err != nil {
		return cli.ExitFail, err
	}
	busy := len(placed)
	if o.daemons == "yes" {
		busy += len(gateways)
	}
	frugal := o.frugalEnv(busy, runtime.NumCPU(), os.Getenv)
	j := &launch.PlacedJob{
		Ranks: placed, Hosts: o.allHosts(), Env: o.env, Prefix: o.prefix, Verbose: o.verbose,
		Command: func(rank int) []string { return argv[rank] },
		Start:   func(host int, start func() error) error { return em.hosts[host].do(start) },
		HostEnv: func(host int) []string {
			n := &em.plan.nodes[host]
			env := []string{
				"WEFT_NET_HOST=" + strconv.Itoa(host), "WEFT_NET_HOSTS=" + strconv.Itoa(o.allHosts()),
				"WEFT_NET_ADDRS=" + n.addrs(), "WEFT_NET_NAMES=" + strings.Join(names, ","), "WEFT_ADDRS=" + n.addrs(),
			}
			if o.sites > 0 {
				env = append(env, o.siteEnv(n, gateways)...)
			}
			return append(env, frugal...)
		},
	}
	if o.hasSitesFile() {
		if j.Sites, err = sites.Read(o.sitesFile()); err != nil {
			return cli.ExitFail, err
		}
		j.HostName = func(host int) string { return em.plan.nodes[host].name }
	}
	for rank, host := range placed {
		if host == o.main {
			j.Main = rank + 1
		}
	}
	status, err := j.Run(ctx, signals)
	em.cleanUp()
	em.stop()
	if o.stats {
		em.plan.printStats(os.Stderr, em.fabric)
		em.cross.print(os.Stderr)
	}
	if em.drops > 0 {
		fmt.Fprintf(os.Stderr, "weft net: %d packets were dropped by a host's interface\n", em.drops)
	}
	return status, errors.Join(err, em.err)
}

func newEmulation(o *options) (*emulation, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	p := o.plan()
	em := &emulation{
		plan: p, fabric: p.fabric(o), wake: wake, from: -1,
		changes: make(chan changeRequest, 16), ended: make(chan struct{}), begun: make(chan struct{}),
		buf: make([]byte, netem.OffloadHeader+netem.MaxPacket), whole: !o.offload,
	}
	em.steps = append(em.steps, o.steps...)
	for i := range em.steps { // insertion sort: few, and steps of one time keep their order
		for k := i; k > 0 && em.steps[k].After < em.steps[k-1].After; k-- {
			em.steps[k], em.steps[k-1] = em.steps[k-1], em.steps[k]
		}
	}
	em.polls = []unix.PollFd{{Fd: int32(wake), Events: unix.POLLIN}}
	for i := range p.nodes {
		h, err := newHost(&p.nodes[i], o)
		if err != nil {
			em.close()
			return nil, err
		}
		em.hosts = append(em.hosts, h)
		for _, fd := range h.tuns {
			em.polls = append(em.polls, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	em.out = netem.NewJoiner(em.hosts[0].udp, em.write)
	if o.pcap != "" {
		f, err := os.Create(o.pcap)
		if err != nil {
			em.close()
			return nil, err
		}
		em.file = bufio.NewWriterSize(f, 1<<20)
		em.pcap = pcapgo.NewWriterNanos(em.file)
		if err := em.pcap.WriteFileHeader(netem.MaxPacket, layers.LinkTypeRaw); err != nil {
			em.close()
			return nil, err
		}
	}
	return em, nil
}

func (em *emulation) close() {
	for _, h := range em.hosts {
		h.close()
	}
	unix.Close(em.wake)
}

// stop ends the loop and waits for it.
func (em *emulation) stop() {
	if em.over.Swap(true) {
		return
	}
	em.ring()
	<-em.ended
	if em.file != nil {
		em.err = errors.Join(em.err, em.file.Flush())
	}
}

// ring wakes the loop.
func (em *emulation) ring() { unix.Write(em.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// loop is the emulator's only thread of packets: read what hosts send, deliver
// what is due, sleep until something is.
func (em *emulation) loop() {
	runtime.LockOSThread() // for good: its scheduling class is changed
	defer close(em.ended)
	if err := urgent(); err != nil {
		fmt.Fprintln(os.Stderr, "weft net: timing may be coarse:", err)
	}
	em.start = time.Now()
	for !em.over.Load() {
		now := em.now()
		em.fabric.Advance(now, em.deliver)
		em.out.Flush()
		em.due(now)
		if _, err := unix.Ppoll(em.polls, em.timeout(), nil); err != nil && !errors.Is(err, unix.EINTR) {
			em.err = os.NewSyscallError("ppoll", err)
			return
		}
		now = em.now()
		if em.polls[0].Revents != 0 {
			unix.Read(em.wake, em.buf[:8])
			em.applyChanges()
		}
		for i := range em.polls[1:] {
			if em.polls[1+i].Revents&unix.POLLIN != 0 {
				em.read(now, i)
			}
		}
	}
}

func (em *emulation) now() netem.Time { return netem.Time(time.Since(em.start)) }

// timeout returns how long nothing is due; nil is for ever.
func (em *emulation) timeout() *unix.Timespec {
	at, ok := em.fabric.Next()
	if len(em.steps) > 0 && em.from >= 0 {
		if step := em.from + netem.Time(em.steps[0].After); !ok || step < at {
			at, ok = step, true
		}
	}
	if !ok {
		return nil
	}
	ts := unix.NsecToTimespec(int64(max(0, at-em.now())))
	return &ts
}

// readBatch is how many frames of one host are read before others get a turn.
const readBatch = 32

// read takes in what one TUN interface holds.
func (em *emulation) read(now netem.Time, i int) {
	t := em.plan.taps[i]
	fd := int(em.polls[1+i].Fd)
	for range readBatch {
		n, err := unix.Read(fd, em.buf)
		if err != nil || n == 0 {
			return
		}
		if !netem.Split(em.buf[:n], func(pkt []byte) {
			em.fabric.Inject(now, t.net, t.port, em.plan.next(em.fabric, t, pkt), pkt)
		}) {
			em.drops++
		}
	}
}

// deliver has a packet written to the TUN interface of its destination, or sent on if it has
// come to a router.
func (em *emulation) deliver(at netem.Time, network, _, to int, pkt []byte) {
	i := em.plan.tapAt(network, to)
	if i < 0 {
		if next, from, to, ok := em.plan.forward(network, to, pkt); ok {
			em.fabric.Inject(at, next, from, to, pkt)
		} else {
			em.drops++
		}
		return
	}
	em.out.Add(i, pkt)
	if em.whole {
		em.out.Flush()
	}
	if em.pcap != nil {
		info := gopacket.CaptureInfo{Timestamp: time.Now(), CaptureLength: len(pkt), Length: len(pkt)}
		if err := em.pcap.WritePacket(info, pkt); err != nil && em.err == nil {
			em.err = err
		}
	}
}

// write writes a frame to a TUN interface.
func (em *emulation) write(to int, frame []byte, packets int) {
	if _, err := unix.Write(int(em.polls[1+to].Fd), frame); err != nil {
		em.drops += uint64(packets)
	}
}

// due carries out the steps whose time has come. Those of time 0 are due at once, the others
// count from when the commands start.
func (em *emulation) due(now netem.Time) {
	for len(em.steps) > 0 {
		step := em.steps[0]
		if step.After > 0 && (em.from < 0 || em.from+netem.Time(step.After) > now) {
			return
		}
		em.plan.apply(step.Change, em.fabric) // checked at the start
		if em.daemons != nil {
			go em.reportDaemons(step.Change)
		}
		em.steps = em.steps[1:]
	}
}
