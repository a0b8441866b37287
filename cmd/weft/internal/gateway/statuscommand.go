package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"text/tabwriter"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/process"
	"github.com/weftstack/weft/internal/cli"
)

const (
	// maxStatus bounds the answer of a gateway in bytes.
	maxStatus = 64 << 20
	// statusPoll is how often -wait asks.
	statusPoll = 50 * time.Millisecond
	// shownFlows is how many flows are printed for people.
	shownFlows = 20
	// shownProcesses is how many legs to processes are printed for people.
	shownProcesses = 20
)

// statusMain is `weft gateway status`.
func statusMain(args []string) int {
	var asJSON bool
	var wait time.Duration
	fs := flag.NewFlagSet("weft gateway status", flag.ContinueOnError)
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	fs.DurationVar(&wait, "wait", 0, "wait until all legs to other gateways are up, at most for this `time`")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), `usage: weft gateway status [-json] [-wait TIME] [ADDRESS]

Status shows what a gateway tells at its status ADDRESS (default `+defaultStatus+`): legs
with round-trip times, congestion windows, losses and retransmissions, the flows with
most bytes, and what was refused.

`)
		fs.PrintDefaults()
	}
	if status, ok := cli.Start(fs, args); !ok {
		return status
	}
	addr := defaultStatus
	if fs.NArg() == 1 {
		addr = fs.Arg(0)
	}
	var err error
	if fs.NArg() > 1 {
		err = errors.New("want one address")
	} else if _, _, aerr := net.SplitHostPort(addr); aerr != nil {
		err = fmt.Errorf("%q: want ADDRESS:PORT, such as %s", addr, defaultStatus)
	} else if wait < 0 {
		err = fmt.Errorf("-wait %v is negative", wait)
	}
	if err != nil {
		return cli.Refuse(fs.Name(), err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, process.TermSignal)
	defer stop()
	s, text, err := fetchReady(ctx, addr, wait)
	if err == nil {
		if asJSON {
			_, err = os.Stdout.Write(text)
		} else {
			err = s.print(os.Stdout)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "weft gateway status:", err)
		return cli.ExitFail
	}
	return cli.ExitOK
}

// fetchReady returns the status of the gateway at addr; if wait is not 0, once it is ready.
func fetchReady(ctx context.Context, addr string, wait time.Duration) (*Status, []byte, error) {
	end := time.Now().Add(wait)
	for {
		s, text, err := fetch(ctx, addr)
		if wait == 0 || err == nil && s.Ready {
			return s, text, err
		}
		if left := time.Until(end); left <= 0 {
			if err == nil {
				err = fmt.Errorf("not all legs are up after %v: %s", wait, s.down())
			}
			return nil, nil, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(statusPoll):
		}
	}
}

// down names the legs that are not up.
func (s *Status) down() string {
	text := ""
	for _, l := range s.Legs {
		if !l.Up {
			text += fmt.Sprintf(", %s (association %d)", l.Peer, l.Association)
		}
	}
	return text[min(2, len(text)):]
}

// fetch asks the gateway at addr for its status.
func fetch(ctx context.Context, addr string) (*Status, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/status", nil)
	if err != nil {
		return nil, nil, err
	}
	// A proxy of the environment is not on the way to a gateway.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("%s answers %s: is it the status address of a gateway?", addr, r.Status)
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxStatus+1))
	if err == nil && len(text) > maxStatus {
		err = fmt.Errorf("%s answers with more than %d bytes", addr, maxStatus)
	}
	s := new(Status)
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", addr, err)
	}
	return s, text, nil
}

// print prints a status for people.
func (s *Status) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	state := "ready"
	if !s.Ready {
		state = "not ready: down is " + s.down()
	}
	fmt.Fprintf(out, "gateway %s of site %s (%d.%d), %s\nup %v, %d jobs, %d flows, %.1f MiB held\n", s.Gateway, s.Site, s.SiteNumber, s.Number, state,
		(time.Duration(s.UpSeconds * float64(time.Second))).Round(time.Second), s.Jobs, s.FlowCount, mib(s.Held))
	fmt.Fprintln(w, "\nleg to\tjob\tstate\trtt ms\tcwnd KiB\tpaths\tsent MiB\trecv MiB\tqueued\tin flight KiB\tretransmits\tfast\ttimeouts\t")
	shown := 0
	for i := range s.Legs {
		l := &s.Legs[i]
		if !l.IsGateway {
			if shown++; shown > shownProcesses {
				continue
			}
		}
		peer, job, state := l.Peer, "", "down"
		if l.IsGateway && l.Association > 1 {
			peer += fmt.Sprintf(" (%d)", l.Association)
		}
		if !l.IsGateway {
			job = fmt.Sprint(l.Job)
		}
		if l.Up {
			state = "up"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.3f\t%.1f\t%d/%d\t%.1f\t%.1f\t%d\t%.1f\t%d\t%d\t%d\t\n", peer, job, state, l.RTT, float64(l.CWND)/1024,
			l.ActivePaths, l.Paths, mib(l.BytesSent), mib(l.BytesReceived), l.Queued, float64(l.InFlight)/1024,
			l.Retransmits, l.Fast, l.Timeouts)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if more := shown - shownProcesses + s.LegCount - len(s.Legs); more > 0 {
		fmt.Fprintf(out, "and %d more processes\n", more)
	}
	if len(s.Flows) > 0 {
		fmt.Fprintln(w, "\nflow from\tto\tjob\tstream\tframes\tMiB\theld KiB\tidle s\t")
	}
	for i := range s.Flows[:min(len(s.Flows), shownFlows)] {
		f := &s.Flows[i]
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%.1f\t%.1f\t%.1f\t\n", f.From, f.To, f.Job, f.Stream, f.Frames, mib(f.Bytes), float64(f.Held)/1024, f.Idle)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if more := s.FlowCount - shownFlows; more > 0 {
		fmt.Fprintf(out, "and %d more flows\n", more)
	}
	if len(s.Classes) > 1 {
		fmt.Fprintln(w, "\nclass of jobs\tweight\trate\tframes\tsent MiB\twaits\t")
		for _, c := range s.Classes {
			fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%.1f\t%d\t\n", c.Name, c.Weight, rateText(c.Rate), c.Frames, mib(c.Bytes), c.Waits)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if s.TCP != nil {
		s.TCP.print(out)
	}
	fmt.Fprintf(out, "\nlegs lost: %d   flows moved: %d   peers refused: %d   frames not forwarded:",
		s.Counters.LegsLost, s.Counters.Moves, s.Counters.PeersRefused)
	none := true
	for _, r := range s.Counters.reasons() {
		if r.n > 0 {
			none = false
			fmt.Fprintf(out, " %d (%s)", r.n, r.text)
		}
	}
	if none {
		fmt.Fprint(out, " 0")
	}
	_, err := fmt.Fprintln(out)
	return err
}

func mib[T int64 | uint64](n T) float64 { return float64(n) / (1 << 20) }
