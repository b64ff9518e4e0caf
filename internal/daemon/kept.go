package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/release"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/store/sqlite"
)

// errAsked ends a daemon that somebody has asked to.
var errAsked = errors.New("asked to stop")

// beatEvery is how often a daemon that a keeper has started looks whether its main loops go round, and says so.
const beatEvery = 10 * time.Second

// settlePoll is how often a daemon that starts looks whether it is ready.
const settlePoll = 20 * time.Millisecond

// kept is a daemon with a keeper as its parent.
type kept struct{ *Daemon }

// report tells the keeper once the daemon answers, and then that its main loops go round, until ctx ends. Without a keeper it does nothing.
func (k kept) report(ctx context.Context) {
	if k.Line == nil {
		return
	}
	err := k.await(ctx)
	if err == nil {
		err = k.Line.Ready()
	}
	if err == nil {
		k.log.Info("kept", "release", k.Line.Release[:min(12, len(k.Line.Release))], "restarts", k.Line.Last.Restarts)
		err = k.beat(ctx)
	}
	if err != nil && ctx.Err() == nil {
		k.log.Error("the keeper cannot be told how it goes, and will end this daemon", "error", err)
	}
}

// await waits until a client gets an answer and each main loop has gone round.
func (k kept) await(ctx context.Context) error {
	poll := time.NewTicker(settlePoll)
	defer poll.Stop()
	for {
		_, err := client.Me().Dial(ctx, k.Home)
		if err == nil && k.rounds().all(rounds{}) {
			return nil
		}
		if err != nil && !errors.Is(err, client.ErrNoDaemon) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-poll.C:
		}
	}
}

// beat has the main loops go round, and says so once each of them has. A loop that hangs is no beat, and the keeper waits for one.
func (k kept) beat(ctx context.Context) error {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	last := k.rounds()
	for {
		k.control.Poke()
		k.chats.Poke()
		k.channels.Poke()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := k.rounds()
		if !now.all(last) {
			continue
		}
		last = now
		if err := k.Line.Beat(); err != nil {
			return err
		}
	}
}

// rounds are how often each main loop has gone round.
type rounds [3]int64

func (k kept) rounds() rounds {
	return rounds{k.control.Rounds.Load(), k.chats.Rounds.Load(), k.channels.Rounds.Load()}
}

// all reports whether every loop has gone round since then.
func (r rounds) all(then rounds) bool {
	for i := range r {
		if r[i] <= then[i] {
			return false
		}
	}
	return true
}

// hearStop says to the keeper that the daemon ends because it was asked to, as soon as it is asked: ctx is what it serves by, and outer
// what it was started with. The daemon says off when it ends for another reason.
func (k kept) hearStop(ctx, outer context.Context) (off func() bool) {
	return context.AfterFunc(ctx, func() {
		if k.Line != nil && (outer.Err() != nil || errors.Is(context.Cause(ctx), errAsked)) {
			if err := k.Line.Stop(); err != nil {
				k.log.Error("the keeper could not be told that the daemon was asked to end", "error", err)
			}
		}
	})
}

// keptBy says whose child a daemon is; nil if a command has started it.
func keptBy(line *keeper.Line) *api.Keeper {
	if line == nil {
		return nil
	}
	h := line.Hello
	return &api.Keeper{Against: against(h.Keeper.PID), TrialMemory: h.Limits.Memory, TrialProcesses: h.Limits.Processes,
		PID: h.Keeper.PID, Release: h.Release, Restarts: h.Last.Restarts, Why: h.Last.Why, At: h.Last.At}
}

// against says whom a keeper holds against: a daemon that is another user than it cannot touch it, nor what it has.
func against(keeper int) string {
	info, err := os.Stat(fmt.Sprintf("/proc/%d", keeper))
	if err != nil {
		return api.AgainstFaulty
	}
	if is, ok := info.Sys().(*syscall.Stat_t); !ok || is.Uid != 0 || os.Geteuid() == 0 {
		return api.AgainstFaulty
	}
	return api.AgainstHostile
}

// PutRelease has a home run by the programs beside this one from its next start under a keeper on: they are copied into the home, and
// are its current release. It is what a person at the machine does who starts `serve`. Programs that it was given last time change nothing: a
// service starts them again, and the home may have been changed to others since. While a change of the host is under way nothing is put
// there: the keeper brings that to its end first.
//
// Errors: client.ErrTaken if a keeper has the home; problem.Unavailable if the home cannot be written, or there is no keeper to become.
func PutRelease(o Options) (keeperPath string, err error) {
	if o.Self == "" {
		if o.Self, err = os.Executable(); err != nil {
			return "", fmt.Errorf("find this program: %w", err)
		}
	}
	programs := filepath.Dir(o.Self)
	keeperPath = filepath.Join(programs, keeper.Program)
	if info, err := os.Stat(keeperPath); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "", problem.Errorf(problem.Unavailable, "ls -l "+inert.Path(programs),
			"there is no %s beside this program, and it is what keeps a home up: install all programs of a delivery into one folder", keeper.Program)
	}
	d := &Daemon{Options: o}
	if _, err := d.makeState(); err != nil {
		return "", err
	}
	if keeper.Kept(o.Home) {
		return "", problem.Errorf(problem.Conflict, "sallyport daemon status --home "+inert.Path(o.Home),
			"%w: sallyport serve keeps %q already", client.ErrTaken, o.Home)
	}
	if _, is, err := keeper.RecordOf(o.Home); err != nil {
		return "", unreadRecord(o.Home, err)
	} else if is {
		return keeperPath, nil // what runs next is the keeper's to say
	}
	err = release.In(o.Home, o.Ops).Install(programs,
		release.Release{Build: api.Build(), Schema: sqlite.Schema(), Image: imageOf(o.Home, o.Ops), Built: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return "", fmt.Errorf("put this sallyport into the home %q: %w", o.Home, unwritable(o.Home, err))
	}
	return keeperPath, nil
}

// unreadRecord says how a person leaves a home whose keeper cannot know which version may run.
func unreadRecord(home string, err error) error {
	at := keeper.RecordPath(home)
	return problem.Errorf(problem.Unavailable, "mv "+inert.Path(at)+" "+inert.Path(at+".unread"),
		"%w: so it is not known which version may run, and none is started. Once you have taken it away, `sallyport serve` starts its own version, and a change that was on trial goes back", err)
}
