package pmi

import (
	"bufio"
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/weftstack/weft/internal/accept"
)

// helloTimeout is the time that a connection has to authenticate.
const helloTimeout = 10 * time.Second

// maxStrangers bounds the connections to ServeListener that have not authenticated.
// A further one closes the oldest. All ranks of a job connect and authenticate at once, so
// the bound is generous.
const maxStrangers = 4096

// ServeListener answers the ranks that connect to l instead of inheriting a
// socket: the manner of PMI_PORT, for systems where descriptors are not
// inherited. Each must present token, and each rank may connect once. It
// returns when l is closed or ctx is done.
func (s *Server) ServeListener(ctx context.Context, l net.Listener, token string) error {
	taken := &claims{taken: make([]bool, s.size)}
	a := accept.Server{MaxUnproven: maxStrangers, ProofTimeout: helloTimeout}
	return a.Serve(ctx, l, func(conn net.Conn, proven func() bool) {
		r := bufio.NewReaderSize(conn, MaxLine)
		rank, err := s.greet(conn, r, token, taken)
		if err != nil || !proven() {
			return // a stranger: the job's ranks have the token
		}
		defer conn.Close()
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		defer stop()
		s.serve(ctx, rank, conn, r)
	})
}

// claims remembers which ranks have connected.
type claims struct {
	mu    sync.Mutex
	taken []bool
}

func (c *claims) claim(rank int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if rank >= len(c.taken) || c.taken[rank] {
		return false
	}
	c.taken[rank] = true
	return true
}

// greet finds out which rank has connected and tells it rank and size.
func (s *Server) greet(w io.Writer, r *bufio.Reader, token string, taken *claims) (int, error) {
	m, err := readMessage(r)
	if err != nil {
		return 0, err
	}
	rank, err := m.number("pmiid")
	if err != nil || m.cmd != "initack" {
		return 0, fmt.Errorf("%w: no initack", ErrProtocol)
	}
	if subtle.ConstantTimeCompare([]byte(m.args["weft_token"]), []byte(token)) != 1 || !taken.claim(rank) {
		io.WriteString(w, "cmd=initack rc=-1\n")
		return 0, fmt.Errorf("%w: rank %d refused", ErrProtocol, rank)
	}
	_, err = fmt.Fprintf(w, "cmd=initack rc=0\ncmd=set size=%d\ncmd=set rank=%d\ncmd=set debug=0\n", s.size, rank)
	return rank, err
}
