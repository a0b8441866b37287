package netem

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Change is one command to a running fabric:
//
//	cut [net N] [host H]
//	restore [net N] [host H]
//	set [net N] [host H] [to H] NAME VALUE …
//
// Without net or host it means all of them. What is set with "to" holds for what
// the host sends to that one only, until something is set without.
type Change struct {
	verb      string
	net, host int // -1: all
	to        int // -1: all
	set       []string
	text      string
}

// ParseChange parses a command.
func ParseChange(s string) (Change, error) {
	words := strings.Fields(s)
	c := Change{net: -1, host: -1, to: -1, text: strings.Join(words, " ")}
	if len(words) == 0 {
		return c, fmt.Errorf("an empty command")
	}
	c.verb, words = words[0], words[1:]
	for len(words) >= 2 && (words[0] == "net" || words[0] == "host" || words[0] == "to" && c.verb == "set") {
		n, err := strconv.Atoi(words[1])
		if err != nil || n < 0 {
			return c, fmt.Errorf("%q: %s %q is not a number", s, words[0], words[1])
		}
		switch words[0] {
		case "net":
			c.net = n
		case "host":
			c.host = n
		default:
			c.to = n
		}
		words = words[2:]
	}
	switch c.verb {
	case "cut", "restore":
		if len(words) > 0 {
			return c, fmt.Errorf("%q: unexpected %q", s, words[0])
		}
	case "set":
		if len(words) == 0 || len(words)%2 != 0 {
			return c, fmt.Errorf("%q: want pairs of a name and a value", s)
		}
		c.set = words
		var p Params
		for i := 0; i < len(words); i += 2 {
			if err := p.Set(words[i], words[i+1]); err != nil {
				return c, fmt.Errorf("%q: %w", s, err)
			}
			if c.to >= 0 && slices.Contains(portOnly, words[i]) {
				return c, fmt.Errorf("%q: %s is the same for all that a host sends to", s, words[i])
			}
		}
	default:
		return c, fmt.Errorf("%q: unknown command %q (want cut, restore or set)", s, c.verb)
	}
	return c, nil
}

// Check reports whether the command fits the dimensions of f.
func (c Change) Check(nets, hosts int) error {
	if c.net >= nets || c.host >= hosts || c.to >= hosts {
		return fmt.Errorf("%q: there are %d networks and %d hosts, counted from 0", c.text, nets, hosts)
	}
	return nil
}

// Apply carries the command out.
func (c Change) Apply(f *Fabric) error {
	if err := c.Check(f.Nets(), f.Hosts()); err != nil {
		return err
	}
	for n := range f.Nets() {
		for h := range f.Hosts() {
			if c.net >= 0 && c.net != n || c.host >= 0 && c.host != h {
				continue
			}
			if c.verb != "set" {
				f.SetCut(n, h, c.verb == "cut")
				continue
			}
			if c.to >= 0 {
				f.SetFlowParams(n, h, c.to, c.change(f.FlowParams(n, h, c.to)))
			} else {
				f.SetParams(n, h, c.change(f.Params(n, h)))
			}
		}
	}
	return nil
}

// change returns p with what the command sets.
func (c Change) change(p Params) Params {
	for i := 0; i < len(c.set); i += 2 {
		p.Set(c.set[i], c.set[i+1]) // parsed once before
	}
	return p
}

// Step is a command that is due some time after the start.
type Step struct {
	After time.Duration
	Change
}

// ParseStep parses a step: "at 5s cut net 1". The word at may be missing.
func ParseStep(s string) (Step, error) {
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "at "))
	when, what, _ := strings.Cut(rest, " ")
	after, err := time.ParseDuration(when)
	if err != nil || after < 0 {
		return Step{}, fmt.Errorf("%q: want a time and a command, such as \"5s cut net 1\"", s)
	}
	c, err := ParseChange(what)
	return Step{after, c}, err
}
