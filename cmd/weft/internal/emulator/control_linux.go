package emulator

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/weftstack/weft/internal/netem"
)

// changeRequest is something to do with the running fabric, and where its
// outcome is awaited.
type changeRequest struct {
	do   func(*netem.Fabric) error
	done chan error
}

// applyChanges does what came over the control socket.
func (em *emulation) applyChanges() {
	for {
		select {
		case r := <-em.changes:
			r.done <- r.do(em.fabric)
		default:
			return
		}
	}
}

// serveControl takes commands line by line from whoever connects.
func (em *emulation) serveControl(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			lines := bufio.NewScanner(conn)
			for lines.Scan() {
				answer, err := em.command(lines.Text())
				if err != nil {
					answer = "error: " + err.Error()
				}
				fmt.Fprintln(conn, answer)
			}
		}()
	}
}

// command carries out one line and returns the answer to it.
func (em *emulation) command(line string) (answer string, err error) {
	switch strings.TrimSpace(line) {
	case "begun":
		select {
		case <-em.begun:
			return "ok", nil
		case <-em.ended:
			return "", errors.New("the emulation has ended")
		}
	case "stats":
		var stats []portStats
		err := em.do(func(f *netem.Fabric) error {
			stats = em.plan.stats(f)
			return nil
		})
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(stats)
		return string(text), err
	}
	c, err := netem.ParseChange(line)
	if err != nil {
		return "", err
	}
	if err := em.do(func(f *netem.Fabric) error { return em.plan.apply(c, f) }); err != nil {
		return "", err
	}
	return "ok", em.changeDaemons(c)
}

// do has the loop call f.
func (em *emulation) do(f func(*netem.Fabric) error) error {
	r := changeRequest{f, make(chan error, 1)}
	over := errors.New("the emulation has ended")
	select {
	case em.changes <- r:
	case <-em.ended:
		return over
	}
	em.ring()
	select {
	case err := <-r.done:
		return err
	case <-em.ended:
		return over
	}
}
