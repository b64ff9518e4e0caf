package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sallyport/internal/base/code"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/release"
)

// host is the change of the host that is under way in a home, and what its keeper does for it.
type host struct {
	home   string
	ops    disk.Ops
	now    func() (deadman.Moment, error)
	room   func(least int64) (short string)    // of 0 bytes there is always room
	revert func(context.Context, Record) error // the old release's own way back, once
	watch  func() error                        // has another process start a keeper should this one die; nil = a service manager does
	tell   func(format string, a ...any)

	r       Record // as it is on the disk; of no change while Step is ""
	starts  int    // how often an old daemon was started again at step Armed
	watched bool   // watch was called for it
}

// look reads the record. Once the keeper alone writes it, what it has written counts: nobody saves a trial by taking the file away.
func (h *host) look() error {
	if h.r.Step.kept() {
		return nil
	}
	r, is, err := RecordOf(h.home)
	if err != nil {
		return err
	}
	h.r = r
	switch {
	case !is && h.watched: // what disarmed it may have come between
		h.starts, h.watched = 0, false
		return deadman.Disarm(h.ops, Folder(h.home), watchName)
	case !is:
		h.starts = 0
	case !h.watched && h.watch != nil:
		h.watched = true
		if err := h.watch(); err != nil {
			h.tell("nobody starts a keeper again that dies in host change %s: %v", r.Change, err)
		}
	}
	return nil
}

// happen writes what an event leads to, and returns what is to be done then. why says what led back; change says what else the record
// holds from now on. An error = nothing has changed, but on the way back: that is gone also where it cannot be written.
func (h *host) happen(e event, why string, change func(*Record)) (deed, error) {
	m, known := h.r.Step.next(e)
	if !known {
		return wait, fmt.Errorf("host change %s is at step %q", h.r.Change, h.r.Step)
	}
	if m.does == finish {
		if err := remove(h.ops, h.home); err != nil {
			return wait, err
		}
		h.follow() // where the disk was full, there is room again
		h.tell("host change %s is over", h.r.Change)
		h.r = Record{}
		return finish, nil
	}
	if m.to == h.r.Step {
		return m.does, nil
	}

	r := h.r
	if r.Step = m.to; r.Step == Back {
		r.Why = why
	}
	if change != nil {
		change(&r)
	}
	err := r.write(h.ops, h.home)
	if err != nil && r.Step == Back { // a full disk, then: what is kept for the way back is free from here on
		err = errors.Join(free(h.ops, h.home), r.write(h.ops, h.home))
		if err != nil {
			h.tell("host change %s goes back, and that cannot be written: %v", r.Change, err)
		}
	} else if err != nil {
		return wait, err
	}
	h.r = r
	h.tell("host change %s: %s", r.Change, r.says())
	h.follow()
	return m.does, nil
}

// lost writes what it means that the daemon ended unasked. It reports whether what is started next is another version.
func (h *host) lost(why string) (turned bool) {
	if h.look() != nil || h.r.Step == "" {
		return false
	}
	before, e := h.r.Step, exited
	if before == Armed && h.starts == startsMax {
		e = exhausted
	}
	h.starts++
	if h.r.Step.onTrial() { // that may be what it has ended of, before anybody looked
		if short := h.room(h.r.FreeMin); short != "" {
			why = short + ", and " + why
		}
	}
	_, _ = h.happen(e, why, nil) // what can fail is a write, and going back does not hang on that
	return h.r.Step != before
}

// idle reports whether no host change is under way.
func (h *host) idle() bool { return h.look() == nil && h.r.Step == "" }

// clean takes away what an arming has left that did not come to its end.
func (h *host) clean() {
	if !h.idle() {
		return
	}
	if err := remove(h.ops, h.home); err != nil {
		h.tell("clean up %s: %v", Folder(h.home), err)
	}
}

// says is a step for the log.
func (r Record) says() string {
	if r.Step == Back {
		return "back: " + r.Why
	}
	return string(r.Step)
}

// Unconfirmed is why a trial goes back that nobody has confirmed in time.
const Unconfirmed = "nobody confirmed it in time"

// trips says why the trial fails by itself now; "" = it does not.
func (h *host) trips() (why string) {
	if h.r.Step != Armed && !h.r.Step.onTrial() {
		return ""
	}
	now, _ := h.now() // without a clock nothing says that there is time left
	switch {
	case h.r.Due.Left(now) == 0 && h.r.Step == Asked:
		return Unconfirmed
	case h.r.Due.Left(now) == 0:
		return fmt.Sprintf("it had not come further than step %q in time", h.r.Step)
	case h.r.Step.onTrial():
		return h.room(h.r.FreeMin)
	}
	return ""
}

// turn says which release is started now; "" = the current one, for no host change is under way. Where the record says so it goes back
// first. It waits for a record or a release that cannot be read: which version may run is not known. Errors: of insist.
func (h *host) turn(ctx context.Context) (digest string, fresh bool, err error) {
	does := wait
	err = h.insist(ctx, func() (err error) {
		does, err = h.choose()
		return err
	})
	if err != nil || h.r.Step == "" {
		return "", false, err
	}
	if does == goBack {
		err = h.insist(ctx, func() error { return h.goBack(ctx) })
	}
	if does == runNew {
		return h.r.New, true, err
	}
	return h.r.Old, false, err
}

// choose reads the record, and has the release lie there that it names. It may be done again. On trial a release that cannot is sent back;
// one that was confirmed is waited for.
func (h *host) choose() (does deed, err error) {
	if err := h.look(); err != nil || h.r.Step == "" {
		return wait, err
	}
	if why := h.trips(); why != "" { // while no keeper ran
		_, _ = h.happen(failed, why, nil)
	}
	does, err = h.happen(begun, "", nil)
	if err == nil && does == runNew {
		if err = release.In(h.home, h.ops).Turn(h.r.New); err != nil && h.r.Step.onTrial() {
			does, err = h.happen(failed, err.Error(), nil)
		}
		h.follow()
	}
	return does, err
}

// errGone says that somebody has removed the home: nothing is left to bring back, or to keep up.
var errGone = errors.New("the home was removed")

// insist does something until it succeeds, with longer and longer pauses, for ever. A home that is away after a failure at the longest pause
// was removed: what is on trial could take it away for a moment. Errors: ctx's; errGone.
func (h *host) insist(ctx context.Context, do func() error) error {
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		err := do()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if pause == pauseMax && h.gone() {
			return fmt.Errorf("keep up %q: %w", h.home, errGone)
		}
		h.tell("%v; it is tried again in %s", err, pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (h *host) gone() bool {
	_, err := os.Lstat(h.home)
	return errors.Is(err, fs.ErrNotExist)
}

// goBack brings back all that runs and lies there but the daemon. It may be done again.
func (h *host) goBack(ctx context.Context) error {
	if err := free(h.ops, h.home); err != nil {
		return err
	}
	if err := h.revert(ctx, h.r); err != nil {
		return fmt.Errorf("take host change %s back: %w", h.r.Change, err)
	}
	releases, copies := release.In(h.home, h.ops), old(h.home, h.ops)
	if r, err := copies.Read(h.r.Old); err == nil { // whole or not, what lies among the releases is as the copy then
		if _, err := releases.Put(filepath.Join(copies.Dir, r.Digest), r); err != nil {
			h.tell("bring release %.12s back: %v", r.Digest, err)
		}
	}
	return releases.Turn(h.r.Old)
}

// follow has the old release be the previous one, once the new one is kept: until then that is the one before both. To write it may fail:
// nothing but a person's look back goes by it.
func (h *host) follow() {
	if h.r.Step != Confirmed || h.r.Old == h.r.New {
		return
	}
	if err := release.In(h.home, h.ops).Follow(h.r.Old); err != nil {
		h.tell("%v", err)
	}
}

// open opens the program of a release, from the first of the folders that has it whole.
func open(digest string, folders ...release.Folder) (program *os.File, err error) {
	var errs []error
	for _, f := range folders {
		if program, _, err = f.Open(digest); err == nil {
			return program, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// answer does what a daemon asks for with a verb, and says what it is answered. fresh says that the daemon is of the new version.
func (h *host) answer(verb string, a ask, fresh bool) (deed, reply) {
	err := h.look()
	if err == nil && (h.r.Step == "" || a.Change != h.r.Change) {
		err = fmt.Errorf("host change %.64q is not under way", a.Change)
	}
	if err != nil {
		return wait, reply{Refused: err.Error()}
	}
	if verb == wordAsked || verb == wordConfirm { // after a sleep of the machine it may be heard before anybody has looked
		if why := h.trips(); why != "" && h.r.Step.onTrial() {
			does, _ := h.happen(failed, why, nil)
			return does, reply{Refused: why}
		}
	}
	now, err := h.now()
	does := wait
	switch {
	case err != nil:
	case verb == wordHandOver && fresh:
		err = errors.New("the new version has nothing to hand over")
	case verb == wordHandOver:
		does, err = h.handOver(now)
	case verb == wordAsked:
		does, err = h.happen(delivered, "", func(r *Record) {
			r.Due = deadman.Deadline{Set: now, In: min(trialMin, trialMax-now.Since(r.Handed))}
		})
	case verb == wordConfirm:
		return h.confirm(a)
	case verb == wordRollBack:
		does, err = h.happen(failed, a.Why, func(r *Record) { r.By = a.By })
	case verb == wordFinalized:
		does, err = h.happen(finalized, "", nil)
	}
	if err != nil {
		return wait, reply{Refused: err.Error()}
	}
	return does, reply{}
}

// handOver begins the trial, if all is there that it takes.
func (h *host) handOver(now deadman.Moment) (deed, error) {
	if h.r.Step == Armed {
		program, err := open(h.r.New, release.In(h.home, h.ops))
		if err != nil {
			return wait, err
		}
		program.Close()
		if short := h.trips(); short != "" {
			return wait, errors.New(short)
		}
		if short := h.room(h.r.FreeMin); short != "" {
			return wait, errors.New(short)
		}
	}
	return h.happen(handedOver, "", func(r *Record) {
		r.Handed = now
		r.Due = deadman.Deadline{Set: now, In: min(trialMin+r.Slack, trialMax)}
	})
}

// confirm compares a word with the code. It counts the wrong ones, and goes back after too many.
func (h *host) confirm(a ask) (deed, reply) {
	if _, known := h.r.Step.next(confirmed); !known {
		return wait, reply{Refused: fmt.Sprintf("host change %s is at step %q", h.r.Change, h.r.Step)}
	}
	left := triesMax - h.r.Tries
	if !code.Is(a.Code) {
		return wait, reply{Code: true, Left: left}
	}
	if h.r.Code.Matches(a.Code) {
		does, err := h.happen(confirmed, "", func(r *Record) { r.By = a.By })
		if err != nil {
			return wait, reply{Refused: err.Error()}
		}
		return does, reply{}
	}
	if h.r.Step == Confirmed {
		return wait, reply{Code: true, Left: left}
	}
	h.r.Tries, left = h.r.Tries+1, left-1
	if left <= 0 {
		does, _ := h.happen(failed, fmt.Sprintf("%d wrong codes", triesMax), nil)
		return does, reply{Code: true}
	}
	if err := h.r.write(h.ops, h.home); err != nil {
		h.tell("a wrong code counts for this keeper only: %v", err)
	}
	return wait, reply{Code: true, Left: left}
}
