package job

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/weftstack/weft/mpi/internal/cpuset"
	"github.com/weftstack/weft/mpi/internal/hashid"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport/shm"
)

// Join exchanges addresses with the other ranks and connects to them over t. It calls up when the links of this rank
// are up, and returns when those of all ranks are.
func (j *Job) Join(ctx context.Context, t Transport, up func()) error {
	j.Transport = t
	if err := CheckSite(j.Site()); err != nil {
		return err
	}
	own := businessCard{Transport: j.Options.Transport, Host: j.host(), Streams: j.Options.Streams,
		Window: j.Engine.Window, Addr: t.Addr(), CPUs: cpuset.Allowed(),
		Site: j.Site()}
	if j.Options.Shares() && j.Size() > 1 {
		if j.Shared = shm.New(&j.Engine.Progress.Spinning); j.Shared != nil {
			own.Memory = &j.Shared.Segment
			defer j.Shared.Close() // once the others have mapped it
		}
	}
	key, err := j.publish(ctx, &own)
	if err != nil {
		return err
	}
	j.Engine.SetJob(hashid.Of("job", key))
	addrs := make([]string, j.Size())
	memory := make([]*shm.Segment, j.Size())
	var local []cpuset.Set
	for r, p := range j.Engine.Peers {
		c, err := j.readCard(ctx, r, &own)
		if err != nil {
			return err
		}
		p.Credit.Store(min(c.Window, p2p.MaxCredit))
		p.Host, p.Site = colorOf(c.Host), c.Site
		if c.Host == own.Host {
			memory[r] = c.Memory
			local = append(local, c.CPUs)
		}
		addrs[r] = c.Addr
	}
	crowded := cpuset.Crowded(own.CPUs, local, runtime.GOMAXPROCS(0))
	j.setSpin(crowded, t)
	if err := t.Connect(ctx, addrs, []byte(key)); err != nil {
		return err
	}
	if j.Shared != nil {
		j.Shared.Connect(j.Engine, memory)
		if j.Shared.All(j.Size()) && j.Options.Spin == SpinAuto {
			j.spinAlways(crowded)
		}
	}
	go j.FT.run()
	j.joined.Store(true)
	j.recordJoined()
	up()
	return j.Launcher.Barrier(ctx)
}

// publish gives the launcher the business card of this rank, and returns the key of the job once all ranks have done
// so.
func (j *Job) publish(ctx context.Context, own *businessCard) (key string, err error) {
	if j.Rank() == 0 {
		if err := j.Launcher.Put(ctx, jobKeyName, newJobKey()); err != nil {
			return "", err
		}
	}
	if err := j.Launcher.Put(ctx, businessCardKey(j.Rank()), own.String()); err != nil {
		return "", err
	}
	if err := j.Launcher.Barrier(ctx); err != nil {
		return "", err
	}
	return j.Launcher.Get(ctx, jobKeyName)
}

// readCard returns the business card of a rank, which must agree with own in the options.
func (j *Job) readCard(ctx context.Context, rank int, own *businessCard) (businessCard, error) {
	s, err := j.Launcher.Get(ctx, businessCardKey(rank))
	if err != nil {
		return businessCard{}, err
	}
	c, err := parseBusinessCard(s)
	if err != nil {
		return c, fmt.Errorf("mpi: business card of rank %d: %w", rank, err)
	}
	if c.Transport != own.Transport || c.Streams != own.Streams {
		return c, fmt.Errorf("%w: rank %d uses %s with %d streams, rank %d %s with %d",
			mpierr.ErrOption, j.Rank(), own.Transport, own.Streams, rank, c.Transport, c.Streams)
	}
	if err := CheckSite(c.Site); err != nil {
		return c, fmt.Errorf("mpi: business card of rank %d: %w", rank, err)
	}
	return c, nil
}

// setSpin decides how long waiting goroutines poll, and whether they yield the processor to other
// processes meanwhile, as when there are more ranks than processors. Ranks of one process that outnumber its
// processors do not poll: goroutines would wait for them.
func (j *Job) setSpin(crowded bool, t Transport) {
	spin := j.Options.Spin
	yields, lease := spin == SpinAuto && crowded && !j.Options.Local, time.Duration(0)
	if yields {
		lease = shm.CrowdedLease
	}
	if spin == SpinAuto {
		spin = p2p.DefaultSpin
		if crowded {
			spin = 0
		}
	}
	poll, park := t.Polling(spin > 0, lease)
	if b := j.Engine.Bulk; b != nil && poll != nil {
		base := poll
		poll = func() bool {
			worked := base()
			return b.Poll() || worked
		}
	}
	if j.Shared != nil && poll != nil {
		poll = j.Shared.Polling(poll)
		j.Engine.Progress.Observer = j.Shared
	}
	j.Engine.Progress.BacksOff = j.Shared == nil // which backs off itself
	j.Engine.Progress.Init(poll, spin)
	if yields && poll != nil {
		j.spinAlways(true)
	}
	j.Engine.Waiters.Make = park
}

// spinAlways makes all waits poll, and yield the processor after each poll if crowded is true. No goroutine
// waits yet.
func (j *Job) spinAlways(crowded bool) {
	if !crowded {
		j.Engine.Progress.SpinAlways(p2p.DefaultSpin, false)
		return
	}
	j.Engine.Progress.SpinAlways(p2p.CrowdedSpin, true)
	if j.Shared != nil {
		j.Shared.SetCrowded()
	}
}

// recordJoined logs that the links to all ranks are up.
func (j *Job) recordJoined() {
	j.Record(slog.LevelInfo, "links are up", slog.String("transport", j.Options.Transport),
		slog.Int("ranks", j.Size()), slog.Int("shared_memory", j.Shared.LinkCount()))
}
