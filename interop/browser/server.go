package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/pion/webrtc/v4"
)

// What the pages together can make the program hold.
const (
	maxPeers       = 8        // pages connected at a time; another one gets 503 Service Unavailable
	maxDescription = 64 << 10 // bytes of an offer or an answer
)

//go:embed web
var webFiles embed.FS

// A server serves the page, and a peer to each page that asks for one.
type server struct {
	loopback bool // peers offer loopback addresses only
	log      *slog.Logger

	mu     sync.Mutex
	peers  map[string]*peer
	making int  // peers for which there is a place, but which are not in peers yet
	closed bool // no more peers
	ended  sync.WaitGroup
}

func newServer(loopback bool, log *slog.Logger) *server {
	return &server{loopback: loopback, log: log, peers: make(map[string]*peer)}
}

// handler returns what the program answers to requests.
func (s *server) handler() http.Handler {
	web, err := fs.Sub(webFiles, "web")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(web))
	mux.HandleFunc("POST /offer", s.handleOffer)
	mux.HandleFunc("POST /invite", s.handleInvite)
	mux.HandleFunc("POST /peers/{id}/answer", s.handleAnswer)
	mux.HandleFunc("POST /peers/{id}/close", s.handleClose)
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.states()) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// With these two the clock of the page has steps of 5 µs instead of 100.
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		w.Header().Set("Cross-Origin-Embedder-Policy", "require-corp")
		w.Header().Set("Content-Security-Policy", "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:")
		w.Header().Set("Cache-Control", "no-cache")
		if origin := r.Header.Get("Origin"); origin != "" && r.Method == http.MethodPost {
			if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
				http.Error(w, fmt.Sprintf("requests from pages of %s are not answered", origin), http.StatusForbidden)
				return
			}
		}
		mux.ServeHTTP(w, r)
	})
}

// A description is what the program and the page exchange over HTTP.
type description struct {
	ID  string                    `json:"id,omitempty"` // of the peer
	SDP webrtc.SessionDescription `json:"sdp"`
}

// handleOffer answers the offer of a page.
func (s *server) handleOffer(w http.ResponseWriter, r *http.Request) {
	d, ok := readDescription(w, r)
	if !ok {
		return
	}
	s.describe(w, r, http.StatusBadRequest, func(ctx context.Context, p *peer) (*webrtc.SessionDescription, error) {
		return p.answer(ctx, d.SDP)
	})
}

// handleInvite makes an offer to a page, which then posts its answer.
func (s *server) handleInvite(w http.ResponseWriter, r *http.Request) {
	s.describe(w, r, http.StatusInternalServerError, func(ctx context.Context, p *peer) (*webrtc.SessionDescription, error) {
		return p.offer(ctx)
	})
}

// describe makes a peer, and replies with the description that f has it make.
func (s *server) describe(w http.ResponseWriter, r *http.Request, status int,
	f func(context.Context, *peer) (*webrtc.SessionDescription, error)) {
	p, err := s.add()
	if errors.Is(err, errFull) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	} else if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	sdp, err := f(r.Context(), p)
	if err != nil {
		p.end(err)
		http.Error(w, err.Error(), status)
		return
	}
	reply(w, description{ID: p.id, SDP: *sdp})
}

// handleAnswer takes the answer of a page to the program's offer.
func (s *server) handleAnswer(w http.ResponseWriter, r *http.Request) {
	p := s.find(w, r)
	if p == nil {
		return
	}
	d, ok := readDescription(w, r)
	if !ok {
		return
	}
	if err := p.pc.SetRemoteDescription(d.SDP); err != nil {
		p.end(err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// handleClose frees the peer of a page that closes.
func (s *server) handleClose(w http.ResponseWriter, r *http.Request) {
	if p := s.find(w, r); p != nil {
		p.end(errPageClosed)
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *server) find(w http.ResponseWriter, r *http.Request) *peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.peers[r.PathValue("id")]
	if p == nil {
		http.Error(w, "no such peer", http.StatusNotFound)
	}
	return p
}

// readDescription reads the body of a request.
func readDescription(w http.ResponseWriter, r *http.Request) (d description, ok bool) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDescription))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		http.Error(w, fmt.Sprintf("a description has at most %d bytes", maxDescription), http.StatusRequestEntityTooLarge)
		return d, false
	}
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return d, false
	}
	return d, true
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

// errFull refuses a page.
var errFull = fmt.Errorf("%d pages are connected: at most %d", maxPeers, maxPeers)

// add makes a peer, and frees its place when it has ended.
func (s *server) add() (*peer, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, http.ErrServerClosed
	}
	if len(s.peers)+s.making >= maxPeers {
		s.mu.Unlock()
		return nil, errFull
	}
	s.making++
	s.ended.Add(1)
	s.mu.Unlock()

	var p *peer
	ready := make(chan struct{})
	p, err := newPeer(s.loopback, func() {
		<-ready
		s.mu.Lock()
		delete(s.peers, p.id)
		s.mu.Unlock()
		s.log.Info("peer ended", "peer", p.id, "after", time.Since(p.started).Round(time.Millisecond), "reason", context.Cause(p.done))
		s.ended.Done()
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making--
	if err != nil {
		s.ended.Done()
		return nil, err
	}
	s.peers[p.id] = p
	if s.closed {
		p.end(http.ErrServerClosed)
	}
	close(ready)
	s.log.Info("peer started", "peer", p.id)
	return p, nil
}

// states returns the states of all peers, the oldest first.
func (s *server) states() []peerState {
	s.mu.Lock()
	peers := make([]*peer, 0, len(s.peers))
	for _, p := range s.peers {
		peers = append(peers, p)
	}
	s.mu.Unlock()
	slices.SortFunc(peers, func(a, b *peer) int { return a.started.Compare(b.started) })
	states := make([]peerState, len(peers))
	for i, p := range peers {
		states[i] = p.state()
	}
	return states
}

// close ends all peers and waits until they are freed.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	for _, p := range s.peers {
		p.end(http.ErrServerClosed)
	}
	s.mu.Unlock()
	s.ended.Wait()
}
