package mpi

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Info holds hints, as keys and values (MPI-4.1, Chapter 10). It is a map: the language has what
// the standard has functions for.
type Info map[string]string

// Keys returns the keys in order (MPI_Info_get_nthkey).
func (i Info) Keys() []string { return slices.Sorted(maps.Keys(i)) }

// EnvInfo describes how the process was started (MPI_INFO_ENV, MPI_Info_create_env): the keys
// "command", "argv", "arch", "wdir", "host", "thread_level" and, under a launcher, "maxprocs".
func EnvInfo() Info {
	i := Info{
		"command": os.Args[0], "argv": strings.Join(os.Args[1:], " "),
		"arch": runtime.GOOS + "/" + runtime.GOARCH, "thread_level": "MPI_THREAD_MULTIPLE",
	}
	if dir, err := os.Getwd(); err == nil {
		i["wdir"] = dir
	}
	if host, err := os.Hostname(); err == nil {
		i["host"] = host
	}
	if n := os.Getenv("PMI_SIZE"); n != "" {
		i["maxprocs"] = n
	}
	return i
}

// Info keys of communicators (MPI-4.1, Section 7.4.4). The assertions hold for the messages of the
// program, not for collectives. With "true" the program promises to comply; an operation that does
// not returns an error.
const (
	// InfoAllowOvertaking promises that the program does not depend on the order in which messages
	// of different tags are matched. Messages of one tag still arrive in order, those of different
	// tags travel on different streams, and wildcard receives never wait for an earlier message in
	// flight.
	InfoAllowOvertaking = "mpi_assert_allow_overtaking"
	// InfoNoAnyTag promises that AnyTag is not used. Messages then need no
	// place in the order across tags, as with InfoAllowOvertaking.
	InfoNoAnyTag = "mpi_assert_no_any_tag"
	// InfoNoAnySource promises that AnySource is not used.
	InfoNoAnySource = "mpi_assert_no_any_source"
	// InfoExactLength promises that messages are as long as the buffers of the receives that they
	// match. Shorter ones give ErrCount, after their bytes have been stored.
	InfoExactLength = "mpi_assert_exact_length"
	// InfoEager is the eager limit of this communicator, in bytes: see WithEager. With 0 only
	// messages without a body are stored at their receiver before they are matched.
	InfoEager = "weft_eager"
	// InfoStreams is the number of streams that the tags of this communicator are spread over, at
	// most that of WithStreams.
	InfoStreams = "weft_streams"
	// InfoRendezvous is the rendezvous method of messages sent on this communicator:
	// RendezvousMessage, RendezvousWrite or RendezvousRead, see WithRendezvous. Comm.Info returns
	// the method in effect.
	InfoRendezvous = "weft_rendezvous"
)

// readHints puts the info of c into effect. Malformed hints have no effect (MPI-4.1, Chapter 10).
// c.mu is held, or c not yet known to the program.
func (c *Comm) readHints() {
	e, i := c.comm.Engine, c.info
	h := e.DefaultHints()
	h.NoAnyTag, h.NoAnySource = i[InfoNoAnyTag] == "true", i[InfoNoAnySource] == "true"
	h.ExactLength, h.Overtaking = i[InfoExactLength] == "true", i[InfoAllowOvertaking] == "true" || h.NoAnyTag
	if n, err := parseSize(i[InfoEager]); err == nil && n >= 0 && n <= MaxEager {
		h.Eager = n
	}
	if n, err := strconv.ParseUint(i[InfoStreams], 10, 32); err == nil && n >= 1 && n <= uint64(e.Streams) {
		h.Streams = uint32(n)
	}
	if m, ok := parseRendezvous(i[InfoRendezvous]); ok && e.Bulk != nil {
		h.Rendezvous = m
	}
	c.comm.SetHints(h)
}

// checkRecv checks the arguments of receives and probes of the program.
func (c *Comm) checkRecv(src, tag int) error {
	if src != AnySource && tag != AnyTag {
		return checkTag(tag)
	}
	h := c.comm.Hints.Load()
	if src == AnySource && h.NoAnySource {
		return fmt.Errorf("%w: AnySource in spite of %s", ErrRank, InfoNoAnySource)
	}
	if tag != AnyTag {
		return checkTag(tag)
	}
	if h.NoAnyTag {
		return fmt.Errorf("%w: AnyTag in spite of %s", ErrTag, InfoNoAnyTag)
	}
	return nil
}
