package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A program is the server of this program, as a test runs it.
type program struct {
	*server
	url string
}

func startProgram(t *testing.T) *program {
	t.Helper()
	s := newServer(true, slog.New(slog.NewTextHandler(testLog{t}, nil)))
	h := httptest.NewServer(s.handler())
	t.Cleanup(func() {
		h.Close()
		s.close()
	})
	return &program{s, h.URL}
}

type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// wantNoPeers waits until the program has freed all peers.
func (p *program) wantNoPeers(t *testing.T, within time.Duration) {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		states := p.states()
		if len(states) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d peers still there after %v: %+v", len(states), within, states)
		}
	}
}

// post makes a request, and returns status and body.
func (p *program) post(t *testing.T, path, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestRequests makes requests that the program refuses. None leaves a peer behind.
func TestRequests(t *testing.T) {
	p := startProgram(t)
	for _, test := range []struct {
		name, path, body string
		header           []string
		status           int
		says             string
	}{
		{"not JSON", "/offer", "v=0", nil, http.StatusBadRequest, "invalid"},
		{"no description", "/offer", "{}", nil, http.StatusBadRequest, ""},
		{"no SDP", "/offer", `{"sdp":{"type":"offer","sdp":"v=1"}}`, nil, http.StatusBadRequest, ""},
		{"an answer", "/offer", `{"sdp":{"type":"answer","sdp":"v=0\r\n"}}`, nil, http.StatusBadRequest, ""},
		{"too long", "/offer", strings.Repeat(" ", maxDescription+1), nil, http.StatusRequestEntityTooLarge, "at most 65536 bytes"},
		{"another site", "/invite", "", []string{"Origin", "http://elsewhere.example"}, http.StatusForbidden, "elsewhere.example"},
		{"unknown peer", "/peers/x/answer", "{}", nil, http.StatusNotFound, "no such peer"},
		{"unknown peer", "/peers/x/close", "", nil, http.StatusNotFound, "no such peer"},
		{"unknown path", "/offers", "", nil, http.StatusMethodNotAllowed, ""},
	} {
		if status, body := p.post(t, test.path, test.body, test.header...); status != test.status || !strings.Contains(body, test.says) {
			t.Errorf("%s: status %d, %q; want %d, %q", test.name, status, body, test.status, test.says)
		}
	}
	p.wantNoPeers(t, 5*time.Second)
}

// TestPlaces invites as many peers as there are places for, and one more; a place is free again when its peer has
// ended.
func TestPlaces(t *testing.T) {
	p := startProgram(t)
	invite := func() (int, description) {
		t.Helper()
		status, body := p.post(t, "/invite", "")
		var d description
		if status == http.StatusOK {
			if err := json.Unmarshal([]byte(body), &d); err != nil {
				t.Fatal(err)
			}
		}
		return status, d
	}
	var last description
	for range maxPeers {
		status, d := invite()
		if status != http.StatusOK {
			t.Fatalf("status %d for an invitation within the limit of %d", status, maxPeers)
		}
		last = d
	}
	if status, _ := invite(); status != http.StatusServiceUnavailable {
		t.Errorf("status %d for one invitation more than %d, want %d", status, maxPeers, http.StatusServiceUnavailable)
	}
	if status, body := p.post(t, "/peers/"+last.ID+"/answer", `{"sdp":{"type":"answer","sdp":"nonsense"}}`); status != http.StatusBadRequest {
		t.Errorf("status %d, %q for an answer that is no SDP, want %d", status, body, http.StatusBadRequest)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if status, _ := invite(); status == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the place of a peer that has ended is not free after 5s")
		}
	}
	p.server.close()
	p.wantNoPeers(t, 0)
	if status, _ := invite(); status != http.StatusInternalServerError {
		t.Errorf("status %d for an invitation after the end, want %d", status, http.StatusInternalServerError)
	}
}
