package emulator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/process"
	"github.com/weftstack/weft/internal/netem"
)

// daemons are the weft gateways on the gateway hosts.
type daemons struct {
	hosts   []*emHost // by site, then by gateway
	names   []string  // of these, in messages
	args    func(site, gateway int) []string
	self    string // path of this program
	perSite int
	status  func(site, gateway int) string
	verbose bool

	mu   sync.Mutex
	cmds []*exec.Cmd     // guarded by mu; nil: it does not run
	done []chan struct{} // closed when that of cmds has ended
	over bool            // none is started any more
}

// prepare starts what runs beside the commands, and waits until it does.
func (em *emulation) prepare(ctx context.Context, o *options) error {
	if o.sites > 0 && o.gateways > 0 && o.daemons == "yes" {
		if err := em.startDaemons(o); err != nil {
			return err
		}
	}
	if o.sites > 0 && o.cross > 0 {
		if err := em.startCross(ctx, o); err != nil {
			return err
		}
	}
	return em.do(func(*netem.Fabric) error {
		em.from = em.now()
		close(em.begun)
		return nil
	})
}

// cleanUp ends what runs beside the commands.
func (em *emulation) cleanUp() {
	em.cross.end()
	em.daemons.end()
}

// startDaemons starts a gateway on each gateway host.
func (em *emulation) startDaemons(o *options) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	d := &daemons{self: self, status: em.plan.statusAddr, perSite: o.gateways, verbose: o.verbose}
	for i, n := range em.plan.nodes {
		if n.kind == kindGateway {
			d.hosts = append(d.hosts, em.hosts[i])
			d.names = append(d.names, fmt.Sprintf("gateway %s of site %s", gatewayName(n.number), siteName(n.site)))
		}
	}
	d.cmds, d.done = make([]*exec.Cmd, len(d.hosts)), make([]chan struct{}, len(d.hosts))
	d.args = func(site, gateway int) []string {
		return append([]string{self}, o.gatewayArgs(site, gateway)...)
	}
	em.daemons = d
	for i := range d.hosts {
		if err := d.start(i/d.perSite, i%d.perSite); err != nil {
			return err
		}
	}
	return d.await()
}

// legsTime is how long the commands wait for the legs of the gateways. With a network that is
// cut from the start they are never there.
const legsTime = 10 * time.Second

// await waits until the gateways have all their legs, and reports those that have not.
func (d *daemons) await() error {
	waits := make([]*exec.Cmd, len(d.hosts))
	for i := range waits {
		cmd := exec.Command(d.self, "gateway", "status", "-wait", legsTime.String(), d.status(i/d.perSite, i%d.perSite))
		cmd.SysProcAttr = process.ChildAttr()
		if err := d.hosts[i].do(cmd.Start); err != nil {
			return fmt.Errorf("%s: %w", d.names[i], err)
		}
		waits[i] = cmd
	}
	for i, cmd := range waits {
		if err := cmd.Wait(); err != nil {
			fmt.Fprintf(os.Stderr, "weft net: %s has not all its legs\n", d.names[i])
		}
	}
	return nil
}

// start starts a gateway. One that runs is left alone.
func (d *daemons) start(site, gateway int) error {
	i := site*d.perSite + gateway
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over || d.cmds[i] != nil {
		return nil
	}
	argv := d.args(site, gateway)
	cmd := exec.Command(argv[0], argv[1:]...)
	said := &tail{prefix: d.names[i] + ": ", live: d.verbose}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = process.ChildAttr()
	cmd.WaitDelay = process.KillGrace
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	if err := d.hosts[i].do(cmd.Start); err != nil {
		return fmt.Errorf("%s: %w", d.names[i], err)
	}
	done := make(chan struct{})
	d.cmds[i], d.done[i] = cmd, done
	go func() {
		err := cmd.Wait()
		d.mu.Lock()
		asked := d.over || d.cmds[i] != cmd
		if !asked {
			d.cmds[i] = nil
		}
		d.mu.Unlock()
		if !asked {
			fmt.Fprintf(os.Stderr, "weft net: %s has ended: %v\n%s", d.names[i], err, said.last())
		}
		close(done)
	}()
	return nil
}

// kill ends a gateway with SIGKILL, so that it cannot shut its associations down, and waits until it has exited.
func (d *daemons) kill(site, gateway int) {
	i := site*d.perSite + gateway
	d.mu.Lock()
	cmd, done := d.cmds[i], d.done[i]
	d.cmds[i] = nil
	d.mu.Unlock()
	if cmd != nil {
		cmd.Process.Kill()
		<-done
	}
}

// end ends all gateways. nil is for none.
func (d *daemons) end() {
	if d == nil {
		return
	}
	d.mu.Lock()
	d.over = true
	d.mu.Unlock()
	for i := range d.hosts {
		d.kill(i/d.perSite, i%d.perSite)
	}
}

// changeDaemons kills and starts the gateways that a command names.
func (em *emulation) changeDaemons(c netem.Change) (err error) {
	if em.plan.sites == nil {
		return nil
	}
	c.Gateways(*em.plan.sites, func(site, gateway int, start bool) {
		switch {
		case em.daemons == nil:
			err = errors.New("no weft gateway runs on the gateway hosts (-daemons no)")
		case start:
			err = errors.Join(err, em.daemons.start(site, gateway))
		default:
			em.daemons.kill(site, gateway)
		}
	})
	return err
}

// reportDaemons calls changeDaemons for a planned step and prints an error to standard error.
func (em *emulation) reportDaemons(c netem.Change) {
	if err := em.changeDaemons(c); err != nil {
		fmt.Fprintln(os.Stderr, "weft net:", err)
	}
}

// tailLines is how many lines of a gateway's output are kept, to be shown if it ends.
const tailLines = 20

// tail keeps the last lines that are written to it, and passes all on if it is live.
type tail struct {
	prefix string
	live   bool

	mu    sync.Mutex
	part  []byte   // guarded by mu; a line without its end, of at most maxTailLine bytes
	lines []string // guarded by mu
}

const maxTailLine = 4096 // bytes of a line; longer ones are cut in parts

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range b {
		if c != '\n' {
			t.part = append(t.part, c)
			if len(t.part) < maxTailLine {
				continue
			}
		}
		line := t.prefix + string(t.part) + "\n"
		t.part = t.part[:0]
		if t.live {
			os.Stderr.WriteString(line)
		}
		if t.lines = append(t.lines, line); len(t.lines) > tailLines {
			t.lines = t.lines[1:]
		}
	}
	return len(b), nil
}

// last returns the last lines, none if they were passed on.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live {
		return ""
	}
	return strings.Join(t.lines, "")
}
