package rping

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"

	"github.com/weftstack/weft/internal/cli"
)

// Parameters of rping, as the program of librdmacm has them.
const (
	defaultPort = 7174
	defaultSize = 64
	minSize     = 26 // the longest text in front of the data, and its end
	maxSize     = 64<<10 - 1
	infoLen     = 16
)

// maxClients bounds the clients that a persistent server has at a time.
const maxClients = 64

// Flags of rping that are one letter, those with a value and those without:
// they may be written together as getopt has it ("-cVv", "-C5").
const (
	boolFlags  = "scvVdPqh"
	valueFlags = "apCSI"
)

// options are the flags of `weft rping`.
type options struct {
	server, client bool
	addr, source   string
	port           int
	size           int
	count          uint64
	verbose        bool
	validate       bool
	debug          bool
	persistent     bool
	own            bool // -q, which changes nothing here
	sctp           bool
	crc, markers   bool
	revision       int
	pcap           string
	out, log       io.Writer
	listening      func(net.Addr) // for tests
}

func newFlags(o *options) *flag.FlagSet {
	fs := flag.NewFlagSet("weft rping", flag.ContinueOnError)
	fs.BoolVar(&o.server, "s", false, "run as the server")
	fs.BoolVar(&o.client, "c", false, "run as the client")
	fs.StringVar(&o.addr, "a", "", "`address` to listen on or to connect to")
	fs.StringVar(&o.source, "I", "", "source `address` of the client")
	fs.IntVar(&o.port, "p", defaultPort, "`port` of the server")
	fs.IntVar(&o.size, "S", defaultSize, "size of the ping data in `bytes`")
	fs.Uint64Var(&o.count, "C", 0, "`number` of pings that the client sends; 0 means until interrupted")
	fs.BoolVar(&o.verbose, "v", false, "print the ping data")
	fs.BoolVar(&o.validate, "V", false, "validate the ping data that comes back")
	fs.BoolVar(&o.debug, "d", false, "print debugging output")
	fs.BoolVar(&o.persistent, "P", false, "persistent server: serve several clients at a time, until interrupted")
	fs.BoolVar(&o.own, "q", false, "accepted for compatibility with rping (queue pair created without rdma_cm); has no effect")
	fs.BoolVar(&o.sctp, "sctp", false, "ping over SCTP (RFC 5043) instead of TCP; -p is the UDP and the SCTP port")
	fs.BoolVar(&o.crc, "crc", true, "request MPA CRCs over TCP; with -crc=false they are used only if the peer requests them")
	fs.BoolVar(&o.markers, "markers", false, "require the peer to send MPA markers over TCP")
	fs.IntVar(&o.revision, "revision", 2, "MPA `revision` that the client requests: 2 (RFC 6581) or 1 (RFC 5044)")
	fs.StringVar(&o.pcap, "pcap", "", "with -sctp: write all packets to a pcap `file`")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), "usage: weft rping -s [-vVdPq] [-S SIZE] [-a ADDR] [-p PORT] [--sctp] ...\n"+
			"       weft rping -c [-vVdq] [-C COUNT] [-S SIZE] [-I ADDR] -a ADDR [-p PORT] [--sctp] ...\n\n"+
			"Rping moves data from the client to the server and back by RDMA over TCP (iWARP). It interoperates\n"+
			"with rping of librdmacm. Flags of one letter can be combined: -cVv -C5.\n\n")
		fs.PrintDefaults()
	}
	return fs
}

// splitLetters takes flags apart that were written together.
func splitLetters(args []string) (out []string) {
	for i, a := range args {
		if a == "--" || len(a) < 2 || a[0] != '-' {
			return append(out, args[i:]...)
		}
		if strings.HasPrefix(a, "--") || len(a) == 2 {
			out = append(out, a)
			continue
		}
		at := 1
		for at < len(a) && strings.IndexByte(boolFlags, a[at]) >= 0 {
			at++
		}
		switch {
		case at == len(a): // -cVv
		case strings.IndexByte(valueFlags, a[at]) >= 0 && a[at+1:] != "" && a[at+1] != '=': // -C5, -vC5
		case strings.IndexByte(valueFlags, a[at]) >= 0 && at > 1: // -vC 5
		default: // -C=5, -sctp, or something unknown
			out = append(out, a)
			continue
		}
		for k := 1; k < at; k++ {
			out = append(out, "-"+a[k:k+1])
		}
		if at < len(a) {
			if v := a[at+1:]; v != "" {
				out = append(out, "-"+a[at:at+1]+"="+v)
			} else {
				out = append(out, "-"+a[at:at+1])
			}
		}
	}
	return out
}

// joinValues writes the value of a letter behind it, so that what follows is
// taken apart, too.
func joinValues(args []string) (out []string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if len(a) >= 2 && a[0] == '-' && a[1] != '-' && strings.IndexByte(valueFlags, a[len(a)-1]) >= 0 &&
			strings.Trim(a[1:len(a)-1], boolFlags) == "" && i+1 < len(args) {
			for k := 1; k < len(a)-1; k++ {
				out = append(out, "-"+a[k:k+1])
			}
			i++
			out = append(out, "-"+a[len(a)-1:]+"="+args[i])
			continue
		}
		out = append(out, a)
	}
	return out
}

func Main(args []string) int {
	o := options{out: &lockedWriter{w: os.Stdout}, log: &lockedWriter{w: os.Stderr}}
	fs := newFlags(&o)
	if status, ok := cli.Start(fs, splitLetters(joinValues(args))); !ok {
		return status
	}
	if fs.NArg() > 0 {
		return cli.Refuse(fs.Name(), fmt.Errorf("unknown argument %q", fs.Arg(0)))
	}
	if err := o.check(); err != nil {
		return cli.Refuse(fs.Name(), err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "weft rping:", err)
		return cli.ExitFail
	}
	return cli.ExitOK
}

// check finds what the flag package cannot.
func (o *options) check() error {
	switch {
	case o.server == o.client:
		return fmt.Errorf("give either -s (server) or -c (client)")
	case o.client && o.addr == "":
		return fmt.Errorf("-c requires the address of the server: -a ADDR")
	case o.size < minSize || o.size > maxSize:
		return fmt.Errorf("-S %d: want %d to %d", o.size, minSize, maxSize)
	case o.port < 0 || o.port > 65535:
		return fmt.Errorf("-p %d: want 0 to 65535", o.port)
	case o.revision != 1 && o.revision != 2:
		return fmt.Errorf("--revision %d: want 1 or 2", o.revision)
	case o.persistent && o.client:
		return fmt.Errorf("-P requires -s")
	case o.pcap != "" && !o.sctp:
		return fmt.Errorf("--pcap requires --sctp; capture TCP with tcpdump")
	case o.source != "" && o.server:
		return fmt.Errorf("-I requires -c")
	}
	return nil
}

// lockedWriter lets several clients of a server write.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
