package gateway

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/sites"
)

// keygenMain is `weft gateway keygen`.
func keygenMain(args []string) int {
	fs := flag.NewFlagSet("weft gateway keygen", flag.ContinueOnError)
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), `usage: weft gateway keygen FILE

Keygen writes a new random key of 32 bytes to FILE, with mode 0600, as 64 hexadecimal
digits. It never overwrites a file. Copy the key to the gateways of the two sites
that share it, or, for the key for jobs, to all gateways and to where jobs are started.
`)
	}
	if status, ok := cli.Start(fs, args); !ok {
		return status
	}
	if fs.NArg() != 1 {
		return cli.Refuse(fs.Name(), errors.New("want the name of one file"))
	}
	if err := sites.WriteKey(fs.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "weft gateway keygen:", err)
		return cli.ExitFail
	}
	return cli.ExitOK
}
