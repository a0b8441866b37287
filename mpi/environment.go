package mpi

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/mpi/internal/bridge"
	"github.com/weftstack/weft/mpi/internal/job"
)

// fromProcess sets the options that the environment of the process asks for.
func fromProcess(o *options) error { return o.fromEnv(os.Getenv) }

func init() {
	bridge.ParseSize = parseSize
	bridge.CheckOption = func(name, value string) error {
		if name == TuningEnv {
			_, err := ParseTuning(value)
			return err
		}
		return new(options).fromEnv(func(n string) string {
			if n == name {
				return value
			}
			return ""
		})
	}
}

// badVariable returns the error of an environment variable with a value that it does not take.
func badVariable(name, value, want string) error {
	return fmt.Errorf("%w: %s=%q: want %s", ErrOption, name, value, want)
}

// fromEnv reads the WEFT_ variables described in the package documentation.
func (o *options) fromEnv(getenv func(string) string) error {
	if s := getenv("WEFT_TRANSPORT"); s != "" {
		if err := WithTransport(s)(o); err != nil || s == TransportInproc {
			return badVariable("WEFT_TRANSPORT", s, "hybrid, sctp or tcp")
		}
	}
	for _, v := range []struct {
		name string
		set  func(int) Option
		want string
	}{
		{"WEFT_EAGER", WithEager, "a number of bytes, such as 64K"},
		{"WEFT_STREAMS", WithStreams, "1 to " + strconv.Itoa(MaxStreams)},
		{"WEFT_UNEXPECTED", WithUnexpected, "a number of bytes, such as 64M"},
	} {
		s := getenv(v.name)
		if s == "" {
			continue
		}
		n, err := parseSize(s)
		if err == nil {
			err = v.set(n)(o)
		}
		if err != nil {
			return badVariable(v.name, s, v.want)
		}
	}
	if s := getenv("WEFT_RENDEZVOUS"); s != "" {
		if err := WithRendezvous(s)(o); err != nil {
			return badVariable("WEFT_RENDEZVOUS", s, "message, write or read")
		}
	}
	if s := getenv("WEFT_SPIN"); s != "" {
		d, err := time.ParseDuration(s)
		if err == nil {
			err = WithSpin(d)(o)
		}
		if err != nil {
			return badVariable("WEFT_SPIN", s, "0 or a time, such as 50us")
		}
	}
	if s := getenv("WEFT_ADDRS"); s != "" {
		for part := range strings.SplitSeq(s, ",") {
			ap, err := parseAddrPort(part)
			if err != nil {
				return badVariable("WEFT_ADDRS", s, "IP addresses of this host, with ports or not, separated by commas")
			}
			o.Addrs = append(o.Addrs, ap)
		}
	}
	switch s := getenv("WEFT_SHARED"); s {
	case "", "1":
		o.Shared = true
	case "0":
	default:
		return badVariable("WEFT_SHARED", s, "0 or 1")
	}
	if s := getenv("WEFT_SITE"); s != "" {
		if err := job.CheckSite(s); err != nil {
			return fmt.Errorf("%w (WEFT_SITE)", err)
		}
		o.SiteOf = func(int) string { return s }
	}
	o.names = getenv(pmi.EnvNames)
	o.Capture = getenv("WEFT_CAPTURE")
	switch s := getenv("WEFT_FT"); s {
	case "", "0":
	case "1":
		o.Tolerant = true
	default:
		return badVariable("WEFT_FT", s, "0 or 1")
	}
	if s := getenv("WEFT_SILENCE"); s != "" {
		d, err := time.ParseDuration(s)
		if err == nil {
			err = WithSilence(d)(o)
		}
		if err != nil {
			return badVariable("WEFT_SILENCE", s, "a time, such as 1m")
		}
	}
	return o.toolsFromEnv(getenv)
}
