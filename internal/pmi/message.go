package pmi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// MaxLine bounds one line of the protocol, newline included. A peer that sends
// a longer one is disconnected.
const MaxLine = 8 << 10

// ErrProtocol is wrapped by every error about a line that is not PMI-1.
var ErrProtocol = errors.New("pmi: protocol error")

// message is one line: its command and the other pairs.
type message struct {
	cmd  string
	args map[string]string
}

// readMessage reads one line. The returned error is io.EOF at the end of the
// connection.
func readMessage(r *bufio.Reader) (message, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return message{}, fmt.Errorf("%w: line longer than %d bytes", ErrProtocol, MaxLine)
	}
	if err != nil {
		if errors.Is(err, io.EOF) && len(line) > 0 {
			return message{}, io.ErrUnexpectedEOF
		}
		return message{}, err
	}
	return parseMessage(string(line[:len(line)-1]))
}

// textKey is the one key whose value may contain spaces: it comes last and is
// meant for people.
const textKey = "error_msg"

// parseMessage parses one line without its newline.
func parseMessage(line string) (message, error) {
	m := message{args: make(map[string]string)}
	rest := strings.TrimRight(line, "\r")
	for rest = strings.TrimLeft(rest, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		key, after, ok := strings.Cut(rest, "=")
		if !ok || key == "" || strings.Contains(key, " ") {
			return message{}, fmt.Errorf("%w: %q is not a key=value pair", ErrProtocol, clip(rest))
		}
		var value string
		if key == textKey {
			value, rest = after, ""
		} else {
			value, rest, _ = strings.Cut(after, " ")
		}
		if _, dup := m.args[key]; dup {
			return message{}, fmt.Errorf("%w: key %q twice in one line", ErrProtocol, clip(key))
		}
		m.args[key] = value
	}
	if m.cmd = m.args["cmd"]; m.cmd == "" {
		m.cmd = m.args["mcmd"]
	}
	if m.cmd == "" {
		return message{}, fmt.Errorf("%w: %q has no command", ErrProtocol, clip(line))
	}
	return m, nil
}

// clip shortens what a peer sent to something fit for an error message.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}

// number returns the value of key as a non-negative number.
func (m message) number(key string) (int, error) {
	n, err := strconv.Atoi(m.args[key])
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %s has no number %q", ErrProtocol, m.cmd, key)
	}
	return n, nil
}

// fail returns the error that a reply reports, or nil.
func (m message) fail() error {
	if rc := m.args["rc"]; rc == "" || rc == "0" {
		return nil
	}
	why := m.args["msg"]
	if why == "" {
		why = "rc=" + m.args["rc"]
	}
	return fmt.Errorf("%w %s: %s", ErrRefused, m.cmd, clip(why))
}
