package mpi

import (
	"fmt"
	"os"
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

// fromEnv reads the WEFT_ variables described in the package documentation.
func (o *options) fromEnv(getenv func(string) string) error {
	if s := getenv("WEFT_TRANSPORT"); s != "" {
		if err := WithTransport(s)(o); err != nil || s == TransportInproc {
			return fmt.Errorf("%w: WEFT_TRANSPORT=%q", ErrOption, s)
		}
	}
	for _, v := range []struct {
		name string
		set  func(int) Option
	}{{"WEFT_EAGER", WithEager}, {"WEFT_STREAMS", WithStreams}, {"WEFT_UNEXPECTED", WithUnexpected}} {
		s := getenv(v.name)
		if s == "" {
			continue
		}
		n, err := parseSize(s)
		if err == nil {
			err = v.set(n)(o)
		}
		if err != nil {
			return fmt.Errorf("%w: %s=%q", ErrOption, v.name, s)
		}
	}
	if s := getenv("WEFT_RENDEZVOUS"); s != "" {
		if err := WithRendezvous(s)(o); err != nil {
			return fmt.Errorf("%w: WEFT_RENDEZVOUS=%q", ErrOption, s)
		}
	}
	if s := getenv("WEFT_SPIN"); s != "" {
		d, err := time.ParseDuration(s)
		if err == nil {
			err = WithSpin(d)(o)
		}
		if err != nil {
			return fmt.Errorf("%w: WEFT_SPIN=%q", ErrOption, s)
		}
	}
	if s := getenv("WEFT_ADDRS"); s != "" {
		for part := range strings.SplitSeq(s, ",") {
			ap, err := parseAddrPort(part)
			if err != nil {
				return fmt.Errorf("%w: WEFT_ADDRS=%q", ErrOption, s)
			}
			o.Addrs = append(o.Addrs, ap)
		}
	}
	switch s := getenv("WEFT_SHARED"); s {
	case "", "1":
		o.Shared = true
	case "0":
	default:
		return fmt.Errorf("%w: WEFT_SHARED=%q", ErrOption, s)
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
		return fmt.Errorf("%w: WEFT_FT=%q", ErrOption, s)
	}
	if s := getenv("WEFT_SILENCE"); s != "" {
		d, err := time.ParseDuration(s)
		if err == nil {
			err = WithSilence(d)(o)
		}
		if err != nil {
			return fmt.Errorf("%w: WEFT_SILENCE=%q", ErrOption, s)
		}
	}
	return o.toolsFromEnv(getenv)
}
