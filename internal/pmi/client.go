package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Client is a rank's connection to its launcher. Its methods may be called by
// several goroutines; they run one after the other. Each may block until the
// launcher answers.
type Client struct {
	Rank int // this process's rank, 0 … Size-1
	Size int // number of ranks in the job

	// Spawned is true if another job has spawned this process, and FromEnv made
	// the client.
	Spawned bool

	// Addr is the launcher's host:port if FromEnv has connected to it; else empty.
	Addr string

	// OnOther, if it is set before Watch, is told of deaths in other groups of
	// ranks that the launcher has started: their key-value space, the rank, and
	// why. It is called like the functions given to Watch.
	OnOther func(job string, rank int, why string)

	// OnBlocked, if it is set before Watch, says in a line what this process waits for,
	// and writes the stacks of its goroutines to a file, unless its name is empty. It
	// is called on a goroutine of its own.
	OnBlocked func(stacksTo string) string

	mu       sync.Mutex // serializes request and reply
	conn     io.ReadWriteCloser
	r        *bufio.Reader
	kvs      string // name of the job's key-value space
	keyMax   int
	valueMax int
	err      error // sticky: the connection is unusable

	extended bool          // the launcher is `weft run`
	replies  chan message  // from the goroutine that reads, once there is one
	closed   chan struct{} // tells it that the end of the connection is meant
}

// dial connects over TCP and learns rank and size from the launcher.
func dial(ctx context.Context, addr string, id int, token string) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("pmi: %w", err)
	}
	c := newClient(conn, 0, 0)
	hello := "cmd=initack pmiid=" + strconv.Itoa(id)
	if token != "" {
		hello += " weft_token=" + token
	}
	m, err := c.call(ctx, hello, "initack")
	for _, set := range []struct {
		key string
		to  *int
	}{{"size", &c.Size}, {"rank", &c.Rank}, {"debug", new(int)}} {
		if err == nil {
			m, err = c.call(ctx, "", "set")
		}
		if err == nil {
			*set.to, err = m.number(set.key)
		}
	}
	if err == nil {
		err = c.handshake(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// NewClient starts the protocol on a connection whose other end is a launcher.
// It takes the connection over.
func NewClient(ctx context.Context, conn io.ReadWriteCloser, rank, size int) (*Client, error) {
	c := newClient(conn, rank, size)
	if err := c.handshake(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

func newClient(conn io.ReadWriteCloser, rank, size int) *Client {
	return &Client{Rank: rank, Size: size, conn: conn, r: bufio.NewReaderSize(conn, MaxLine)}
}

// handshake agrees on the version and learns the limits.
func (c *Client) handshake(ctx context.Context) error {
	if c.Size < 1 || c.Rank >= c.Size {
		return fmt.Errorf("pmi: rank %d of %d", c.Rank, c.Size)
	}
	if _, err := c.call(ctx, "cmd=init pmi_version=1 pmi_subversion=1", "response_to_init"); err != nil {
		return err
	}
	m, err := c.call(ctx, "cmd=get_maxes", "maxes")
	if err != nil {
		return err
	}
	if c.keyMax, err = m.number("keylen_max"); err != nil {
		return err
	}
	if c.valueMax, err = m.number("vallen_max"); err != nil {
		return err
	}
	c.valueMax = min(c.valueMax, MaxLine/2)
	if m, err = c.call(ctx, "cmd=get_my_kvsname", "my_kvsname"); err != nil {
		return err
	}
	c.kvs = m.args["kvsname"]
	c.extended = c.kvs != "" && os.Getenv(EnvWatch) == c.kvs
	return nil
}

// call sends one line, unless it is empty, and reads the reply, whose command
// must be want.
func (c *Client) call(ctx context.Context, line, want string) (message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return message{}, c.err
	}
	m, err := c.exchange(ctx, line, want)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		c.err = fmt.Errorf("pmi: connection to the launcher: %w", err)
		return message{}, c.err
	}
	return m, m.fail()
}

func (c *Client) exchange(ctx context.Context, line, want string) (message, error) {
	if err := ctx.Err(); err != nil {
		return message{}, err
	}
	if d, ok := c.conn.(interface{ SetDeadline(time.Time) error }); ok && c.replies == nil {
		stop := context.AfterFunc(ctx, func() { d.SetDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	if line != "" {
		if _, err := io.WriteString(c.conn, line+"\n"); err != nil {
			return message{}, err
		}
	}
	m, err := c.reply(ctx)
	switch {
	case errors.Is(err, io.EOF):
		return message{}, errors.New("closed")
	case err != nil:
		return message{}, err
	case m.cmd != want:
		return message{}, fmt.Errorf("%w: %q in reply, want %q", ErrProtocol, clip(m.cmd), want)
	}
	return m, nil
}

// reply returns the next line that is an answer.
func (c *Client) reply(ctx context.Context) (message, error) {
	if c.replies == nil {
		return readMessage(c.r)
	}
	select {
	case m, ok := <-c.replies:
		if !ok {
			return m, io.EOF
		}
		return m, nil
	case <-ctx.Done():
		return message{}, ctx.Err()
	}
}

// Put stores value, any bytes up to MaxValue, under key in the job's key-value
// space. Others may read it after the next Barrier.
func (c *Client) Put(ctx context.Context, key, value string) error {
	parts, err := encodeValue(value, c.valueMax)
	if err != nil {
		return err
	}
	if key == "" || strings.ContainsAny(key, " =\n\r") || len(partKey(key, len(parts)-1)) > c.keyMax {
		return fmt.Errorf("pmi: key %q is unfit", clip(key))
	}
	for i, part := range parts {
		line := "cmd=put kvsname=" + c.kvs + " key=" + partKey(key, i) + " value=" + part
		if _, err := c.call(ctx, line, "put_result"); err != nil {
			return err
		}
	}
	return nil
}

// Get returns what some rank Put under key.
func (c *Client) Get(ctx context.Context, key string) (string, error) {
	first, err := c.get(ctx, key)
	if err != nil {
		return "", err
	}
	n, text, err := splitCount(first)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(text)
	for i := 1; i < n; i++ {
		part, err := c.get(ctx, partKey(key, i))
		if err != nil {
			return "", err
		}
		if b.WriteString(part); b.Len() > 2*MaxValue {
			return "", fmt.Errorf("%w: stored value of %q is longer than %d bytes", ErrProtocol, key, MaxValue)
		}
	}
	value, err := valueCode.DecodeString(b.String())
	if err != nil {
		return "", fmt.Errorf("%w: stored value of %q: %w", ErrProtocol, key, err)
	}
	return string(value), nil
}

func (c *Client) get(ctx context.Context, key string) (string, error) {
	m, err := c.call(ctx, "cmd=get kvsname="+c.kvs+" key="+key, "get_result")
	if err != nil {
		return "", fmt.Errorf("key %q: %w", key, err)
	}
	return m.args["value"], nil
}

// Barrier blocks until every rank of the job has called it. All ranks can then read what
// was Put before.
func (c *Client) Barrier(ctx context.Context) error {
	_, err := c.call(ctx, "cmd=barrier_in", "barrier_out")
	return err
}

// Abort requests the end of the whole job with the given exit code, or with 1 if the low eight
// bits of that, which are all that an exit status has, are 0. msg is shown to the user by
// `weft run`; other launchers ignore it.
func (c *Client) Abort(code int, msg string) error {
	code = failure(code)
	c.mu.Lock()
	defer c.mu.Unlock()
	line := "cmd=abort exitcode=" + strconv.Itoa(code)
	if msg = oneLine(msg); msg != "" {
		line += " " + textKey + "=" + msg
	}
	_, err := io.WriteString(c.conn, line+"\n")
	return err
}

// oneLine makes msg fit the last field of a line.
func oneLine(msg string) string {
	msg = strings.Join(strings.Fields(msg), " ")
	return msg[:min(len(msg), MaxLine/2)]
}

// Finalize tells the launcher that the process ends and closes the connection. A process
// that exits without Finalize counts as failed and ends the job.
func (c *Client) Finalize(ctx context.Context) error {
	_, err := c.call(ctx, "cmd=finalize", "finalize_ack")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = net.ErrClosed
	}
	if c.closed != nil {
		close(c.closed)
		c.closed = nil // a second call must not close it again
	}
	return errors.Join(err, c.conn.Close())
}

// JobName returns the name that the launcher gives the job, the same for all its processes and for no other job, and an
// empty one for a nil Client.
func (c *Client) JobName() string {
	if c == nil {
		return ""
	}
	return c.kvs
}
