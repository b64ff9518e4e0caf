package e2e_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/race/racetest"
	"sallyport/internal/daemon"
	"sallyport/internal/door/client"
	"sallyport/internal/inside/adapter"
	"sallyport/internal/inside/rehearser"
	"sallyport/internal/inside/runner"
	"sallyport/internal/inside/tools"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest/scripttest"
	"sallyport/internal/screen/cli"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite/sqlitetest"
)

// TestMain makes the test binary everything a home needs: the daemon, its sandboxes' launcher
// and init, the agents in them and what these ask the host by, and the keeper. So the processes that are killed here are real ones.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == agent.ToolsProgram {
		os.Exit(tools.Main(context.Background(), tools.System()))
	}
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "runner":
			switch os.Args[2] {
			case "adapt":
				os.Exit(adapter.Main(engines()))
			case "rehearse":
				os.Exit(rehearser.Main(os.Args[3:], daemon.RehearseBack))
			case "keep":
				os.Exit(rehearser.Keep(os.Args[3:]))
			}
			os.Exit(runner.Main(os.Args[2:]))
		case "daemon":
			if os.Args[2] == "status" {
				os.Exit(cli.Main(cli.System(cli.Host{}), os.Args[1:]))
			}
			endWithLane()
			os.Exit(serve(os.Args[2:]))
		case "chat": // in a rehearsal
			os.Exit(cli.Main(cli.System(cli.Host{}), os.Args[1:]))
		case "agent":
			syscall.Exit(play(os.Args[2:])) // at once: with the race detector in it os.Exit sleeps a second in there
		case "start", "watch", "serve", "again":
			endWithLane()
			os.Exit(keeper.Main(os.Args[1:], os.Stdout, os.Stderr))
		}
	}
	// One more at a time than there are processors, as the stories of cmd/sallyport: many wait for a deadline, or for a daemon to end. The
	// command line may say otherwise.
	_ = flag.Set("test.parallel", strconv.Itoa(runtime.GOMAXPROCS(0)+1))
	races, err := os.MkdirTemp("", "races")
	if err == nil {
		err = os.Setenv("GORACE", os.Getenv("GORACE")+" "+racetest.Noted(races))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if found := racetest.Found(races); found != "" {
		fmt.Fprint(os.Stderr, found)
		code = 1
	}
	_ = os.RemoveAll(races) // a temporary folder
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // a temporary folder
	}
	os.Exit(code)
}

// engines are the product's, and the one that plays.
func engines() map[string]agent.Engine {
	all := adapter.Engines()
	all["scripted"] = scripttest.Engine{}
	return all
}

// serve is `daemon run --home HOME` and `daemon start --home HOME`, the latter for a keeper.
func serve(args []string) int {
	var line *keeper.Line
	if len(args) == 4 && args[1] == "--kept" {
		args = slices.Delete(args, 1, 2)
		var err error
		if line, err = keeper.Answer(); err != nil {
			fmt.Fprintln(os.Stderr, "daemon:", err)
			return 1
		}
	}
	if len(args) != 3 || args[1] != "--home" {
		fmt.Fprintf(os.Stderr, "daemon: %q\n", args)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	var err error
	switch args[0] {
	case "run":
		err = run(ctx, args[2], line)
	case "revert":
		var ops disk.Ops
		if err = makeNewer(ctx, args[2]); err == nil {
			ops, err = fatal(args[2], nil)
		}
		if err == nil {
			err = copyBefore(ctx, args[2])
		}
		if err == nil {
			err = daemon.GoBack(ctx, daemon.Options{Home: args[2], Ops: ops})
		}
		if err == nil {
			err = copyAfter(ctx, args[2])
		}
	case "start":
		var self string
		if self, err = os.Executable(); err == nil {
			_, err = client.Starter{Person: client.Me(), Self: self, Wait: time.Minute}.Ensure(ctx, args[2])
		}
	default:
		err = fmt.Errorf("no such word: %q", args[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "daemon:", err)
		return 1
	}
	return 0
}

// unplayed is the driver of agents that speak ACP, as far as they need not run.
type unplayed struct{ scripted }

func (unplayed) Name() string                                { return "acp" }
func (unplayed) Program(t agent.Task) (agent.Program, error) { return agent.Adapt("acp", t, nil) }

// killStep names the variable that says at which step of its keeper's record a daemon begins that the others count for: none is without a
// record. With each they count for all, and every step has a log of its own. Unset, they count for all.
const killStep = "SALLYPORT_TEST_KILL_STEP"

const (
	noStep   = "none"
	eachStep = "each"
)

// fatal are the operations that the environment asks for.
func fatal(home string, kills func()) (disk.Ops, error) {
	want, set := os.LookupEnv(killStep)
	if !set {
		return disktest.FromEnvDoing(kills)
	}
	r, is, err := keeper.RecordOf(home)
	if err != nil {
		return disk.Ops{}, err
	}
	step := string(r.Step)
	if !is {
		step = noStep
	}
	if want == eachStep {
		if err := os.Setenv(disktest.KillLog, os.Getenv(disktest.KillLog)+"."+step); err != nil {
			return disk.Ops{}, err
		}
	} else if want != step {
		return disk.Ops{}, nil
	}
	return disktest.FromEnvDoing(kills)
}

// newer names the variable that has the version on trial leave a database of another schema.
const newer = "SALLYPORT_TEST_NEWER"

// newerSchema is a migration that this program does not know.
const newerSchema = `CREATE TABLE more (x INTEGER) STRICT; ALTER TABLE message_in ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm';
	INSERT INTO more VALUES (1); INSERT INTO goose_db_version (version_id, is_applied) SELECT max(version_id) + 1, 1 FROM goose_db_version`

// makeNewer does so, once.
func makeNewer(ctx context.Context, home string) error {
	done := filepath.Join(home, ".state", "made-newer")
	if _, err := os.Lstat(done); err == nil || os.Getenv(newer) == "" {
		return nil
	}
	db, err := sql.Open("sqlite", filepath.Join(home, ".state", "sallyport.db"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, newerSchema)
	return errors.Join(err, db.Close(), os.WriteFile(done, nil, 0o600))
}

// wentBack are copies of a database beside a home whose host goes back over another schema: its snapshot, as the trial has left it, and as it is
// before the old host serves.
func wentBack(home string) (back sqlitetest.Back) {
	beside := filepath.Join(filepath.Dir(home), "went-")
	return sqlitetest.Back{Snapshot: beside + "snapshot", Trial: beside + "trial", After: beside + "after"}
}

// copyBefore makes the first two, before anything goes back; of a way back that died they are there.
func copyBefore(ctx context.Context, home string) error {
	r, _, err := keeper.RecordOf(home)
	if err != nil || os.Getenv(newer) == "" {
		return err
	}
	back, state := wentBack(home), filepath.Join(home, ".state")
	return errors.Join(
		copyDatabase(ctx, store.SnapshotPath(filepath.Join(state, store.BackupsFolder), id.Change(r.Change)), back.Snapshot, false),
		copyDatabase(ctx, filepath.Join(state, "sallyport.db"), back.Trial, false))
}

// copyAfter makes the last one, anew each time.
func copyAfter(ctx context.Context, home string) error {
	if os.Getenv(newer) == "" {
		return nil
	}
	return copyDatabase(ctx, filepath.Join(home, ".state", "sallyport.db"), wentBack(home).After, true)
}

func copyDatabase(ctx context.Context, from, to string, again bool) error {
	if _, err := os.Lstat(to); err == nil && !again {
		return nil
	}
	if _, err := os.Lstat(from); err != nil { // to open it would make one
		return err
	}
	if err := os.Remove(to + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	db, err := sql.Open("sqlite", from)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, to+".new")
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

// run serves a home with the operations that the environment asks for: plain, fatal or marked.
func run(ctx context.Context, home string, line *keeper.Line) error {
	var kills func() // another process, and not itself
	if whom := os.Getenv(victim); whom != "" {
		kills = func() { strike(whom, home) }
	}
	ops, err := fatal(home, kills)
	if err != nil {
		return err
	}
	if os.Getenv(stray) != "" {
		if err := writeAstray(ctx, home); err != nil {
			return err
		}
	}
	o := daemon.Options{Home: home, Line: line, Ops: ops, Agents: []agent.Driver{scripted{}, unplayed{}}}
	if os.Getenv(graceless) != "" {
		o.Grace = -1
	}
	if addr := os.Getenv(elsewhere); addr != "" {
		o.Outside = allAt(addr)
	}
	return daemon.Run(ctx, o)
}
