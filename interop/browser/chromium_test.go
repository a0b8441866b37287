//go:build !windows

package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startLimit bounds the start of Chromium.
const startLimit = 60 * time.Second

// A chromium is a headless Chromium of the test, driven by the DevTools protocol over a pair of pipes.
type chromium struct {
	cmd *exec.Cmd
	out *os.File // requests, each ended by a zero byte

	mu      sync.Mutex
	number  int
	waiting map[int]chan devtoolsReply
	err     error // why the pipe has ended
}

type devtoolsReply struct {
	ID        int             `json:"id"`
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
	SessionID string          `json:"sessionId"`
	Result    json.RawMessage `json:"result"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// findChromium returns the program, or skips the test.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const lacking = "no chromium, chromium-browser or google-chrome in the path: on Debian, apt-get install chromium"
	if os.Getenv("WEFT_INTEROP") == "require" {
		t.Fatal(lacking)
	}
	t.Skip(lacking)
	return ""
}

// startChromium starts a Chromium with an empty profile, which ends with the test.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	path := findChromium(t)
	profile, err := os.MkdirTemp("", "weft-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	fromUs, toIt := pipe(t)
	fromIt, toUs := pipe(t)
	cmd := exec.Command(path,
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage",
		"--no-first-run", "--no-default-browser-check", "--disable-extensions",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
		"--disable-background-timer-throttling", "--disable-renderer-backgrounding",
		"--disable-features=WebRtcHideLocalIpsWithMdns,OptimizationHints,MediaRouter,Translate",
		"--allow-loopback-in-peer-connection",
		"--window-size=1400,1500", "--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{fromUs, toUs} // 3 and 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var log tail
	cmd.Stderr = &log
	cmd.WaitDelay = 5 * time.Second // for children that keep the standard error open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fromUs.Close()
	toUs.Close()
	c := &chromium{cmd: cmd, out: toIt, waiting: make(map[int]chan devtoolsReply)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		c.readLoop(fromIt)
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		c.call(ctx, "", "Browser.close", nil, nil) // its children end with it
		done := make(chan struct{})
		go func() {
			cmd.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-ctx.Done():
			t.Log("Chromium does not close: killed")
		}
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the group of processes that the test started
		<-done
		toIt.Close()
		fromIt.Close()
		<-read
		if t.Failed() {
			t.Logf("Chromium says:\n%s", log.String())
		}
		// Children may write to the profile until they have gone.
		for range 50 {
			if os.RemoveAll(profile) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	var version struct{ Product string }
	if err := c.call(ctx, "", "Browser.getVersion", nil, &version); err != nil {
		t.Fatalf("Chromium does not start: %v\n%s", err, log.String())
	}
	t.Logf("%s, process %d", version.Product, cmd.Process.Pid)
	return c
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// tail keeps the last bytes that are written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if n := len(t.b) - 8<<10; n > 0 {
		t.b = t.b[n:]
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

func (c *chromium) readLoop(r io.Reader) {
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		b, err := in.ReadBytes(0)
		if err != nil {
			c.fail(fmt.Errorf("Chromium has ended: %w", err))
			return
		}
		var m devtoolsReply
		if err := json.Unmarshal(b[:len(b)-1], &m); err != nil {
			c.fail(err)
			return
		}
		if m.ID == 0 {
			continue // an event
		}
		c.mu.Lock()
		ch := c.waiting[m.ID]
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		if ch != nil {
			ch <- m
		}
	}
}

func (c *chromium) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	for _, ch := range c.waiting {
		close(ch)
	}
	c.waiting = nil
}

// call makes a request of the DevTools protocol.
func (c *chromium) call(ctx context.Context, session, method string, params, result any) error {
	ch := make(chan devtoolsReply, 1)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return c.err
	}
	c.number++
	number := c.number
	c.waiting[number] = ch
	c.mu.Unlock()
	b, err := json.Marshal(struct {
		ID        int    `json:"id"`
		Method    string `json:"method"`
		Params    any    `json:"params,omitempty"`
		SessionID string `json:"sessionId,omitempty"`
	}{number, method, params, session})
	if err != nil {
		return err
	}
	if _, err := c.out.Write(append(b, 0)); err != nil {
		return err
	}
	select {
	case m, ok := <-ch:
		switch {
		case !ok:
			return errors.New("Chromium has ended")
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		case result != nil:
			return json.Unmarshal(m.Result, result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// A tab is a page in Chromium.
type tab struct {
	c       *chromium
	target  string
	session string
}

// open opens a page in a new tab, and waits until its script has run.
func (c *chromium) open(ctx context.Context, url string) (*tab, error) {
	var target struct{ TargetID string }
	if err := c.call(ctx, "", "Target.createTarget", map[string]any{"url": url}, &target); err != nil {
		return nil, err
	}
	var session struct{ SessionID string }
	if err := c.call(ctx, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session); err != nil {
		return nil, err
	}
	tb := &tab{c: c, target: target.TargetID, session: session.SessionID}
	for {
		var ready bool
		err := tb.eval(ctx, `document.readyState === "complete" && location.href !== "about:blank"`, &ready)
		if err == nil && ready {
			return tb, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %w (%v)", url, ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// eval runs JavaScript in the page, waits for its promise if it returns one, and stores the value in result.
func (t *tab) eval(ctx context.Context, script string, result any) error {
	var r struct {
		Result struct {
			Value json.RawMessage
		}
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	err := t.c.call(ctx, t.session, "Runtime.evaluate", map[string]any{
		"expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true,
	}, &r)
	if err != nil {
		return err
	}
	if e := r.ExceptionDetails; e != nil {
		return errors.New(strings.TrimSpace(e.Text + " " + e.Exception.Description))
	}
	if result == nil || r.Result.Value == nil {
		return nil
	}
	return json.Unmarshal(r.Result.Value, result)
}

// screenshot writes what the page looks like to a PNG file.
func (t *tab) screenshot(ctx context.Context, file string) error {
	var r struct{ Data string }
	if err := t.c.call(ctx, t.session, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &r); err != nil {
		return err
	}
	b, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}

// close closes the tab.
func (t *tab) close(ctx context.Context) error {
	return t.c.call(ctx, "", "Target.closeTarget", map[string]any{"targetId": t.target}, nil)
}
