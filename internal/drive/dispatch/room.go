package dispatch

import (
	"context"
	"path/filepath"
	"slices"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	path "sallyport/internal/path/session"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/who/group"
)

// written is the folder that a group's agent writes in: what it remembers, and whatever else it leaves.
func written(folder string, of group.Folder) string {
	return filepath.Join(folder, string(of), "agent")
}

// use counts a session that stands on what a group has written, until it is over.
func (d *Dispatcher) use(of group.Folder) (over func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.uses[of]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.uses[of]--; d.uses[of] == 0 {
			delete(d.uses, of)
		}
	}
}

// used reports whether any session stands on it.
func (d Afresh) used(of group.Folder) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.uses[of] > 0
}

// room refuses a session that would end at a limit as soon as it began: what its agent has written stays, and nothing inside can take
// it away. Errors: problem.Refused with the command that does.
func (w *worker) room(ctx context.Context, of path.Session, may sandbox.Limits) error {
	work, err := beneath.ExtentOf(ctx, written(w.Folder, w.chat.Group), sandbox.FoldersMax)
	if err != nil {
		return err
	}
	home, err := beneath.ExtentOf(ctx, path.HomeDir(of.Dir), sandbox.FoldersMax)
	if err != nil {
		return err
	}
	return tooMuch(w.chat, work, home, may.OrDefault())
}

// tooMuch names what of all that a group's agent has written keeps it from running, and the command that takes it away; nil if nothing
// does. What counts together is the fault of the greater part.
func tooMuch(c conversation.Chat, work, home beneath.Extent, may sandbox.Limits) error {
	no := func(inHome bool, format string, args ...any) error {
		where, next := "in the memory of group "+string(c.Group), "sallyport group memory clear "+string(c.Group)
		if inHome {
			where, next = "in the home folder that the agent of group "+string(c.Group)+" keeps for this chat", "sallyport session forget "+string(c.ID)
		}
		return problem.Errorf(problem.Refused, next, format+" "+where, args...)
	}
	switch {
	case work.Deep || home.Deep:
		return no(!work.Deep, "folders lie more than %d deep in each other", sandbox.FoldersMax)
	case work.Bytes+home.Bytes > may.DiskBytes:
		return no(home.Bytes > work.Bytes, "there is more than the %s that a session may take,", sandbox.Bytes(may.DiskBytes))
	case work.Entries+home.Entries > may.FilesMax:
		return no(home.Entries > work.Entries, "there are more than the %d files that a session may have,", may.FilesMax)
	}
	return nil
}

// remedy says how a person makes room for an agent that what it has written keeps from going on; "" if it is not that.
func (w *worker) remedy(ctx context.Context, of path.Session, may sandbox.Limits, exit sandbox.Exit) string {
	if exit.Limit == nil || !slices.Contains([]string{sandbox.Disk, sandbox.Files, sandbox.Depth}, exit.Limit.Name) {
		return ""
	}
	err := w.room(context.WithoutCancel(ctx), of, may)
	if err == nil {
		return "" // it took what it had written with it
	}
	p := problem.Of(err)
	return "; " + inert.Line(p.Text) + ", and stay until a person says: " + p.Next
}
