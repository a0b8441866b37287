package pmi

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slowConn is a connection on which each read takes a while. It ends after its bytes, unless stays is set.
type slowConn struct {
	io.Reader
	after time.Duration
	stays chan struct{}
}

func (c *slowConn) Read(b []byte) (int, error) {
	time.Sleep(c.after)
	n, err := c.Reader.Read(b)
	if err == io.EOF && c.stays != nil {
		<-c.stays
	}
	return n, err
}

func (c *slowConn) Write(b []byte) (int, error) { return len(b), nil }
func (c *slowConn) Close() error                { return nil }

// What a rank has said last counts, however late it comes: to be asked when its process has ended.
func TestDrainHearsTheLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(4, "k")
		const hello = "cmd=init pmi_version=1 pmi_subversion=1\n"
		stays := make(chan struct{})
		defer close(stays)
		for rank, c := range []slowConn{
			{strings.NewReader(hello + "cmd=abort exitcode=6\n"), 100 * time.Millisecond, nil},
			{strings.NewReader(hello), 0, stays},
			{strings.NewReader(hello + "cmd=barrier_in\n"), 0, nil},
		} {
			go s.Serve(t.Context(), rank, &c)
		}
		synctest.Wait()
		for rank, want := range []time.Duration{200 * time.Millisecond, time.Second, 0, 0} {
			begin := time.Now()
			s.Drain(rank, time.Second)
			if got := time.Since(begin); got != want {
				t.Errorf("rank %d: drained after %v, want %v", rank, got, want)
			}
			if e := s.AbortReason(); e == nil || e.Code != 6 || e.Rank != 0 {
				t.Errorf("after rank %d: aborted by %+v, want rank 0 with code 6", rank, e)
			}
		}
	})
}
