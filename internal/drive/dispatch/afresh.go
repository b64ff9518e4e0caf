package dispatch

import (
	"context"
	"fmt"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/beneath"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
	"sallyport/internal/drive/ledger"
	path "sallyport/internal/path/session"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// Afresh takes away what a person wishes, so that an agent can go on which cannot get rid of it itself. Whatever lies there is an
// agent's: it is removed without a look into it.
type Afresh struct{ *Dispatcher }

// ClearMemory removes all that the agent of a group has written, and returns how many bytes that were. Sessions of the group that are
// at rest end. Errors: person.ErrNotOwner; problem.NotFound; problem.Conflict while one is at work.
func (d Afresh) ClearMemory(ctx context.Context, of group.Folder, by audit.Actor) (bytes int64, err error) {
	if err := d.Owner.MayDecide(by); err != nil {
		return 0, fmt.Errorf("clear the memory of %s: %w", inert.Short(string(of), 60), err)
	}
	if _, err := d.tree(ctx, of); err != nil {
		return 0, err
	}
	release, err := d.holdAll(ctx, of)
	defer release()
	if err != nil {
		return 0, err
	}

	err = d.folders.Alone(ctx, of, func() error {
		if d.used(of) {
			return problem.Errorf(problem.Conflict, "sallyport session list --group "+string(of),
				"a session of group %s has begun meanwhile: nothing was removed", of)
		}
		was, err := beneath.ExtentOf(ctx, written(d.Folder, of), sandbox.FoldersMax) // what lies deeper is removed too
		if err != nil {
			return err
		}
		bytes = was.Bytes
		if err := whole.Retire(d.Ops, "memory", written(d.Folder, of)); err != nil {
			return fmt.Errorf("clear the memory of group %s: %w", of, err)
		}
		return d.DB.InTx(ctx, func(tx store.Tx) error {
			return tx.AppendEntry(ctx, audit.Entry{At: ledger.Now(), Actor: by, Subject: "group:" + string(of), Verb: "memory cleared"})
		})
	})
	return bytes, err
}

// Forget has a chat go on with a new session: the home folder that its agent kept is removed, and it is told nothing of what was said
// before. What was said, and the transcript, stay. It returns the identity that the session had; "" if none has run. Errors:
// person.ErrNotOwner; problem.NotFound; problem.Conflict while the agent is at work.
func (d Afresh) Forget(ctx context.Context, of id.Chat, by audit.Actor) (was id.Session, err error) {
	if err := d.Owner.MayDecide(by); err != nil {
		return "", fmt.Errorf("have %s begin anew: %w", inert.Short(string(of), 60), err)
	}
	release, err := d.hold(ctx, of)
	if err != nil {
		return "", err
	}
	defer release()
	chat, err := store.Look(ctx, d.DB, store.Tx.Chat, of)
	if err != nil || chat.Identity == "" {
		return "", err
	}

	// The home goes first: if this ends in between, it is done again, and no session can begin on half of it.
	if err := whole.Retire(d.Ops, "session-home", path.HomeDir(d.Runtime.Dir(chat.Identity))); err != nil {
		return "", fmt.Errorf("have %s begin anew: %w", of, err)
	}
	was = chat.Identity
	err = d.DB.InTx(ctx, func(tx store.Tx) error {
		if chat, err = tx.ClaimChat(ctx, of); err != nil {
			return err
		}
		now := ledger.Now()
		if err := endSession(ctx, tx, was, now); err != nil {
			return err
		}
		chat.Identity, chat.Agent, chat.Tool = "", "", nil
		if err := tx.MoveChat(ctx, chat); err != nil {
			return err
		}
		text := fmt.Sprintf("The agent of %s begins anew in this chat, as %s wishes. What it kept of %s is removed. What was said here stays for you to read, and the agent is not told of it; its memory folder is as it was.", chat.Group, by.Name, was)
		if err := d.notice(ctx, tx, of, text); err != nil {
			return err
		}
		return tx.AppendEntry(ctx, audit.Entry{At: now, Actor: by, Subject: string(of), Verb: "forgot", Reason: "the chat goes on without " + string(was)})
	})
	if err != nil {
		return "", err
	}
	return was, nil
}

// endSession closes the row of a session that a crash left open: its files go when they have been kept long enough.
func endSession(ctx context.Context, tx store.Tx, of id.Session, at time.Time) error {
	s, err := tx.Session(ctx, of)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil || s.Ended != nil {
		return err
	}
	s.Ended, s.Interrupted, s.Reason = &at, path.NotRun, "the session did not run to its end"
	return tx.PutSession(ctx, s)
}

// holdAll holds every chat of a group; release is good also with an error.
func (d Afresh) holdAll(ctx context.Context, of group.Folder) (release func(), err error) {
	var held []func()
	release = func() {
		for _, let := range held {
			let()
		}
	}
	chats, err := store.Look(ctx, d.DB, store.Tx.Chats, of)
	for _, c := range chats {
		let, err := d.hold(ctx, c.ID)
		if err != nil {
			return release, err
		}
		held = append(held, let)
	}
	return release, err
}

// A worker that is about to rest is waited for: what its turn said may be read a moment earlier.
const (
	restMax  = 2 * time.Second
	restLook = 20 * time.Millisecond
)

// hold keeps the agent of a chat from running until release: a session at rest ends in good order. Errors: problem.Conflict while its
// agent is in a turn.
func (d Afresh) hold(ctx context.Context, of id.Chat) (release func(), err error) {
	for began := time.Now(); ; {
		d.mu.Lock()
		w := d.workers[of]
		if w == nil {
			in := newWorker(d.Dispatcher, of) // none is started in its place
			d.workers[of] = in
			d.mu.Unlock()
			return func() { d.dismiss(in) }, nil
		}
		working := w.turning && !w.leaving
		if !working {
			w.leave()
		}
		d.mu.Unlock()

		if working && time.Since(began) > restMax {
			return nil, problem.Errorf(problem.Conflict, "sallyport session stop "+string(of),
				"the agent of %s is at work: wait for the end of its turn, or end it", of)
		}
		var look <-chan time.Time
		if working {
			look = time.After(restLook)
		}
		select {
		case <-w.gone:
		case <-look:
		case <-ctx.Done():
			return nil, fmt.Errorf("the session of %s did not end: %w", of, context.Cause(ctx))
		}
	}
}
