package conformance

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/pmtu"
	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/reconfig"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// setConfig sets a parameter of the end under test.
func (r *runner) setConfig(f *fields) error {
	c := &r.cfg
	durations := map[string]*time.Duration{"hb": &c.HBInterval, "sackdelay": &c.SackDelay, "rtoinit": &c.RTOInitial,
		"rtomin": &c.RTOMin, "rtomax": &c.RTOMax, "cookielife": &c.CookieLife, "guard": &c.ShutdownGuard}
	ints := map[string]*int{"sackevery": &c.SackEvery, "assocmax": &c.AssocMaxRetrans, "pathmax": &c.PathMaxRetrans, "pfmax": &c.PFMaxRetrans, "switchmax": &c.SwitchMaxRetrans,
		"initmax": &c.MaxInitRetrans, "maxburst": &c.MaxBurst, "sndbuf": &c.SendBuffer, "rcvbuf": &c.RecvBuffer, "mtu": &c.MTU}
	shorts := map[string]*uint16{"out": &c.OutStreams, "in": &c.InStreams, "maxout": &c.MaxOutStreams}
	bools := map[string]*bool{"rack": &c.NoRACK, "pacing": &c.NoPacing, "idata": &c.NoInterleaving,
		"pr": &c.NoPartialReliability, "ecn": &c.NoECN, "reconfig": &c.NoReconfig}
	for _, x := range f.kv {
		if r.setAuth(x) {
			continue
		}
		if p, ok := durations[x.key]; ok {
			d, err := time.ParseDuration(x.val)
			if err != nil {
				return err
			}
			*p = d
			continue
		}
		if p, ok := bools[x.key]; ok {
			*p = x.val != "on"
			continue
		}
		switch x.key {
		case "cc":
			c.Congestion = map[string]cc.Algorithm{"cubic": cc.Cubic, "newreno": cc.NewReno}[x.val]
			continue
		case "discover": // path MTU discovery, up to this size
			n, err := r.number(x.val)
			if err != nil {
				return err
			}
			c.Discover, c.MTU, c.MaxMTU = true, pmtu.BaseMTU, int(n)
			continue
		case "pf": // "off": no path is potentially failed
			if x.val == "off" {
				c.PFMaxRetrans = -1
			}
			continue
		case "switch":
			c.SwitchPrimary = x.val == "on"
			continue
		case "bundle":
			c.Bundle = x.val == "on"
			continue
		case "local", "to":
			var list []netip.AddrPort
			for _, s := range strings.Split(x.val, ",") {
				ip, err := netip.ParseAddr(s)
				if err != nil {
					return err
				}
				list = append(list, netip.AddrPortFrom(ip, udpPort))
			}
			if x.key == "local" {
				r.local = list
			} else {
				r.peer = list
			}
			continue
		case "deny":
			c.DenyReconfig = map[string]reconfig.Kinds{"streams": reconfig.Streams, "assoc": reconfig.TSNs, "add": reconfig.Add}[x.val]
			continue
		}
		n, err := r.number(x.val)
		if err != nil {
			return err
		}
		switch {
		case ints[x.key] != nil:
			*ints[x.key] = int(n)
		case shorts[x.key] != nil:
			*shorts[x.key] = uint16(n)
		case x.key == "adaptation":
			c.Adaptation = &n
		case x.key == "sched":
			c.Scheduler = tx.Scheduler(n)
		default:
			return fmt.Errorf("no parameter %s", x.key)
		}
	}
	return nil
}

// extensions are what ext= of a peer line may say.
var extensions = map[string]string{"pr": "fwd, ext FORWARD-TSN", "idata": "ext I-DATA", "ecn": "ecn",
	"ipr": "fwd, ext FORWARD-TSN I-DATA I-FORWARD-TSN", "reconfig": "ext RE-CONFIG",
	"asconf": "ext ASCONF ASCONF-ACK AUTH", "authasconf": "ext ASCONF ASCONF-ACK AUTH, random 32, chunks ASCONF ASCONF-ACK, hmac 1", "auth": "ext AUTH, random 32, chunks, hmac 1", "authdata": "ext AUTH, random 32, chunks DATA, hmac 1", "auth256": "ext AUTH, random 32, chunks, hmac 3"}

// setPeer makes the INIT or INIT ACK of the peer.
func (r *runner) setPeer(f *fields) error {
	r.peerInit = ""
	list := f.list
	for _, x := range f.kv {
		switch x.key {
		case "rwnd", "out", "in", "tsn":
			r.peerInit += " " + x.key + "=" + x.val
		case "ext":
			for _, e := range strings.Split(x.val, ",") {
				list = append(list, extensions[e])
			}
		case "addrs":
			for _, a := range strings.Split(x.val, ",") {
				if strings.Contains(a, ":") {
					list = append(list, "ipv6 "+a)
				} else {
					list = append(list, "ipv4 "+a)
				}
			}
		default:
			return fmt.Errorf("the peer knows no %s", x.key)
		}
	}
	r.peerInit += " {cookie"
	for _, x := range list {
		r.peerInit += ", " + x
	}
	r.peerInit += "}"
	return nil
}

// setup brings the end under test to where the script begins.
func (r *runner) setup(how string) error {
	if r.peerInit == "" {
		r.peerInit = " {cookie}"
	}
	var seed [32]byte
	seed[0] = 1
	switch how {
	case "nobody":
		return nil
	case "listener", "server":
		r.listener = core.NewListener(&r.cfg, core.ListenerParams{Port: localPort, Local: r.local, Seed: seed, Cookies: r.jar})
		if how == "listener" {
			return nil
		}
		init := strings.Replace(strings.Replace(r.peerInit, "{cookie, ", "{", 1), " {cookie}", "", 1)
		return r.steps("> INIT"+init, "drain", "learn", "> COOKIE ECHO", "drain", "state ESTABLISHED")
	}
	a, err := core.NewClient(&r.cfg, r.now, core.ClientParams{LocalPort: localPort, PeerPort: peerPort, Local: r.local,
		Peer: r.peer, Tag: 0x4c4c4c4c, Seed: seed, Cookies: r.jar})
	if err != nil {
		return err
	}
	r.assoc = a
	r.poll()
	r.tsn = r.init.TSN
	type stage struct {
		name  string
		lines []string
	}
	established := []string{"> INIT ACK" + r.peerInit, "drain", "> COOKIE ACK", "drain", "state ESTABLISHED"}
	for _, s := range []stage{
		{"client", nil},
		{"wait", []string{"drain", "state COOKIE-WAIT"}},
		{"echoed", []string{"drain", "> INIT ACK" + r.peerInit, "drain", "state COOKIE-ECHOED"}},
		{"established", append([]string{"drain"}, established...)},
		{"pending", append([]string{"drain"}, append(established, "send len=8", "drain", "shutdown", "state SHUTDOWN-PENDING")...)},
		{"sent", append([]string{"drain"}, append(established, "shutdown", "drain", "state SHUTDOWN-SENT")...)},
		{"received", append([]string{"drain"}, append(established, "send len=8", "drain", "> SHUTDOWN cum=L-1", "state SHUTDOWN-RECEIVED")...)},
		{"acksent", append([]string{"drain"}, append(established, "> SHUTDOWN cum=L-1", "drain", "state SHUTDOWN-ACK-SENT")...)},
	} {
		if s.name == how {
			return r.steps(s.lines...)
		}
	}
	return fmt.Errorf("no setup %s", how)
}

func (r *runner) steps(lines ...string) error {
	for _, l := range lines {
		if err := r.step(l); err != nil {
			return fmt.Errorf("%s: %w", l, err)
		}
	}
	return nil
}

// act does what a user would do.
func (r *runner) act(s string) error {
	s, wantErr, fails := strings.Cut(s, " fails ")
	f, err := splitFields(s)
	if err != nil {
		return err
	}
	err = r.do(&args{fields: f, r: r})
	r.poll()
	switch {
	case fails && (err == nil || !strings.Contains(err.Error(), wantErr)):
		return fmt.Errorf("error is %v, want %s", err, wantErr)
	case fails:
		return nil
	}
	return err
}

// piece makes m a piece of the message that is open on its stream, or is to be.
func (r *runner) piece(m *tx.Message, last bool) {
	if r.open[m.SID] == nil {
		r.open[m.SID] = new(tx.OpenMessage)
	}
	if m.Of, m.Last = r.open[m.SID], last; last {
		delete(r.open, m.SID)
	}
}

func (r *runner) do(f *args) (err error) {
	arg := func(i int) string {
		if i < len(f.words) {
			return f.words[i]
		}
		return ""
	}
	addr := func(s string) netip.AddrPort {
		ip, e := netip.ParseAddr(s)
		if e != nil {
			err = e
		}
		return netip.AddrPortFrom(ip, udpPort)
	}
	sids := func() (list []uint16) {
		for _, v := range f.nums("streams") {
			list = append(list, uint16(v))
		}
		return list
	}
	a := r.assoc
	switch f.words[0] {
	case "config":
		return r.setConfig(&f.fields)
	case "peer":
		return r.setPeer(&f.fields)
	case "setup":
		return r.setup(arg(1))
	case "learn": // the TSN of the INIT ACK counts
		r.tsn = r.init.TSN
	case "await":
		lo, hi, _ := strings.Cut(arg(1), "..")
		from, e1 := time.ParseDuration(lo)
		to, e2 := time.ParseDuration(hi)
		if e1 != nil || e2 != nil {
			return fmt.Errorf("await MIN..MAX: %v %v", e1, e2)
		}
		began := r.now
		r.advance(r.now+clock.Time(to), true)
		if d := time.Duration(r.now - began); len(r.sent) == 0 || d < from {
			return fmt.Errorf("sent %d packets after %v", len(r.sent), d)
		}
	case "send":
		for range f.num("n", 1) {
			m := &tx.Message{SID: uint16(f.num("sid", 0)), PPID: f.num("ppid", 0), Unordered: f.has("U"), Immediate: f.has("I"),
				Body: fill(0, int(f.num("len", 8))), Owner: owner{r, ""}, Droppable: f.has("droppable"), Priority: f.num("prio", 0), Force: f.has("force")}
			if f.text != "" {
				m.Body = []byte(f.text)
			}
			if v, ok := f.get("lifetime"); ok {
				d, err := time.ParseDuration(v)
				if err != nil {
					return err
				}
				m.Lifetime = clock.Time(d)
			}
			if _, ok := f.get("rtx"); ok {
				m.LimitRtx, m.MaxRtx = true, f.num("rtx", 0)
			}
			if v, ok := f.get("via"); ok {
				m.Remote = addr(v)
			}
			if _, ok := f.get("key"); ok {
				m.Keyed, m.Key = true, uint16(f.num("key", 0))
			}
			if f.has("piece") || f.has("last") {
				r.piece(m, f.has("last"))
			}
			if err := a.Send(r.now, m); err != nil {
				return err
			}
		}
	case "shutdown":
		a.Shutdown(r.now)
	case "abort":
		a.Abort(r.now, []byte(f.text))
	case "primary":
		return a.SetPrimary(addr(arg(1)))
	case "usekey":
		return a.UseAuthKey(uint16(f.num("key", 0)))
	case "deletekey":
		return a.DeleteAuthKey(uint16(f.num("key", 0)))
	case "requestheartbeat":
		return a.RequestHeartbeat(r.now, addr(arg(1)))
	case "toobig": // an ICMP message
		tag, _ := r.symbol("PT")
		used := a.PacketTooBig(r.now, addr(arg(1)), f.num("tag", tag), int(f.num("size", 0)))
		if used == f.has("unused") {
			return fmt.Errorf("used: %v", used)
		}
	case "mtu":
		return a.SetPathMTU(addr(arg(1)), int(f.num("size", 0)))
	case "resetstreams":
		_, err = a.ResetStreams(r.now, sids())
	case "resetincoming":
		_, err = a.ResetIncoming(r.now, sids())
	case "resetassoc":
		_, err = a.ResetAssoc(r.now)
	case "addstreams":
		_, err = a.AddStreams(r.now, uint16(f.num("out", 0)), uint16(f.num("in", 0)))
	case "addaddr":
		_, err = a.AddLocalAddr(addr(arg(1)))
	case "removeaddr":
		_, err = a.RemoveLocalAddr(addr(arg(1)))
	case "replaceaddr":
		_, err = a.ReplaceLocalAddr(addr(arg(1)), addr(arg(2)))
	case "setpeerprimary":
		_, err = a.SetPeerPrimary(addr(arg(1)))
	case "forget": // the association, as a driver does that has closed it
		r.assoc = nil
	default:
		return fmt.Errorf("unknown statement %q", f.words[0])
	}
	if err == nil {
		err = f.err
	}
	return err
}

// checks look at the end under test and change nothing, save for recv.
var checks = map[string]func(*runner, *args) error{
	"state": func(r *runner, f *args) error {
		if r.assoc == nil {
			return fmt.Errorf("no association")
		}
		if got := r.assoc.State().String(); got != f.words[1] {
			return fmt.Errorf("state is %s", got)
		}
		return nil
	},
	"noassoc": func(r *runner, f *args) error {
		if r.assoc != nil {
			return fmt.Errorf("there is an association")
		}
		return nil
	},
	"drop": func(r *runner, f *args) error {
		if got := r.drop.String(); got != strings.Join(f.words[1:], " ") {
			return fmt.Errorf("drop reason is %s", got)
		}
		return nil
	},
	"event": func(r *runner, f *args) error {
		kind := strings.Join(f.words[1:], " ")
		for i, e := range r.events {
			if e.Kind.String() != kind {
				continue
			}
			r.events = append(r.events[:i:i], r.events[i+1:]...)
			errText := fmt.Sprint(e.Err)
			if !strings.Contains(errText, f.text) {
				return fmt.Errorf("error is %s", errText)
			}
			have := map[string]string{"sid": fmt.Sprint(e.Stream), "cause": fmt.Sprint(e.Cause), "addr": e.Addr.Addr().String(), "udp": fmt.Sprint(e.Addr.Port()), "err": errText}
			if len(e.Streams) > 0 {
				have["streams"] = strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Streams), " ", ","), "[]")
			}
			return r.compare(f.kv, have)
		}
		return fmt.Errorf("no such event among %v", r.events)
	},
	"noevent": func(r *runner, f *args) error {
		kind := strings.Join(f.words[1:], " ")
		for _, e := range r.events {
			if e.Kind.String() == kind {
				return fmt.Errorf("event %+v", e)
			}
		}
		return nil
	},
	"recv": func(r *runner, f *args) error {
		buf := make([]byte, 1<<17)
		var info reasm.RecvInfo
		n, ok := r.assoc.Read(buf, &info)
		if !ok {
			return fmt.Errorf("nothing to read")
		}
		r.poll()
		if f.text != "" && string(buf[:n]) != f.text {
			return fmt.Errorf("text is %q", buf[:n])
		}
		if _, ok := f.get("fill"); ok {
			if want := fill(f.num("fill", 0), n); string(buf[:n]) != string(want) {
				return fmt.Errorf("text is %q", buf[:min(n, 20)])
			}
		}
		have := map[string]string{"len": fmt.Sprint(n), "sid": fmt.Sprint(info.SID), "ssn": fmt.Sprint(info.SSN), "mid": fmt.Sprint(info.MID),
			"ppid": fmt.Sprint(info.PPID), "tsn": fmt.Sprint(info.TSN)}
		var kv []field
		for _, x := range f.kv {
			if x.key != "fill" {
				kv = append(kv, x)
			}
		}
		for word, got := range map[string]bool{"U": info.Unordered, "part": !info.EOR, "aborted": info.Aborted} {
			if f.has(word) != got {
				return fmt.Errorf("%s is %v", word, got)
			}
		}
		return r.compare(kv, have)
	},
	"norecv": func(r *runner, f *args) error {
		if r.assoc.Readable() {
			return fmt.Errorf("there is something to read")
		}
		return nil
	},
	"path": func(r *runner, f *args) error {
		i := int(f.words[1][0] - '0')
		if i >= r.assoc.NumPaths() {
			return fmt.Errorf("there are %d paths", r.assoc.NumPaths())
		}
		p := r.assoc.PathStats(i)
		return r.compare(f.kv, map[string]string{"addr": p.Remote.Addr().String(), "udp": fmt.Sprint(p.Remote.Port()), "active": fmt.Sprint(p.Active), "pf": fmt.Sprint(p.PotentiallyFailed),
			"confirmed": fmt.Sprint(p.Confirmed), "primary": fmt.Sprint(p.Primary), "rto": fmt.Sprint(p.RTO.Milliseconds()),
			"srtt": fmt.Sprint(p.SRTT.Milliseconds()), "rttvar": fmt.Sprint(p.RTTVar.Milliseconds()), "cwnd": fmt.Sprint(p.CWND),
			"ssthresh": fmt.Sprint(p.SSThresh), "flight": fmt.Sprint(p.InFlight), "mtu": fmt.Sprint(p.MTU), "probes": fmt.Sprint(p.MTUProbes), "errors": fmt.Sprint(p.Errors)})
	},
	"paths": func(r *runner, f *args) error {
		if got := fmt.Sprint(r.assoc.NumPaths()); got != f.words[1] {
			return fmt.Errorf("there are %s paths", got)
		}
		return nil
	},
	"streams": func(r *runner, f *args) error {
		out, in := r.assoc.Streams()
		return r.compare(f.kv, map[string]string{"out": fmt.Sprint(out), "in": fmt.Sprint(in)})
	},
	"adaptation": func(r *runner, f *args) error {
		v, ok := r.assoc.PeerAdaptation()
		return r.compare(f.kv, map[string]string{"value": fmt.Sprint(v), "known": fmt.Sprint(ok)})
	},
	"supports": func(r *runner, f *args) error { // what both ends support
		return r.compare(f.kv, map[string]string{"pr": fmt.Sprint(r.assoc.PartialReliability()), "idata": fmt.Sprint(r.assoc.Interleaving())})
	},
	"stat": func(r *runner, f *args) error {
		v := reflect.ValueOf(r.assoc.Stats())
		have := map[string]string{}
		for i := range v.NumField() {
			have[v.Type().Field(i).Name] = fmt.Sprint(v.Field(i))
		}
		return r.compare(f.kv, have)
	},
	"released": func(r *runner, f *args) error { // how many messages ended with which error
		n := 0
		for text, k := range r.released {
			if strings.Contains(text, f.text) {
				n += k
			}
		}
		return r.compare(f.kv, map[string]string{"n": fmt.Sprint(n)})
	},
	"timer": func(r *runner, f *args) error { // that none runs, or when the next one is due
		at := r.assoc.NextTimeout()
		if f.words[1] == "none" {
			if at != 0 {
				return fmt.Errorf("a timer runs, due in %v", time.Duration(at-r.now))
			}
			return nil
		}
		d, err := time.ParseDuration(f.words[1])
		if err == nil && at != r.now+clock.Time(d) {
			err = fmt.Errorf("due in %v", time.Duration(at-r.now))
		}
		return err
	},
}

func (r *runner) check(f func(*runner, *args) error, s string) error {
	x, err := splitFields(s)
	if err != nil {
		return err
	}
	a := &args{fields: x, r: r}
	if err := f(r, a); err != nil {
		return err
	}
	return a.err
}
