package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/zone"
	"sallyport/internal/door/tools"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/layer"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/tool"
	"sallyport/internal/who/person"
)

// dispatcher runs the conversations of the home.
func (d *Daemon) dispatcher(owner person.Owner, state string) *dispatch.Dispatcher {
	settings := d.began
	cache := settings.Layers
	talks := talks{d.Home, d.Ops, d.log}
	p := dispatch.Parts{
		Ledger: d.control.Ledger, Runtime: d.control.Runtime, Owner: owner, Ops: d.Ops,
		Home: git.Dir{Path: filepath.Join(d.Home, ".git"), Ops: d.Ops},
		Trees: layer.New(layer.Config{
			Root: filepath.Join(state, "trees"), Ops: d.Ops, Keep: time.Duration(cache.Keep), QuotaBytes: int64(cache.Quota), Whole: true,
			Standing: func(func(git.OID)) error { return nil }, // who shows one holds it
		}),
		Folder: filepath.Join(state, "groups"), Desk: d.control.Parts.Desk, Swaps: d.control, Changes: d.control,
		Coded: coded(d.Home, d.control.Codes), Extra: d.control.Parts.Extra, Zone: talks.zone, Quiet: d.admitsNobody,
		Self:   sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())},
		AtOnce: settings.Conversations.AtOnce, PromptOf: dispatch.PromptLimit(),
	}
	if d.ownUID {
		p.FirstUID = firstUID(d.Home)
	}
	return dispatch.New(p)
}

// coded returns whether a person may know the code of a change of the host at this moment: it was made here, or the keeper has its hash. Where
// that cannot be seen somebody may.
func coded(home string, made *approve.Codes) func() bool {
	return func() bool {
		_, armed, err := keeper.RecordOf(home)
		return armed || err != nil || made.Any()
	}
}

// desk is where the agents of the home ask it for things.
func (d *Daemon) desk() live.Desk {
	return live.Desk{Folder: d.network.folder, Program: toolProgram(d.Self), Open: talks{d.Home, d.Ops, d.log}.desk, Log: d.log}
}

// talks is what conversations ask of the daemon.
type talks struct {
	home string
	ops  disk.Ops
	log  *slog.Logger
}

// told hears of every call. What was done stands in the audit log; what was refused is told here.
func (t talks) told(e tools.Event) {
	if e.Problem != nil {
		t.log.Info("what an agent asked for was refused", "tool", e.Call.Verb, "missed", e.Missed, "because", e.Problem)
	}
}

// toolProgram is what agents ask the host with, beside this program; "" if it is not there.
func toolProgram(self string) string {
	path := filepath.Join(filepath.Dir(self), "sallyport-tool")
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return ""
	}
	return path
}

// desk opens the socket at which the agent of one session asks its host for things.
func (t talks) desk(socket string, owner sandbox.Owner, has map[tool.Name]live.Handler, intake func() string) (func(context.Context) error, error) {
	handlers := map[tool.Name]tools.Handler{}
	for name, do := range has {
		handlers[name] = do
	}
	door, err := tools.Open(t.ops, socket, tools.Session{Handlers: handlers, Intake: intake, Told: t.told})
	if err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if err := t.ops.Do("tools:own", func() error { return os.Lchown(socket, int(owner.UID), int(owner.GID)) }); err != nil {
			return nil, err
		}
	}
	return door.Run, nil
}

// zone is the clock that the people of this home live by, as it is said now (CH-131).
func (t talks) zone() *time.Location { return t.chooseZone().Location }

// chooseZone says of that clock too where its zone was named.
func (t talks) chooseZone() zone.Choice {
	dotEnv, _ := os.ReadFile(filepath.Join(t.home, ".env")) // one that cannot be read names none
	return zone.Of(zone.Sources{Environment: os.Getenv("TZ"), DotEnv: string(dotEnv), System: systemZone()})
}

// systemZone is where the system says which zone it is in.
func systemZone() string {
	if name, err := os.ReadFile("/etc/timezone"); err == nil && strings.TrimSpace(string(name)) != "" {
		return string(name)
	}
	to, _ := os.Readlink("/etc/localtime")
	return to
}
