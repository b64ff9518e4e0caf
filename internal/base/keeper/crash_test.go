package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/release"
)

// endings are the ways in which a host change comes to its end: what the new version does once it was started twice.
var endings = []struct {
	name  string
	does  func(*theatre, *daemon)
	first bool // it does so at its first start already
}{
	{"the code is right", func(_ *theatre, d *daemon) { d.ask(wordConfirm, plain); d.ask(wordFinalized, "") }, false},
	{"nobody confirms", func(_ *theatre, d *daemon) { d.beats(time.Hour) }, false},
	{"somebody rolls it back", func(_ *theatre, d *daemon) { d.ask(wordRollBack, "") }, false},
	{"it guesses codes", (*theatre).guesses, false},
	{"it exits", func(_ *theatre, d *daemon) { d.exits(0) }, false},
	{"it never answers", func(_ *theatre, d *daemon) { <-d.over }, true},
}

// clocks are what the clocks may do while no keeper runs.
var clocks = []struct {
	name string
	down time.Duration // for so long
	set  time.Duration // by so much the clock was moved that can be set
	boot string        // another machine's start
	late bool          // a deadline has passed then, or that is what has to be believed
}{
	{name: "at once"},
	{name: "an hour later", down: time.Hour, late: true},
	{name: "the clock is set an hour forward", set: time.Hour},
	{name: "the clock is set an hour back", set: -time.Hour},
	{name: "after a boot", down: time.Second, boot: "c"},
	{name: "after a boot, an hour later", down: time.Hour, boot: "c", late: true},
	{name: "after a boot, an hour ahead", set: time.Hour, boot: "c", late: true},
	{name: "after a boot, an hour behind", set: -time.Hour, boot: "c", late: true},
}

// theatre is a home in which each daemon plays by what it is, and by the step at which it begins.
type theatre struct {
	*stage
	t        *testing.T
	ending   int
	set      time.Duration
	boot     string
	daemons  []*daemon
	wrong    int  // codes that were heard to be wrong
	kept     bool // the disk has said that it is confirmed
	back     bool // the disk has said that it goes back
	reverted int
	runs     string // which version runs
	full     bool   // the disk is, to the end
}

func newTheatre(t *testing.T, ending int) *theatre {
	t.Helper()
	return &theatre{stage: newStage(t, Armed), t: t, ending: ending, boot: "b"}
}

func (s *theatre) clock() (deadman.Moment, error) {
	now, err := s.now()
	now.Wall, now.Boot = now.Wall.Add(s.set), s.boot
	return now, err
}

// sees looks at the disk.
func (s *theatre) sees() Step {
	r, is, err := RecordOf(s.home)
	if err != nil {
		s.t.Errorf("the record: %v", err)
	}
	s.kept = s.kept || r.Step == Confirmed
	s.back = s.back || r.Step == Back
	if s.kept && s.back {
		s.t.Error("it was confirmed, and went back")
	}
	if !is {
		return ""
	}
	return r.Step
}

// guesses does what a version does that wants to confirm itself.
func (s *theatre) guesses(d *daemon) {
	for {
		if got := d.ask(wordConfirm, "AAAA-AAAA-AAAA"); !strings.HasPrefix(got, "wrong") {
			return
		}
		s.wrong++
	}
}

// plays is the life of a daemon that begins now.
func (s *theatre) plays(which string, step Step) func(*daemon) {
	e := endings[s.ending]
	switch {
	case which == "old" && step == Armed:
		return handsOver
	case which == "new" && step == Handed && e.first:
		return func(d *daemon) { e.does(s, d) }
	case which == "new" && step == Handed:
		return answers
	case which == "new" && step == Confirmed:
		return func(d *daemon) { d.ready(); d.ask(wordFinalized, ""); quits(d) }
	case which == "new":
		return func(d *daemon) { d.ready(); d.ask(wordAsked, ""); e.does(s, d); quits(d) }
	}
	return quits
}

func (s *theatre) starts(_ Last, digest string) (child, error) {
	step, current := s.sees(), digest
	if current == "" {
		var err error
		if current, err = release.In(s.home, disk.Ops{}).Current(); err != nil {
			return child{}, err
		}
	}
	s.runs = map[string]string{s.r.Old: "old", s.r.New: "new"}[current]
	if s.runs == "new" && s.back || s.runs == "old" && s.kept {
		s.t.Errorf("the %s version is started at step %q: confirmed %t, back %t", s.runs, step, s.kept, s.back)
	}
	if s.runs == "old" && s.back && s.reverted == 0 {
		s.t.Error("the old version is started before anything went back")
	}
	program, err := open(current, release.In(s.home, disk.Ops{}), old(s.home, disk.Ops{}))
	if err != nil {
		return child{}, err
	}
	program.Close()
	d := newDaemon()
	s.daemons = append(s.daemons, d)
	go s.plays(s.runs, step)(d)
	return d.child(), nil
}

// keeps has a keeper run in this home, with operations that may fail.
func (s *theatre) keeps(ops disk.Ops) (crashed bool, err error) {
	p := s.parts()
	p.start = s.starts
	p.tell = func(format string, a ...any) {
		s.say(format, a...)
		s.sees()
	}
	p.host = &host{home: s.home, ops: ops, now: s.clock, tell: p.tell,
		room: func(int64) string { return "" },
		revert: func(context.Context, Record) error {
			if _, err := os.Stat(filepath.Join(Folder(s.home), reserveName)); err == nil {
				s.t.Error("the reserve is still taken")
			}
			s.reverted++
			return nil
		},
	}
	return disktest.Run(func() error {
		p.host.clean()
		status, err := keep(s.t.Context(), p)
		if status != 0 {
			err = errors.Join(err, fmt.Errorf("status %d", status))
		}
		return err
	})
}

// dies is what becomes of the daemons whose keeper is gone.
func (s *theatre) dies() {
	for _, d := range s.daemons {
		d.exits(-1)
	}
	synctest.Wait()
}

// judge holds what must be so once all is over: one version runs, whole, and nothing is left. It returns which.
func (s *theatre) judge() string {
	s.t.Helper()
	synctest.Wait() // a daemon that was ended may still be writing down what it heard
	want := s.r.Old
	if s.kept {
		want = s.r.New
	}
	if now, err := release.In(s.home, disk.Ops{}).Current(); now != want || err != nil {
		s.t.Errorf("current is %.12s, want %.12s, %v", now, want, err)
	}
	switch before, err := release.In(s.home, disk.Ops{}).Previous(); {
	case s.kept && before != s.r.Old && !s.full:
		s.t.Errorf("previous is %.12s, %v, and not the one that was kept before", before, err)
	case !s.kept && !errors.Is(err, fs.ErrNotExist):
		s.t.Errorf("previous is %.12s, %v, of which there was none", before, err)
	}
	if step := s.sees(); step != "" || lies(s.t, s.home) != "" {
		s.t.Errorf("step %q, left over: %q", step, lies(s.t, s.home))
	}
	if s.wrong > triesMax {
		s.t.Errorf("%d wrong codes were answered", s.wrong)
	}
	if runs := map[bool]string{true: "new", false: "old"}[s.kept]; s.runs != runs {
		s.t.Errorf("the %s version runs, and not the %s one", s.runs, runs)
	}
	for _, digest := range []string{s.r.Old, s.r.New} {
		if program, err := open(digest, release.In(s.home, disk.Ops{})); err != nil {
			s.t.Errorf("a release is gone: %v", err)
		} else {
			program.Close()
		}
	}
	if s.t.Failed() {
		s.t.Logf("%s", strings.Join(s.got, "\n"))
	}
	return s.runs
}

// A keeper that dies at any of its operations, in any ending of a host change, is followed by one that brings it to the same end, or back.
// Meanwhile the machine may have stood still, been started again, or have had its clock set.
func TestAHostChangeComesToItsEndWhereverItsKeeperDies(t *testing.T) {
	type try struct{ ending, clock int }
	var tries []try
	for e := range endings {
		for c := range clocks {
			tries = append(tries, try{e, c})
		}
	}
	for _, n := range disktest.Sample(t, tries, 17) {
		t.Run(endings[n.ending].name+", "+clocks[n.clock].name, func(t *testing.T) {
			t.Parallel()
			disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
				synctest.Test(t, func(t *testing.T) { dieAndGoOn(t, n.ending, n.clock, c) })
			})
		})
	}
}

func dieAndGoOn(t *testing.T, ending, clock int, c *disktest.Crash) {
	s := newTheatre(t, ending)
	if err := s.r.write(disk.Ops{}, s.home); err != nil {
		t.Fatal(err)
	}
	crashed, err := s.keeps(c.Ops())
	if err != nil || crashed != c.Crashed() {
		t.Fatalf("crashed = %v, %v", crashed, err)
	}
	at := s.sees()
	s.dies()
	if crashed {
		then := clocks[clock]
		time.Sleep(then.down)
		s.set = then.set
		if then.boot != "" {
			s.boot = then.boot
		}
		s.say("a keeper begins at step %q", at)
		if _, err := s.keeps(disk.Ops{}); err != nil {
			t.Fatal(err)
		}
	}
	runs := s.judge()
	if late := crashed && clocks[clock].late; (at == Armed || at.onTrial()) && late && runs != "old" {
		t.Errorf("step %q went on after its time", at)
	} else if ending == 0 && !late && runs != "new" {
		t.Errorf("it was confirmed, and the %s version runs:\n%s", runs, strings.Join(s.got, "\n"))
	}
}

// A disk that is full from any operation on ends in the old version, or in the new one if that was confirmed on the disk. It is free again
// with what is kept for the way back, or once somebody has seen to it.
func TestAHostChangeComesToItsEndWhereverTheDiskFills(t *testing.T) {
	for _, until := range []string{"the reserve is free", "an hour later"} {
		for ending, e := range endings {
			t.Run(e.name+", until "+until, func(t *testing.T) {
				t.Parallel()
				var names []string
				fill := func(t *testing.T, from int) {
					synctest.Test(t, func(t *testing.T) {
						s := newTheatre(t, ending)
						if err := s.r.write(disk.Ops{}, s.home); err != nil {
							t.Fatal(err)
						}
						s.full = from >= 0 && until == "an hour later"
						begins, n, freed := time.Now(), 0, false
						ops := disk.Ops{Around: func(op string, do func() error) error {
							if n++; from < 0 {
								names = append(names, op)
							}
							gone := map[string]bool{"keeper:free": true, "keeper:forget": true, "keeper:remove": true, "deadman:disarm": true, "release:remove": true, "release:discard": true}
							full := from >= 0 && n > from && !freed && time.Since(begins) < time.Hour
							if full && !gone[op] {
								return syscall.ENOSPC
							}
							err := do()
							freed = freed || from >= 0 && n > from && op == "keeper:free" && until == "the reserve is free"
							return err
						}}
						if _, err := s.keeps(ops); err != nil {
							t.Fatal(err)
						}
						s.judge()
					})
				}
				fill(t, -1)
				for _, from := range disktest.Sample(t, disktest.Points(t, names), 7) {
					t.Run(fmt.Sprintf("from_%d_%s", from, names[from]), func(t *testing.T) { fill(t, from) })
				}
			})
		}
	}
}

// What a keeper goes by after a loss of power must have been on the disk before it was acted on, and the record before its name.
func TestEachStepIsOnTheDiskBeforeItIsActedOn(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		home, r := armable(t)
		if err := os.CopyFS(dir, os.DirFS(home)); err != nil {
			t.Fatal(err)
		}
		if err := Arm(disk.Ops{}, dir, r, 1<<20); err != nil {
			t.Fatal(err)
		}
		disktest.Say("armed")
		for _, name := range []string{recordName, reserveName} {
			disktest.Private(t, filepath.Join(Folder(dir), name), ".")
		}
		if info, err := os.Stat(Folder(dir)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("its folder: %v, %v", info.Mode(), err)
		}
		h := &host{home: dir, now: deadman.Now, tell: func(string, ...any) {}, room: func(int64) string { return "" },
			revert: func(context.Context, Record) error { disktest.Say("revert"); return nil }}
		raw := ask{Change: r.Change}
		if _, answer := h.answer(wordHandOver, raw, false); answer.Refused != "" {
			t.Fatal(answer.Refused)
		}
		disktest.Say("handed")
		if _, fresh, err := h.turn(t.Context()); err != nil || !fresh {
			t.Fatalf("the new one is not next: %v", err)
		}
		disktest.Say("begun")
		if _, err := h.happen(failed, "why", nil); err != nil {
			t.Fatal(err)
		}
		disktest.Say("back")
		if _, _, err := h.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		disktest.Say("reverted")
		if _, err := h.happen(answered, "", nil); err != nil {
			t.Fatal(err)
		}
		disktest.Say("over")
	})
	const keeper, coming, record = `\.state/keeper`, `\.state/keeper/\.record\.json\.new`, `\.state/keeper/record\.json`
	step := []string{`fsync ` + coming, `rename ` + coming + ` ` + record, `fsync ` + keeper}
	use := []string{`rename \.state/releases/\.current\.new \.state/releases/current`, `fsync \.state/releases`}
	all := func(parts ...any) (all []string) {
		for _, p := range parts {
			switch p := p.(type) {
			case string:
				all = append(all, p)
			case []string:
				all = append(all, p...)
			}
		}
		return all
	}
	const copied = `\.state/keeper/old`
	disktest.Ordered(t, calls, all(`fsync \.state`, `fsync \.`, `fsync `+copied+`/\.new-\d+/sallyport`, `rename `+copied+`/\.new-\d+ `+copied+`/[0-9a-f]{64}`, `fsync `+copied,
		`fsync `+keeper+`/reserve`, `fsync `+keeper, step, "say armed", step, "say handed", use, "say begun", step, "say back",
		`remove `+keeper+`/reserve`, `fsync `+keeper, "say revert", use, "say reverted",
		`remove `+keeper+`/old`, `fsync `+keeper, `remove `+record, `fsync `+keeper, "say over")...)
}
