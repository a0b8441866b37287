package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"

	"github.com/weftstack/weft/cmd/weft/internal/process"
	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/pmi"
)

func newToken() string { return rand.Text() }

// NameServerMain is `weft nameserver`.
func NameServerMain(args []string) int {
	var addr, file string
	fs := flag.NewFlagSet("weft nameserver", flag.ContinueOnError)
	fs.StringVar(&addr, "addr", "127.0.0.1:0", "`address` to listen on")
	fs.StringVar(&file, "file", "", "write address and secret to this `file`, readable by its owner only; a secret that the file already holds is reused")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), `usage: weft nameserver [flags]

Nameserver serves published port names (MPI_Publish_name) to jobs of different
launchers, until it is interrupted. Clients need its address and a secret, which
-file writes for

	weft run -nameserver FILE ...

Without -file it prints ADDRESS/SECRET, one line, for the environment variable
`+pmi.EnvNames+` of programs under another launcher. The secret is never an argument,
because all users of a host can read command lines.

`)
		fs.PrintDefaults()
	}
	if status, ok := cli.Start(fs, args); !ok {
		return status
	}
	if fs.NArg() > 0 {
		return cli.Refuse(fs.Name(), fmt.Errorf("unexpected argument %q", fs.Arg(0)))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, process.TermSignal)
	defer stop()
	if err := serveNames(ctx, addr, file); err != nil && !errors.Is(err, net.ErrClosed) {
		fmt.Fprintln(os.Stderr, "weft nameserver:", err)
		return cli.ExitFail
	}
	return cli.ExitOK
}

// serveNames tells where the server listens, and its secret, and serves.
func serveNames(ctx context.Context, addr, file string) error {
	secret := newToken()
	if file != "" {
		var err error
		if secret, err = keptSecret(file); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	text := l.Addr().String() + "/" + secret
	if file == "" {
		fmt.Println(text)
	} else if err := writePrivate(file, text); err != nil {
		return err
	} else {
		fmt.Printf("listening at %s; for weft run -nameserver %s\n", l.Addr(), file)
	}
	return new(pmi.Names).ServeNames(ctx, l, secret)
}
