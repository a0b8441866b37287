package netem

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Change is one command to a running network. To networks that join all hosts, which are
// counted from 0:
//
//	cut [net N] [host H]
//	restore [net N] [host H]
//	set [net N] [host H] [to H] NAME VALUE …
//
// To sites, whose parts are counted from 1:
//
//	cut [lan | wan [W]] [site S] [host H | gateway G]
//	restore [lan | wan [W]] [site S] [host H | gateway G]
//	set lan [site S] [host H | gateway G] [to H] NAME VALUE …
//	set wan [W] [site S] [to S] NAME VALUE …
//	kill [site S] [gateway G]
//	start [site S] [gateway G]
//
// What is not named means all of them. What is set with "to" holds for what the host, or
// the site, sends to that one only, until something is set without.
type Change struct {
	verb      string
	net, host int // -1: all
	to        int // -1: all
	set       []string
	text      string

	lan, wan              bool // neither: both
	wanNet, site, gateway int  // 0: all
}

// The verbs of commands.
const (
	verbCut     = "cut"
	verbRestore = "restore"
	verbSet     = "set"
	verbKill    = "kill"
	verbStart   = "start"
)

// ParseChange parses a command.
func ParseChange(s string) (Change, error) {
	words := strings.Fields(s)
	c := Change{net: -1, host: -1, to: -1, text: strings.Join(words, " ")}
	if len(words) == 0 {
		return c, fmt.Errorf("an empty command")
	}
	c.verb = words[0]
	words, err := c.parseWhere(words[1:])
	if err != nil {
		return c, fmt.Errorf("%q: %w", s, err)
	}
	switch c.verb {
	case verbCut, verbRestore, verbKill, verbStart:
		if len(words) > 0 {
			return c, fmt.Errorf("%q: unexpected %q", s, words[0])
		}
	case verbSet:
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
		return c, fmt.Errorf("%q: unknown command %q (want cut, restore, set, kill or start)", s, c.verb)
	}
	return c, nil
}

// parseWhere parses what the command is about, and returns the words behind that.
func (c *Change) parseWhere(words []string) ([]string, error) {
	number := func() (int, error) {
		n, err := strconv.Atoi(words[1])
		if err != nil || n < 0 {
			return 0, fmt.Errorf("%s %q is not a number", words[0], words[1])
		}
		return n, nil
	}
	for len(words) > 0 {
		var to *int
		switch words[0] {
		case "lan":
			c.lan, words = true, words[1:]
			continue
		case "wan":
			c.wan = true
			if len(words) == 1 || !isNumber(words[1]) {
				words = words[1:]
				continue
			}
			to = &c.wanNet
		case "net":
			to = &c.net
		case "host":
			to = &c.host
		case "site":
			to = &c.site
		case "gateway":
			to = &c.gateway
		case "to":
			if c.verb != verbSet {
				return words, nil
			}
			to = &c.to
		default:
			return words, nil
		}
		if len(words) == 1 {
			return words, nil
		}
		n, err := number()
		if err != nil {
			return nil, err
		}
		if to != &c.net && to != &c.host && to != &c.to && n == 0 {
			return nil, fmt.Errorf("%s 0: counted from 1", words[0])
		}
		*to, words = n, words[2:]
	}
	return words, nil
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

// Check reports whether the command is one to networks that join all hosts, and fits
// their dimensions.
func (c Change) Check(nets, hosts int) error {
	if c.lan || c.wan || c.site > 0 || c.gateway > 0 || c.verb == verbKill || c.verb == verbStart {
		return fmt.Errorf("%q: there are no sites (want cut, restore or set, with net and host)", c.text)
	}
	if c.net >= nets || c.host >= hosts || c.to >= hosts {
		return fmt.Errorf("%q: there are %d networks and %d hosts, counted from 0", c.text, nets, hosts)
	}
	return nil
}

// Apply carries out a command to networks that join all hosts.
func (c Change) Apply(f *Fabric) error {
	if err := c.Check(f.Nets(), f.Hosts(0)); err != nil {
		return err
	}
	for n := range f.Nets() {
		for h := range f.Hosts(n) {
			if (c.net < 0 || c.net == n) && (c.host < 0 || c.host == h) {
				c.applyTo(f, n, h, c.to)
			}
		}
	}
	return nil
}

// applyTo carries the command out at one port, or for what it sends to one other: to, if
// it is not negative.
func (c Change) applyTo(f *Fabric, net, port, to int) {
	switch {
	case c.verb != verbSet:
		f.SetCut(net, port, c.verb == verbCut)
	case to >= 0:
		f.SetFlowParams(net, port, to, c.change(f.FlowParams(net, port, to)))
	default:
		f.SetParams(net, port, c.change(f.Params(net, port)))
	}
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
