package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"

	"github.com/weftstack/weft/internal/pmi"
)

func newToken() string { return rand.Text() }

// nameserverMain is `weft nameserver`.
func nameserverMain(args []string) int {
	var addr, token string
	fs := flag.NewFlagSet("nameserver", flag.ContinueOnError)
	fs.StringVar(&addr, "addr", "127.0.0.1:0", "listen at this `address`")
	fs.StringVar(&token, "token", "", "the `secret` that clients must know (default: a random one)")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), `usage: weft nameserver [flags]

Nameserver keeps the names of ports for jobs that are started apart, until it is
interrupted. It prints one line, its address with the secret, for

	weft run -nameserver ADDRESS …

or the environment variable `+pmi.EnvNames+` of programs without that launcher.

`)
		fs.PrintDefaults()
	}
	if status, ok := parse(fs, args); !ok {
		return status
	}
	if fs.NArg() > 0 || strings.ContainsAny(token, " /=\n") {
		return misused(fs.Name(), errors.New("arguments, or a token with spaces, slashes or equals signs"))
	}
	if token == "" {
		token = newToken()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, termSignal)
	defer stop()
	l, err := net.Listen("tcp", addr)
	if err == nil {
		fmt.Printf("%s/%s\n", l.Addr(), token)
		err = new(pmi.Names).ServeNames(ctx, l, token)
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		fmt.Fprintln(os.Stderr, "weft nameserver:", err)
		return exitFail
	}
	return exitOK
}
