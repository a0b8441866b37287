package job

import (
	"context"
	"log/slog"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Record logs an event, if there is a logger. Callers hold no lock, and are on no path of
// messages.
func (j *Job) Record(level slog.Level, event string, attrs ...slog.Attr) {
	if j.Log != nil {
		j.Log.LogAttrs(context.Background(), level, "mpi: "+event, attrs...)
	}
}

// recordPeer logs an event about a peer.
func (j *Job) recordPeer(level slog.Level, event string, p *p2p.Peer, attrs ...slog.Attr) {
	if j.Log == nil {
		return
	}
	about := []slog.Attr{slog.Int("peer", p.Rank)}
	if p.Remote != nil { // its rank is that in its own job
		about = append(about, slog.String("peer_job", jobName(p)))
	}
	j.Record(level, event, append(about, attrs...)...)
}

// jobName names the job of a remote process: as its launcher does, or by its address.
func jobName(p *p2p.Peer) string {
	if p.Remote.LauncherName != "" {
		return p.Remote.LauncherName
	}
	return p.Remote.Addr
}

// Cause is the attribute of an error.
func Cause(err error) slog.Attr {
	if err == nil {
		return slog.Attr{} // handlers ignore it
	}
	return slog.String("error", err.Error())
}
