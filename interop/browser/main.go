package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves pages until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("browser", flag.ContinueOnError)
	flags.SetOutput(stderr)
	addr := flags.String("addr", "127.0.0.1:8080", "serve the page on this `address`")
	open := flags.Bool("open", false, "open the page in the browser")
	asJSON := flags.Bool("json", false, "print the state of each peer as a line of JSON, not as a table")
	every := flags.Duration("every", 2*time.Second, "print the state of the peers this `often`")
	loopback := flags.Bool("loopback", false, "give pages loopback addresses only")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *every <= 0 {
		return fmt.Errorf("browser: -every %v: must be more than 0", *every)
	}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		return fmt.Errorf("browser: -addr: %w", err)
	}
	s := newServer(*loopback, slog.New(slog.NewTextHandler(stderr, nil)))
	h := &http.Server{Handler: s.handler(), ReadTimeout: 10 * time.Second, WriteTimeout: 20 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10}
	page := "http://" + l.Addr().String() + "/"
	fmt.Fprintf(stderr, "SCTP: %s\npage: %s\n", sctpModule(), page)
	if *open {
		if err := openPage(page); err != nil {
			fmt.Fprintf(stderr, "browser: -open: %v\n", err)
		}
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	tick := time.NewTicker(*every)
	defer tick.Stop()
	table := &printer{w: stdout}
	lines := json.NewEncoder(stdout)
	for {
		select {
		case <-tick.C:
			states := s.states()
			if !*asJSON {
				table.print(states)
				continue
			}
			for _, state := range states {
				lines.Encode(state)
			}
		case err := <-served:
			s.close()
			return err
		case <-ctx.Done():
			h.Close()
			s.close()
			return nil
		}
	}
}

// sctpModule says which module has the SCTP that pion/webrtc uses in this program.
var sctpModule = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown: built without module information"
	}
	for _, m := range info.Deps {
		switch {
		case m.Path != "github.com/pion/sctp":
		case m.Replace != nil:
			return fmt.Sprintf("weft (%s in place of pion/sctp %s)", m.Replace.Path, m.Version)
		default:
			return "pion/sctp " + m.Version
		}
	}
	return "unknown: github.com/pion/sctp is not part of this program"
})

// openPage shows a page in the user's browser.
func openPage(page string) error {
	command := []string{"xdg-open", page}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open", page}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", page}
	}
	c := exec.Command(command[0], command[1:]...)
	if err := c.Start(); err != nil {
		return err
	}
	go c.Wait()
	return nil
}
