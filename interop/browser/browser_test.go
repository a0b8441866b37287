//go:build !windows

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// scenario runs a function of testdata/scenarios.js in a tab, and logs what it returns.
func (tb *tab) scenario(t *testing.T, ctx context.Context, name string, args ...any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(append([]any{}, args...))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var result json.RawMessage
	if err := tb.eval(ctx, fmt.Sprintf("scenarios.%s(...%s)", name, b), &result); err != nil {
		stacks := make([]byte, 1<<20)
		t.Fatalf("%s%s: %v\nThe program:\n%s", name, b, err, stacks[:runtime.Stack(stacks, true)])
	}
	t.Logf("%s%s: %s in %v", name, b, result, time.Since(start).Round(time.Millisecond))
	return result
}

// openScenarios opens the page in a new tab, with the scenarios but without a connection.
func openScenarios(t *testing.T, ctx context.Context, c *chromium, p *program) *tab {
	t.Helper()
	script, err := os.ReadFile(filepath.Join("testdata", "scenarios.js"))
	if err != nil {
		t.Fatal(err)
	}
	tb, err := c.open(ctx, p.url+"/?wait")
	if err != nil {
		t.Fatal(err)
	}
	if err := tb.eval(ctx, string(script)+";0", nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		tb.close(ctx)
	})
	return tb
}

type object = map[string]any

// TestChromium has Chromium use data channels in every way. The tests share one Chromium; each has its own program
// and tab.
func TestChromium(t *testing.T) {
	c := startChromium(t)
	reliable, unordered := object{}, object{"ordered": false}
	tests := []struct {
		name  string
		limit time.Duration
		run   func(t *testing.T, ctx context.Context, tb *tab, offerBy string)
	}{
		{"echo", 30 * time.Second, func(t *testing.T, ctx context.Context, tb *tab, offerBy string) {
			tb.scenario(t, ctx, "echo", offerBy, true)
			tb.scenario(t, ctx, "echo", offerBy, false)
			tb.scenario(t, ctx, "random", offerBy, 100)
		}},
		{"bulk", 60 * time.Second, func(t *testing.T, ctx context.Context, tb *tab, offerBy string) {
			tb.scenario(t, ctx, "bulk", offerBy, reliable, 1, 1, 5000, false)
			tb.scenario(t, ctx, "bulk", offerBy, reliable, 1, 1200, 5000, false)
			tb.scenario(t, ctx, "bulk", offerBy, reliable, 8, 16<<10, 100, true)
			tb.scenario(t, ctx, "bulk", offerBy, reliable, 2, 256<<10, 40, false)
			tb.scenario(t, ctx, "bulk", offerBy, unordered, 2, 4000, 2000, false)
		}},
		{"reset", 60 * time.Second, func(t *testing.T, ctx context.Context, tb *tab, offerBy string) {
			tb.scenario(t, ctx, "reset", offerBy, 10)
			tb.scenario(t, ctx, "programOpens", offerBy, 50)
		}},
		{"partial", 90 * time.Second, func(t *testing.T, ctx context.Context, tb *tab, offerBy string) {
			if !weftBelow() {
				t.Skip("pion/sctp may stand still for good on a path that loses packets")
			}
			tb.scenario(t, ctx, "partial", offerBy, 5, 300, 1000)
		}},
		{"negotiated", 20 * time.Second, func(t *testing.T, ctx context.Context, tb *tab, offerBy string) {
			tb.scenario(t, ctx, "negotiated", offerBy)
		}},
		{"limits", 20 * time.Second, func(t *testing.T, ctx context.Context, tb *tab, offerBy string) {
			tb.scenario(t, ctx, "maxMessageSize", offerBy)
			if offerBy == "browser" {
				tb.scenario(t, ctx, "lowLimit")
			}
		}},
	}
	for _, test := range tests {
		for _, offerBy := range []string{"browser", "program"} {
			t.Run(test.name+"/offer="+offerBy, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.limit)
				defer cancel()
				p := startProgram(t)
				test.run(t, ctx, openScenarios(t, ctx, c, p), offerBy)
				p.wantNoPeers(t, 5*time.Second)
			})
		}
	}
	t.Run("handshakes", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		p := startProgram(t)
		openScenarios(t, ctx, c, p).scenario(t, ctx, "handshakes", 100, 4)
		p.wantNoPeers(t, 5*time.Second)
	})
	t.Run("places", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p := startProgram(t)
		tb := openScenarios(t, ctx, c, p)
		tb.scenario(t, ctx, "places", maxPeers)
		// Without a word to the program, as when the browser is killed.
		if err := tb.eval(ctx, `navigator.sendBeacon = () => true; 0`, nil); err != nil {
			t.Fatal(err)
		}
		if err := tb.close(ctx); err != nil {
			t.Fatal(err)
		}
		p.wantNoPeers(t, lostTimeout+10*time.Second)
		stacks := make([]byte, 1<<20)
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			s := string(stacks[:runtime.Stack(stacks, true)])
			if !strings.Contains(s, "github.com/pion/") && !strings.Contains(s, "weft/sctp") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("goroutines of peers are left:\n%s", s)
			}
		}
	})
	t.Run("page", func(t *testing.T) { testPage(t, c) })
}

// testPage uses the page as its user does. With WEFT_SCREENSHOTS set to a folder it leaves pictures of the page
// there.
func testPage(t *testing.T, c *chromium) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := startProgram(t)
	tb, err := c.open(ctx, p.url)
	if err != nil {
		t.Fatal(err)
	}
	run := func(script string) {
		t.Helper()
		if err := tb.eval(ctx, script, nil); err != nil {
			t.Fatalf("%s: %v", script, err)
		}
	}
	// wait waits until an expression is true.
	wait := func(expression string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			var ok bool
			err := tb.eval(ctx, "!!("+expression+")", &ok)
			if err == nil && ok {
				return
			}
			if time.Now().After(end) {
				var page string
				tb.eval(ctx, "document.body.innerText", &page)
				t.Fatalf("%s: not true within 20s (%v); the page says:\n%s", expression, err, page)
			}
		}
	}
	picture := func(name string) {
		t.Helper()
		if dir := os.Getenv("WEFT_SCREENSHOTS"); dir != "" {
			time.Sleep(12 * time.Second) // charts with something to see
			if err := tb.screenshot(ctx, filepath.Join(dir, name+".png")); err != nil {
				t.Error(err)
			}
		}
	}
	run(`window.problems = []; window.onerror = (m) => problems.push(m); window.onunhandledrejection = (e) => problems.push(String(e.reason)); 0`)
	wait(`$('status').textContent === 'connected'`)
	run(`$('count').value = 2; $('start').click()`)
	rate := func(id string) string {
		return fmt.Sprintf(`parseFloat($('%s').textContent.replace(/,/g, '')) > 0`, id)
	}
	wait(rate("upNow"))
	wait(rate("downNow"))
	wait(rate("p50Now"))
	wait(rate("p99Now"))
	wait(`$('channels').tBodies[0].rows.length === 2`)
	wait(`$('program').innerText.includes('connected')`)
	if weftBelow() {
		wait(`ui.state.sctp.weft.ChunksSent > 0 && /chunks sent, sent again\s+[1-9]/.test($('program').innerText)`)
	}
	wait(`$('browser').innerText.includes('DTLS') && !$('browser').innerText.includes('undefined')`)
	picture("both-ways")
	// With pion/sctp ordered channels stand still beside unordered ones, and all when one gives up messages.
	if weftBelow() {
		run(`$('reliability').value = 'maxRetransmits'; $('reliability').onchange(); $('order').value = 'unordered'`)
	}
	run(`$('start').click()`)
	wait(`$('channels').tBodies[0].rows.length === 4`)
	if weftBelow() {
		run(`$('loss').value = 3; $('loss').oninput()`)
		wait(rate("lostNow"))
		picture("loss")
		run(`$('loss').value = 0; $('loss').oninput()`)
	}
	run(`[...$('channels').querySelectorAll('button')].find((b) => b.textContent === 'reset there').click()`)
	run(`[...$('channels').querySelectorAll('button')].reverse().find((b) => b.textContent === 'reset here').click()`)
	wait(`[...$('channels').tBodies[0].rows].filter((r) => r.innerText.includes('closed')).length === 2`)
	run(`$('stop').click()`)
	wait(`[...$('channels').tBodies[0].rows].filter((r) => r.innerText.includes('closed')).length === 4`)
	picture("stopped")
	var problems []string
	if err := tb.eval(ctx, `[...problems, $('message').textContent].filter((p) => p)`, &problems); err != nil || len(problems) > 0 {
		t.Errorf("the page reports problems: %q, %v", problems, err)
	}
	// A page that closes tells the program.
	if err := tb.eval(ctx, `location.href = 'about:blank'; 0`, nil); err != nil {
		t.Fatal(err)
	}
	p.wantNoPeers(t, 5*time.Second)
	io.WriteString(testLog{t}, "the peer is freed")
}
