package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/accept"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	path "sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/config"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// instructions are the names under which agents look for a group's AGENTS.md.
var instructions = []string{"AGENTS.md", "CLAUDE.md"}

const (
	finishMax     = 10 * time.Second // until a session that is to end has
	unlimited     = 10 * 365 * 24 * time.Hour
	outputMax     = 1 << 50  // CH-080: the adapter bounds each turn, and nothing bounds how many there are
	transcriptMax = 32 << 20 // bytes of a session; then it begins another
)

// ended is how a session came to its end.
type ended struct {
	exit sandbox.Exit
	err  error
}

// session is an agent that runs for a chat.
type session struct {
	*beat
	run     path.Running
	tree    git.OID
	started time.Duration
	over    chan ended
	cancel  context.CancelFunc
	intake  atomic.Value // the message that the turn is for
	release func()       // what it stands on
	steers  bool         // its agent takes words in the middle of a turn
}

// ground is what a session stands on.
type ground struct {
	group.Group
	owner  sandbox.Owner
	files  string // the group's tree, laid out
	places string
}

// lay makes ready what a session of a tree stands on; hold keeps it until the session has ended.
func (w *worker) lay(ctx context.Context, tree git.OID, hold func(release func())) (g ground, err error) {
	if g.Group, err = group.Read(ctx, w.Home, w.chat.Group, tree); err != nil {
		return g, err
	}
	layer, done, err := w.Trees.Open(ctx, w.Home, tree, "")
	if err != nil {
		return g, fmt.Errorf("lay out the files of group %s: %w", g.Folder, err)
	}
	hold(done)
	g.files = layer.Trees[0]
	if g.owner, err = w.owner(ctx, g.Folder); err != nil {
		return g, err
	}
	return g, w.folders.Alone(ctx, g.Folder, func() error {
		if g.places, err = w.makeFolders(g.Folder, g.owner); err == nil {
			hold(w.use(g.Folder))
		}
		return err
	})
}

// start runs the agent of the chat's group on what the group is now; it goes on as who it was (RM-025).
func (w *worker) start(ctx context.Context) (err error) {
	var undo []func()
	release := sync.OnceFunc(func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	})
	defer func() {
		if err != nil {
			release()
		}
	}()
	hold := func(release func()) { undo = append(undo, release) }

	tree, err := w.tree(ctx, w.chat.Group)
	if err != nil {
		return err
	}
	g, err := w.lay(ctx, tree, hold)
	if err != nil {
		return err
	}
	s := &session{beat: newBeat(w.Dispatcher, w.chat), tree: tree, over: make(chan ended, 1)}
	s.intake.Store("")
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	hold(cancel)
	desk, leave, err := w.Desk.Seat(life, string(w.chat.ID), g.owner, live.Without(w.handlers(s), g.Runner.Off()),
		func() string { return s.intake.Load().(string) })
	if err != nil {
		return err
	}
	hold(leave)

	var extra []live.Mounted
	system, shown := "", w.shown(g.files, g.places)
	if w.dev != nil {
		system, shown = w.dev.system(), devShown(g.files)
		g.Runner.Agent, g.Runner.Model = config.RunnerAgent(w.dev.Request.Agent), config.Model(w.dev.Request.Model)
	} else {
		if system, err = w.system(ctx, g.Group); err != nil {
			return err
		}
		extra = findExtra(w.Dispatcher, g.Group)
	}
	if err := w.outfit(ctx, s, g.Group, g.owner, g.places, joined(system, tellExtra(extra, g.Folder))); err != nil {
		return err
	}
	hold(s.run.Way.Close)
	s.steers = s.run.Program.Steers && !g.Hooked("on-message") // which looks at the words of a turn at its beginning
	s.run.Spec.Mounts = mounts(extra)
	if err := w.room(ctx, s.run.Session, s.run.Spec.Limits); err != nil {
		return err
	}
	folded := foldOf(w.Ops, s.run.Session.Dir)
	if err := folded.make(); err != nil {
		return err
	}
	s.run.Spec.Own = slices.Concat(shown, desk, []sandbox.Bind{{Source: folded.dir, Target: FoldedFolder}})
	s.run.Spec.Limits.OutputBytes = outputMax
	s.run.Spec.Limits.Processor = 0 // that of a session without an end, whatever the home lets a change use
	s.run.Program.Dirs = append(s.run.Program.Dirs, filepath.Dir(sandbox.ToolProgram))
	s.run.Spec.Env = append(s.run.Spec.Env, fmt.Sprintf("%s=%d", prompt.LimitVariable, w.PromptOf))
	s.release = release
	return w.launch(ctx, life, s)
}

// outfit makes the session ready: who it is, its program, its way out.
func (w *worker) outfit(ctx context.Context, s *session, g group.Group, owner sandbox.Owner, places, system string) error {
	subject := live.Subject{
		ID: w.chat.ID.Subject(), Owner: owner, Agent: string(g.Runner.Agent), Model: string(g.Runner.Model),
		Path: os.Getenv("PATH"), Home: os.Getenv("HOME"), Timeout: unlimited, Door: s.ask, Waits: s.wait, Moved: s.moves,
		Group: string(g.Folder), Budget: func() (budget.Limits, error) { return live.LimitsOf(g.Runner.Budgets), nil },
		Asking: "sallyport chat " + string(g.Folder), GoingOn: "sallyport chat " + string(g.Folder),
	}
	before, err := w.before(ctx, subject.Agent)
	if err != nil {
		return err
	}
	outfit, err := w.Runtime.Outfits.Equip(subject,
		agent.Task{Chat: true, Resumed: before, System: system, Tools: sandbox.ToolSocket, Off: g.Runner.Off(), Path: subject.Path, Home: subject.Home})
	if err != nil {
		return err
	}
	program, err := outfit.Program()
	if err != nil {
		return err
	}
	if err := w.Runtime.Budget.Afford(ctx, subject.ID, subject.Agent, program.Model); err != nil {
		return err
	}

	of := path.Session{ID: w.chat.Identity, Chat: w.chat.ID, Attempt: 1, Agent: subject.Agent, Started: ledger.Now()}
	if of.ID == "" || w.chat.Agent != subject.Agent {
		of.ID = id.NewSession(program.Name)
	} else if last, err := store.Look(ctx, w.DB, store.Tx.Session, of.ID); err != nil {
		return err
	} else {
		of.Attempt = last.Attempt + 1
	}
	of.Dir = w.Runtime.Dir(of.ID)
	if w.dev != nil {
		if err := w.dev.comeHome(ctx, of); err != nil {
			return err
		}
	}
	if err := path.TurnOver(w.Ops, of.Dir, transcriptMax); err != nil {
		return err
	}
	s.run, err = w.Runtime.Ready(ctx, subject, outfit, program, of, live.Mounts{
		Tree: sandbox.Tree{Dir: filepath.Join(places, "places")}, Dir: WorkFolder, Cwd: filepath.Join(places, "agent"), Release: func() {},
	})
	return err
}

// rememberedMax is how many messages of each direction an agent is told that cannot load its own session.
const rememberedMax = 200

// before is what an agent that cannot load its own session is told of what was said; nil if this is its first.
func (w *worker) before(ctx context.Context, agentName string) (*agent.Resumed, error) {
	if w.chat.Identity == "" || w.chat.Agent != agentName {
		return nil, nil
	}
	var ins []message.In
	var outs []message.Out
	err := w.DB.Read(ctx, func(tx store.Tx) (err error) {
		past := []message.Status{message.Completed, message.Folded, message.Dead}
		if ins, err = tx.Ins(ctx, message.Filter{Chat: w.chat.ID, Status: past, Newest: true, Limit: rememberedMax}); err != nil {
			return err
		}
		outs, err = tx.NewestOuts(ctx, w.chat.ID, rememberedMax)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what was said before: %w", err)
	}

	var said []string
	size := 0
	for _, l := range slices.Backward(merged(linesOf(nil, &message.Rows{Ins: ins, Outs: outs}, nil))) {
		line := ""
		switch {
		case l.In != nil && l.In.Decides != nil:
			continue
		case l.In != nil:
			line = prompt.Past(cmp.Or(l.In.Sender, string(l.In.Kind)), l.In.Text)
		case l.Out.Lane == message.Talk:
			line = prompt.Past("you", l.Out.Text)
		}
		if size += len(line) + 1; size > agent.TranscriptBytesMax {
			break
		}
		said = append(said, line)
	}
	slices.Reverse(said)
	return &agent.Resumed{Why: "your place was needed, or the host was stopped", Transcript: strings.Join(said, "\n")}, nil
}

// launch writes down that the session begins, and runs it.
func (w *worker) launch(ctx, life context.Context, s *session) error {
	chat := w.chat
	chat.Identity, chat.Agent, chat.Tree = s.run.Session.ID, s.run.Session.Agent, s.tree
	err := w.DB.InTx(ctx, func(tx store.Tx) error {
		if err := tx.PutSession(ctx, s.run.Session); err != nil {
			return err
		}
		return tx.MoveChat(ctx, chat)
	})
	if err != nil {
		return err
	}
	w.chat = chat

	s.run.Said, s.run.Tool, s.run.Output = s.say, s.use, s.hear
	up := make(chan struct{})
	s.run.Live = func(sandbox.Process) { close(up) }
	go func() { // ends with the session
		exit, err := path.Run(life, s.run)
		s.over <- ended{exit, err}
	}()
	select {
	case <-up:
	case end := <-s.over:
		w.live = s
		why := w.record(ctx, end)
		if end.err != nil {
			return end.err
		}
		return problem.Errorf(problem.AgentFailed, "sallyport session log "+string(s.run.Session.ID), "the agent %s", strings.TrimPrefix(why, "the agent "))
	}
	s.started = s.begins()
	w.live = s
	w.mu.Lock()
	delete(w.died, w.of)
	w.mu.Unlock()
	return nil
}

// end ends the session in good order, by force if it takes too long.
func (w *worker) end(ctx context.Context) {
	s := w.live
	if s == nil {
		return
	}
	s.run.Talk.Finish()
	limit := time.NewTimer(finishMax)
	defer limit.Stop()
	if s.run.Talk.Turning() {
		s.cancel() // it has a turn that nobody waits for
	}
	select {
	case end := <-s.over:
		w.record(ctx, end)
	case <-limit.C:
		s.cancel()
		w.record(ctx, <-s.over)
	}
}

// record writes how a session has ended, lets go what it stood on, and says it as a clause.
func (w *worker) record(ctx context.Context, end ended) string {
	s := w.live
	w.live, w.printed = nil, s.printed()
	s.release()
	at := ledger.Now()
	of := s.run.Session
	of.Ended = &at
	why := "the agent's sandbox ended"
	switch {
	case end.err != nil:
		of.Interrupted, of.Reason = path.NotRun, "the session did not run to its end"
		why = "the agent's sandbox failed: " + end.err.Error()
	default:
		of.Exit = &end.exit
		if end.exit.Code != 0 || end.exit.Signal != "" || end.exit.Limit != nil {
			why = "the agent's program ended: " + path.Describe(end.exit) + w.remedy(ctx, of, s.run.Spec.Limits, end.exit)
			w.Log.Warn("an agent's session ended", "group", w.chat.Group, "chat", w.chat.ID, "how", path.Describe(end.exit), "last", lastWords(of)) // CH-084
		}
	}
	err := w.DB.InTx(context.WithoutCancel(ctx), func(tx store.Tx) error { return tx.PutSession(context.WithoutCancel(ctx), of) })
	if err != nil {
		w.Log.Error("the end of a session was not recorded", "session", of.ID, "error", err)
	}
	return why
}

// owner is who the group's sandboxes run as: a uid of the group's own, so that its memory stays its own.
func (w *worker) owner(ctx context.Context, of group.Folder) (sandbox.Owner, error) {
	if w.FirstUID == 0 {
		return w.Self, nil
	}
	var uid uint32
	err := w.DB.InTx(ctx, func(tx store.Tx) (err error) {
		uid, err = accept.Reside(ctx, tx, w.FirstUID, of)
		return err
	})
	return sandbox.Owner{UID: uid, GID: uid}, err
}

// makePlaces makes what a sandbox is shown and its user does not own: open to it, whatever the umask.
func makePlaces(places, empty string) error {
	if err := os.MkdirAll(filepath.Dir(places), 0o700); err != nil {
		return err
	}
	for _, dir := range []string{places, filepath.Join(places, "agent"), filepath.Join(places, ".git")} {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	return errors.Join(os.WriteFile(empty, nil, 0o644), os.Chmod(empty, 0o644))
}

// makeFolders makes the folders of a group: what it writes, which is its own, and the places where that is shown, which are not.
func (w *worker) makeFolders(of group.Folder, owner sandbox.Owner) (string, error) {
	top, work := filepath.Join(w.Folder, string(of)), written(w.Folder, of)
	aside := whole.Fresh(work) // also what was cleared, and not removed to its end
	if err := whole.Remove(w.Ops, "group:clear", aside); err != nil {
		return "", fmt.Errorf("make the folders of group %s: %w", of, err)
	}
	err := w.Ops.Do("group:folders", func() error {
		if err := makePlaces(filepath.Join(top, "places"), filepath.Join(w.Folder, "empty")); err != nil {
			return err
		}
		switch _, err := os.Lstat(work); {
		case err == nil:
			return os.Chmod(work, 0o700) // its agent may have closed it, and no session could begin in it again
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		for _, dir := range []string{aside, filepath.Join(aside, "memory")} {
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			if err := own(dir, owner); err != nil {
				return err
			}
		}
		return os.Rename(aside, work)
	})
	if err != nil {
		return "", fmt.Errorf("make the folders of group %s: %w", of, err)
	}
	return top, nil
}

func own(dir string, owner sandbox.Owner) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(dir, int(owner.UID), int(owner.GID))
}

// shown are what a session of a group sees: its own files, and what the group is, which it cannot write.
func (w *worker) shown(tree, places string) []sandbox.Bind {
	all := []sandbox.Bind{
		{Source: filepath.Join(places, "agent"), Target: WorkFolder, Writable: true},
		{Source: filepath.Join(tree, "runner"), Target: RunnerFolder},
	}
	if _, err := os.Lstat(filepath.Join(tree, "skills")); err == nil {
		all = append(all, sandbox.Bind{Source: filepath.Join(tree, "skills"), Target: SkillsFolder})
	}
	words := filepath.Join(tree, "AGENTS.md")
	if _, err := os.Lstat(words); err != nil {
		words = filepath.Join(w.Parts.Folder, "empty") // so that the agent can put nothing in their place
	}
	for _, name := range instructions {
		all = append(all, sandbox.Bind{Source: words, Target: WorkFolder + "/" + name})
	}
	return all
}

// system is what a group's agent is told once: its prompts, in the order of their names, and which skills it has.
func (w *worker) system(ctx context.Context, g group.Group) (string, error) {
	oids := make([]git.OID, len(g.Prompts))
	for i, p := range g.Prompts {
		oids[i] = p.OID
	}
	var texts []string
	err := w.Home.Blobs(ctx, oids, func(_ git.OID, _ int64, r io.Reader) error {
		text, err := io.ReadAll(r)
		texts = append(texts, strings.TrimSpace(string(text)))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the prompts of group %s: %w", g.Folder, err)
	}
	return joined(strings.Join(texts, "\n\n"), tellSkills(g.Skills)), nil
}

// wordsMax is how much of the end of a transcript goes into the log.
const wordsMax = 2 << 10

// lastWords are the last lines that a session printed, for the log (CH-084).
func lastWords(of path.Session) string {
	said, err := path.Tail(of.Dir, wordsMax)
	if err != nil {
		return "its transcript cannot be read: " + err.Error()
	}
	return said
}
