package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// options say what is measured.
type options struct {
	kinds   []string
	link    link
	time    time.Duration
	size    int
	window  int
	receive int
	echo    bool
	raw     bool
	rounds  int
	json    bool
	profile string
}

// below returns whose SCTP the program was built with.
func below() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/pion/sctp" && m.Replace != nil {
				return "weft"
			}
		}
	}
	return "pion"
}

// parse reads the command line.
func parse(args []string) (*options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	conn := f.String("conn", "udp", "kinds of connections: memory, udp, dtls, webrtc, separated by commas")
	loss := f.String("loss", "0", "share of packets lost each way, in percent")
	f.DurationVar(&o.link.delay, "delay", 0, "delay each way")
	f.DurationVar(&o.time, "time", 3*time.Second, "how long each measurement takes")
	f.IntVar(&o.size, "size", 32<<10, "size of messages in bytes, 1 to 65536")
	f.IntVar(&o.window, "window", 4<<20, "bytes that may wait at the sender")
	f.IntVar(&o.receive, "receive", 1<<20, "receive buffer in bytes")
	f.BoolVar(&o.echo, "echo", false, "measure messages of 64 bytes there and back, too")
	f.BoolVar(&o.raw, "raw", false, "send without SCTP over the connection")
	f.IntVar(&o.rounds, "rounds", 0, "build with weft and with pion, run both by turns so many times, and print medians")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.StringVar(&o.profile, "cpuprofile", "", "write a profile of the processor time to this file")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	o.kinds = strings.Split(*conn, ",")
	percent, err := strconv.ParseFloat(strings.TrimSuffix(*loss, "%"), 64)
	o.link.loss = percent / 100
	switch {
	case err != nil || percent < 0 || percent >= 100:
		return nil, fmt.Errorf("-loss %q is no percentage below 100", *loss)
	case o.link.delay < 0 || o.time <= 0 || o.rounds < 0:
		return nil, errors.New("-delay, -time or -rounds is negative")
	case o.size < 1 || o.size > 1<<16 || o.window < 1 || o.receive < 1<<14 || o.receive > 1<<30:
		return nil, errors.New("-size, -window or -receive is out of range")
	case o.raw && (o.rounds > 0 || o.echo):
		return nil, errors.New("-raw is not for -rounds and -echo")
	case f.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return &o, nil
}

// String returns the result in a line.
func (r result) String() string {
	s := fmt.Sprintf("%s over %s: %.0f Mbit/s, %.1f allocations and %.1f KB per MB", r.Below, r.Conn, r.Mbps, r.AllocsPerMB, r.KBPerMB)
	if r.Echoes > 0 {
		s += fmt.Sprintf("; echo of %d bytes: p50 %.1f µs, p99 %.1f µs, %.1f allocations", echoSize, r.EchoP50, r.EchoP99, r.AllocsPerOne)
	}
	return s
}

func run(o *options) error {
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if o.rounds > 0 {
		pairs, err := o.compare()
		if err != nil {
			return err
		}
		if o.json {
			return out.Encode(pairs)
		}
		return table(pairs)
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var rs []result
	for _, kind := range o.kinds {
		r, err := o.measure(kind)
		if err != nil {
			return err
		}
		rs = append(rs, r)
		if !o.json {
			fmt.Println(r)
		}
	}
	if o.json {
		return out.Encode(rs)
	}
	return nil
}

// table prints the medians with weft, with pion, and their ratio.
func table(pairs []pair) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "over\trounds\tmedian of\tweft\tpion\tratio\t")
	for _, p := range pairs {
		row := func(what string, x, y float64) {
			if x != 0 || y != 0 {
				fmt.Fprintf(w, "%s\t%d\t%s\t%.1f\t%.1f\t%.2f\t\n", p.Conn, p.Rounds, what, x, y, x/y)
			}
		}
		row("Mbit/s", p.Weft.Mbps, p.Pion.Mbps)
		row("allocations per MB", p.Weft.AllocsPerMB, p.Pion.AllocsPerMB)
		row("KB allocated per MB", p.Weft.KBPerMB, p.Pion.KBPerMB)
		row("echo p50, µs", p.Weft.EchoP50, p.Pion.EchoP50)
		row("echo p99, µs", p.Weft.EchoP99, p.Pion.EchoP99)
		row("allocations per echo", p.Weft.AllocsPerOne, p.Pion.AllocsPerOne)
	}
	return w.Flush()
}

func main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		err = run(o)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
