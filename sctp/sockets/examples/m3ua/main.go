// M3ua is a signalling gateway and an application server process that speak M3UA (RFC 4666), SS7
// over SCTP: ASP Up, ASP Active, DATA, BEAT. It is written as for the kernel's socket, with the
// names of package sctp/sockets:
//
//	go run ./sctp/sockets/examples/m3ua                                # both, on this host
//	go run ./sctp/sockets/examples/m3ua -listen 10.0.0.1/10.0.1.1:2905 # a gateway with two addresses
//	go run ./sctp/sockets/examples/m3ua -dial 10.0.0.1/10.0.1.1:2905   # a process
//
// WEFT_SCTP_ENCAP says what is below: with the UDP port 9899 at the other end, WEFT_SCTP_ENCAP=9899;
// with SCTP over IP, as kernels and SS7 equipment speak it, WEFT_SCTP_ENCAP=ip.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"

	sctp "github.com/weftstack/weft/sctp/sockets"
)

func main() {
	listen := flag.String("listen", "", "be a gateway on `addresses`, ip/ip:port")
	dialTo := flag.String("dial", "", "be a process of the gateway on `addresses`")
	local := flag.String("local", "", "the `addresses` of the process; a free port of all if empty")
	count := flag.Int("n", 1000, "how many messages the process sends")
	flag.Parse()
	if err := run(*listen, *dialTo, *local, *count, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "m3ua:", err)
		os.Exit(1)
	}
}

func run(listen, dialTo, local string, count int, out io.Writer) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	both := listen == "" && dialTo == ""
	if both {
		listen = "127.0.0.1:0"
	}
	if listen != "" {
		laddr, err := sctp.ResolveSCTPAddr("sctp", listen)
		if err != nil {
			return err
		}
		ln, err := sctp.ListenSCTPExt("sctp", laddr, initMsg)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "gateway on", ln.Addr())
		served := make(chan error, 1)
		go func() { served <- (&gateway{routingContext, log}).serve(ln) }()
		if !both {
			interrupt := make(chan os.Signal, 1)
			signal.Notify(interrupt, os.Interrupt)
			select {
			case err := <-served:
				return err
			case <-interrupt:
				return ln.Close()
			}
		}
		defer func() {
			ln.Close()
			<-served
		}()
		dialTo = ln.Addr().String()
	}
	return traffic(dialTo, local, count, log, out)
}

const routingContext = 7

// traffic is what the process does.
func traffic(to, local string, count int, log *slog.Logger, out io.Writer) error {
	raddr, err := sctp.ResolveSCTPAddr("sctp", to)
	if err != nil {
		return err
	}
	var laddr *sctp.SCTPAddr
	if local != "" {
		if laddr, err = sctp.ResolveSCTPAddr("sctp", local); err != nil {
			return err
		}
	}
	p, err := dial(laddr, raddr, routingContext, log)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "active at %v, %d streams\n", p.conn.RemoteAddr(), p.conn.streams)
	if err := p.beat(); err != nil {
		return err
	}
	for i := range count {
		want := unitdata(fmt.Appendf(nil, "message %d", i))
		got, err := p.request(1, 2, uint8(i%16), want)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("sent %q, received %q", want, got)
		}
	}
	fmt.Fprintf(out, "%d messages there and back\n", count)
	return p.close()
}
