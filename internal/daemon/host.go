package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/code"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/id"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/release"
	"sallyport/internal/drive/guard"
	"sallyport/internal/store"
)

// What an armed change of the host is given.
const (
	armedMax    = 10 * time.Minute // until it has landed and this host hands over
	reserveMore = 64 << 20         // bytes kept for the way back, beside twice the database
	restMax     = time.Minute      // until turns that are under way have ended; the others begin anew
)

// hosted is the host as its keeper has it.
type hosted struct{ *Daemon }

var _ guard.Host = hosted{}

// Judges returns nil if this daemon's keeper can judge a trial of the host.
func (h hosted) Judges() error {
	switch {
	case h.Line == nil:
		return problem.Errorf(problem.Refused, "sallyport serve",
			"a change of the host lands only where a keeper can bring the old host back, and no `sallyport serve` keeps this home up")
	case !h.Line.Tries():
		return problem.Errorf(problem.Refused, "sallyport serve",
			"the keeper of this home is of an older sallyport and cannot judge a trial of the host: end it, install sallyport-keeper again, and start `sallyport serve`")
	}
	return nil
}

func (h hosted) Record() (keeper.Record, bool, error) { return keeper.RecordOf(h.Home) }

// Code is the hash of what a trial will be confirmed with, once a person has the code.
func (h hosted) Code(ctx context.Context, of id.Change) (code.Hash, error) {
	return h.control.Codes.Take(ctx, of)
}

// Arm reserves what going back takes, keeps a copy of the release that runs, and writes the record.
func (h hosted) Arm(ctx context.Context, c guard.HostChange) error {
	if err := h.Judges(); err != nil {
		return err
	}
	now, err := deadman.Now()
	if err != nil {
		return err
	}
	size, err := databaseBytes(h.database())
	if err != nil {
		return err
	}
	r := keeper.Record{
		Change: string(c.Change), Old: h.Line.Release, New: c.Release, Code: c.Code, Slack: c.Slack,
		Due: deadman.Deadline{Set: now, In: armedMax}, FreeMin: size + reserveMore,
	}
	if r.New == "" {
		r.New = r.Old
	}
	return unarmed(h.Home, r, keeper.Arm(h.Ops, h.Home, r, 2*size+reserveMore))
}

// unarmed says what a person can do about a way back that could not be made.
func unarmed(home string, r keeper.Record, err error) error {
	var fault *release.Fault
	switch {
	case errors.As(err, &fault) && fault.Digest == r.New: // somebody has pruned it meanwhile
		return problem.Errorf(problem.Refused, "sallyport refuse "+r.Change, "%w: refuse the change, and ask for it anew", err)
	case errors.Is(err, keeper.ErrFull):
		return problem.Errorf(problem.Refused, "sallyport gc", "%w: free some disk, and approve again", err)
	case errors.Is(err, keeper.ErrArmed):
		return problem.Errorf(problem.Unavailable, "sallyport status", "%w", err)
	case err != nil:
		return unwritable(home, err)
	}
	return nil
}

func (h hosted) Disarm(of id.Change) error { return keeper.Disarm(h.Ops, h.Home, string(of)) }

// HandOver brings this host to rest, has what it said leave, copies the database, and has the keeper start the new host in its place.
func (h hosted) HandOver(ctx context.Context, of id.Change) error {
	if err := h.Judges(); err != nil {
		return err
	}
	resume := h.resting().rest(ctx)
	handed := false
	defer func() {
		if !handed {
			resume()
		}
	}()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := h.db.Snapshot(ctx, h.snapshot(of)); err != nil {
		return err
	}
	if err := h.Line.HandOver(ctx, string(of)); err != nil {
		return err
	}
	handed = true
	h.log.Info("the host hands over to its keeper", "change", of)
	h.handOver()
	return nil
}

// resting is what a host brings to rest before another takes its place.
type resting struct {
	hold  func() (resume func())                // begin no turn
	turns func() int                            // that are under way
	flush func(context.Context) (resume func()) // have leave what was said
}

func (h hosted) resting() resting {
	return resting{hold: func() func() { return h.chats.Only.Begin("") }, turns: h.chats.Busy, flush: h.channels.Flush}
}

// rest waits until no turn is under way, and no longer than restMax, and then until what is due has left: turns end with words. A turn that
// is not done by then begins anew on the new host, and its messages are told nobody of. resume has all go on.
func (r resting) rest(ctx context.Context) (resume func()) {
	goOn := r.hold()
	r.await(ctx)
	speakOn := r.flush(ctx)
	return func() {
		speakOn()
		goOn()
	}
}

func (r resting) await(ctx context.Context) {
	poll := time.NewTicker(settlePoll)
	defer poll.Stop()
	patience := time.NewTimer(restMax)
	defer patience.Stop()
	for r.turns() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-patience.C:
			return
		case <-poll.C:
		}
	}
}

func (h hosted) Asked(ctx context.Context, of id.Change) error {
	return h.said(h.Line.Asked(ctx, string(of)))
}

// Confirm has the keeper compare a code.
func (h hosted) Confirm(ctx context.Context, of id.Change, code string, by audit.Actor) error {
	raw, err := json.Marshal(by)
	if err != nil {
		return err
	}
	left, err := h.Line.Confirm(ctx, string(of), code, raw)
	switch {
	case errors.Is(err, keeper.ErrCode) && left <= 0:
		return problem.Errorf(problem.Denied, "sallyport change watch "+string(of), "%w: that was the last try, and the old host comes back", err)
	case errors.Is(err, keeper.ErrCode):
		more := "once more"
		if left > 1 {
			more = fmt.Sprintf("%d more times", left)
		}
		return problem.Errorf(problem.Denied, "sallyport confirm "+string(of)+" --code CODE",
			"%w: it can be tried %s, and then the old host comes back", err, more)
	}
	return h.said(err)
}

func (h hosted) RollBack(ctx context.Context, of id.Change, why string, by audit.Actor) error {
	raw, err := json.Marshal(by)
	if err != nil {
		return err
	}
	return h.said(h.Line.RollBack(ctx, string(of), why, raw))
}

// Finalized ends the trial for the keeper, and what this host did not do while it was quiet.
func (h hosted) Finalized(ctx context.Context, of id.Change) error {
	if r, is, err := keeper.RecordOf(h.Home); err != nil || is && r.Change == string(of) {
		if err := h.said(h.Line.Finalized(ctx, string(of))); err != nil {
			return err
		}
	}
	h.quiet.end()
	return nil
}

// said names what could not be said to the keeper.
func (h hosted) said(err error) error {
	if err == nil {
		return nil
	}
	return problem.Errorf(problem.Unavailable, "sallyport daemon status --home "+h.Home, "the keeper did not take it: %w", err)
}

// snapshot is where the database is kept as it was before a change.
func (h hosted) snapshot(of id.Change) string {
	return store.SnapshotPath(filepath.Join(h.Home, ".state", store.BackupsFolder), of)
}

func (h hosted) database() string { return filepath.Join(h.Home, ".state", "sallyport.db") }

// databaseBytes is how much of the disk a database takes, with its log.
func databaseBytes(path string) (size int64, err error) {
	for _, beside := range []string{"", "-wal"} {
		info, err := os.Stat(path + beside)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		if err == nil {
			size += info.Size()
		}
	}
	return size, nil
}

// quiet is a trial in which this host does less than it otherwise does, because its database has another schema than that of the host before:
// what it wrote elsewhere could not be taken back. The zero value is none.
type quiet struct {
	mu   sync.Mutex
	of   id.Change // "" = this host does all that it does
	ends []func()
}

// begin has only the trial itself and the conversation that it is about go on.
func (q *quiet) begin(of id.Change, ends ...func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.of, q.ends = of, ends
}

// end has everything go on.
func (q *quiet) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, end := range q.ends {
		end()
	}
	q.of, q.ends = "", nil
}

// await waits until this host does all that it does; false if ctx ended first.
func (q *quiet) await(ctx context.Context) bool {
	poll := time.NewTicker(settlePoll)
	defer poll.Stop()
	for {
		q.mu.Lock()
		loud := q.of == ""
		q.mu.Unlock()
		if loud || ctx.Err() != nil {
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
		case <-poll.C:
		}
	}
}

// refuse says why a host that is quiet does not do what it is asked for; nil of one that is not, and about the change that is on trial.
func (q *quiet) refuse(home, about string) error {
	of, why := q.why(home)
	if of == "" || about == string(of) {
		return nil
	}
	return problem.Errorf(problem.Unavailable, "sallyport change watch "+string(of), "%s: %s", why, of)
}

// why says in a clause what is on trial, and until when; "" of a host that is not quiet.
func (q *quiet) why(home string) (of id.Change, why string) {
	q.mu.Lock()
	of = q.of
	q.mu.Unlock()
	if of == "" {
		return "", ""
	}
	why = "a host change is on trial"
	if r, is, err := keeper.RecordOf(home); err == nil && is {
		why += " until " + r.Due.At().Local().Format("15:04")
	}
	return of, why
}

// admitsNobody is what conversations ask: why nobody is let in now, and no place.
func (d *Daemon) admitsNobody() string {
	_, why := d.quiet.why(d.Home)
	return why
}

// listen has a host that is on trial with another schema be quiet.
func (h hosted) listen(ctx context.Context) error {
	r, is, err := keeper.RecordOf(h.Home)
	if err != nil || !is || r.Step == keeper.Armed || r.Step == keeper.Back {
		return err
	}
	of := id.Change(r.Change)
	p, err := h.control.Proposal(ctx, of)
	if err != nil || p == nil || p.Card.Host == nil || !p.Card.Host.Quiet() {
		return err
	}
	row, err := h.control.Row(ctx, of)
	if err != nil || row.State.Final() {
		return err
	}
	h.quiet.begin(of, h.control.Only(of), h.chats.Only.Begin(row.Request.Chat))
	return nil
}
