package stuck_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"sallyport/internal/rule/stuck"
)

const (
	up   = 100 * time.Hour // since boot
	mine = 7               // the fence of this run
)

var (
	wall = time.Date(2026, 3, 8, 1, 30, 0, 0, time.UTC)
	now  = stuck.Now{Up: up, Wall: wall.In(time.FixedZone("", 3600))}
)

func ago(d time.Duration) time.Duration { return up - d }

// at work is a session whose agent has just said something, with one message in process.
func atWork(change func(s *stuck.Session)) stuck.Session {
	s := stuck.Session{
		Running: true, Started: ago(3 * time.Hour), Event: ago(time.Second), Fence: mine,
		Rows: []stuck.Row{{ID: "m1", Claimed: ago(2 * time.Hour), Fence: mine}},
	}
	change(&s)
	return s
}

func claimed(d time.Duration) func(s *stuck.Session) {
	return func(s *stuck.Session) { s.Event, s.Rows[0].Claimed = ago(d+time.Second), ago(d) }
}

func pending(id string, tries int, wait time.Duration, because string) stuck.Reset {
	return stuck.Reset{ID: id, Tries: tries, Due: wall.Add(wait), Reason: because}
}

func TestWhatExplainsASilenceAndWhatDoesNot(t *testing.T) {
	tool := func(name string, started, declared time.Duration) func(s *stuck.Session) {
		return func(s *stuck.Session) {
			s.Event, s.Tools = started, append(s.Tools, stuck.Tool{Name: name, Started: started, Declared: declared})
		}
	}
	both := func(fs ...func(s *stuck.Session)) func(s *stuck.Session) {
		return func(s *stuck.Session) {
			for _, f := range fs {
				f(s)
			}
		}
	}
	set := func(f func(s *stuck.Session)) func(s *stuck.Session) { return f }

	for name, c := range map[string]struct {
		s       func(s *stuck.Session)
		act     stuck.Act
		because string
	}{
		"at work":                                 {func(*stuck.Session) {}, stuck.Leave, ""},
		"a pause of 12 s":                         {claimed(12 * time.Second), stuck.Leave, ""},
		"nothing for a minute after a claim":      {claimed(time.Minute), stuck.Leave, ""},
		"nothing for longer":                      {claimed(time.Minute + 1), stuck.Kill, "the agent did nothing with the message for 1 minute"},
		"the same, pushed into a turn":            {both(claimed(2*time.Minute), set(func(s *stuck.Session) { s.Rows[0].Pushed = true })), stuck.Leave, ""},
		"the same, woken by this sweep":           {both(claimed(2*time.Minute), set(func(s *stuck.Session) { s.Woken = true })), stuck.Leave, ""},
		"an event since the claim":                {both(claimed(2*time.Minute), set(func(s *stuck.Session) { s.Event = ago(2*time.Minute - 1) })), stuck.Leave, ""},
		"an event at the claim":                   {both(claimed(2*time.Minute), set(func(s *stuck.Session) { s.Event = ago(2 * time.Minute) })), stuck.Kill, "did nothing"},
		"a request that was answered since":       {both(claimed(2*time.Minute), set(func(s *stuck.Session) { s.Door.Moved = ago(time.Minute) })), stuck.Leave, ""},
		"a request at the claim, answered":        {both(claimed(2*time.Minute), set(func(s *stuck.Session) { s.Door.Moved = ago(2 * time.Minute) })), stuck.Kill, "did nothing"},
		"a request from before, answered":         {both(claimed(2*time.Minute), set(func(s *stuck.Session) { s.Door.Moved = ago(3 * time.Minute) })), stuck.Kill, "did nothing"},
		"a request from before, still open":       {both(claimed(2*time.Minute), set(func(s *stuck.Session) { s.Door = stuck.Door{Open: 1, Moved: ago(3 * time.Minute)} })), stuck.Leave, ""},
		"a server said to wait":                   {both(claimed(2*time.Minute), set(func(s *stuck.Session) { s.Door = stuck.Door{Moved: ago(3 * time.Minute), Until: up} })), stuck.Leave, ""},
		"a server said to wait, and that is over": {both(claimed(2*time.Minute), set(func(s *stuck.Session) { s.Door = stuck.Door{Moved: ago(3 * time.Minute), Until: up - 1} })), stuck.Kill, "did nothing"},
		"a second message that nobody looked at": {func(s *stuck.Session) {
			s.Event = ago(90 * time.Second)
			s.Rows = append(s.Rows, stuck.Row{ID: "m2", Claimed: ago(80 * time.Second), Fence: mine})
		}, stuck.Kill, "did nothing"},
		"a program that still begins":            {both(claimed(0), set(func(s *stuck.Session) { s.Event, s.Rows[0].Told = ago(time.Hour/2), ago(150*time.Second) })), stuck.Leave, ""},
		"a program that begins for too long":     {both(claimed(0), set(func(s *stuck.Session) { s.Rows[0].Claimed, s.Rows[0].Told = 0, ago(150*time.Second+1) })), stuck.Kill, "the agent's program was not ready for the message within 150 seconds"},
		"a program that began a while ago":       {both(claimed(time.Minute), set(func(s *stuck.Session) { s.Event = ago(3 * time.Minute) })), stuck.Leave, ""},
		"silent for 30 minutes":                  {func(s *stuck.Session) { s.Event = ago(30 * time.Minute) }, stuck.Leave, ""},
		"silent for longer":                      {func(s *stuck.Session) { s.Event = ago(30*time.Minute + 1) }, stuck.Kill, "the agent gave no sign of life for 30 minutes"},
		"silent for longer, woken by this sweep": {func(s *stuck.Session) { s.Event, s.Woken = ago(time.Hour), true }, stuck.Leave, ""},
		"silent, a stream that moves": {func(s *stuck.Session) {
			s.Event, s.Door = ago(time.Hour), stuck.Door{Open: 1, Moved: ago(30 * time.Minute)}
		}, stuck.Leave, ""},
		"silent, a stream that hangs": {func(s *stuck.Session) {
			s.Event, s.Door = ago(time.Hour), stuck.Door{Open: 1, Moved: ago(30*time.Minute + 1)}
		}, stuck.Kill, "no sign of life"},
		"silent, told to wait": {func(s *stuck.Session) {
			s.Event, s.Door = ago(time.Hour), stuck.Door{Moved: ago(time.Hour), Until: up + time.Minute}
		}, stuck.Leave, ""},
		"silent, told to wait, a while ago": {func(s *stuck.Session) {
			s.Event, s.Door = ago(time.Hour), stuck.Door{Moved: ago(time.Hour), Until: ago(30*time.Minute + 1)}
		}, stuck.Kill, "no sign of life"},
		"silent, told to wait for ever": {func(s *stuck.Session) {
			s.Event, s.Door = ago(8*time.Hour), stuck.Door{Moved: ago(6*time.Hour + 30*time.Minute + 1), Until: up + 1000*time.Hour}
		}, stuck.Kill, "no sign of life"},
		"a clock that runs ahead does not hold it": {both(claimed(2*time.Minute), set(func(s *stuck.Session) { s.Started = up + time.Hour })), stuck.Kill, "did nothing"},
		"idle":                                       {func(s *stuck.Session) { s.Rows, s.Event = nil, ago(29*time.Minute) }, stuck.Leave, ""},
		"idle for longer":                            {func(s *stuck.Session) { s.Rows, s.Event = nil, ago(31*time.Minute) }, stuck.Kill, "the agent had nothing to do for 30 minutes"},
		"just begun, no event yet":                   {func(s *stuck.Session) { s.Rows, s.Event, s.Started = nil, 0, ago(time.Minute) }, stuck.Leave, ""},
		"a tool, nothing declared":                   {tool("Read", ago(30*time.Minute), 0), stuck.Leave, ""},
		"the moment that it has to say so":           {tool("Read", ago(30*time.Minute+10*time.Second-1), 0), stuck.Leave, ""},
		"after that":                                 {tool("Read", ago(30*time.Minute+10*time.Second), 0), stuck.Interrupt, "the agent's tool Read runs longer than 30 minutes"},
		"Bash with two hours":                        {tool("Bash", ago(2*time.Hour), 2*time.Hour), stuck.Leave, ""},
		"Bash with two hours, over":                  {tool("Bash", ago(2*time.Hour+11*time.Second), 2*time.Hour), stuck.Interrupt, "the agent's tool Bash runs longer than 2 hours"},
		"Bash with ten seconds":                      {tool("Bash", ago(19*time.Second), 10*time.Second), stuck.Leave, ""},
		"Bash with ten seconds, over":                {tool("Bash", ago(20*time.Second), 10*time.Second), stuck.Interrupt, "longer than 10 seconds"},
		"Bash with a year":                           {tool("Bash", ago(24*time.Hour+10*time.Second), 365*24*time.Hour), stuck.Interrupt, "longer than 24 hours"},
		"Bash with less than nothing":                {tool("Bash", ago(20*time.Minute), -time.Hour), stuck.Leave, ""},
		"over, with a stream that moves":             {both(tool("Bash", ago(time.Hour), time.Minute), set(func(s *stuck.Session) { s.Door = stuck.Door{Open: 1, Moved: up} })), stuck.Interrupt, "1 minute"},
		"over, interrupted":                          {both(tool("Bash", ago(time.Hour), time.Minute), set(func(s *stuck.Session) { s.Interrupted = ago(30*time.Second - 1) })), stuck.Leave, ""},
		"over, interrupted in vain":                  {both(tool("Bash", ago(time.Hour), time.Minute), set(func(s *stuck.Session) { s.Interrupted = ago(30 * time.Second) })), stuck.Kill, "the agent's tool Bash ran longer than 1 minute and did not stop when the host interrupted the turn"},
		"an interruption of an earlier turn":         {both(tool("Bash", ago(10*time.Second), time.Minute), set(func(s *stuck.Session) { s.Interrupted = ago(time.Minute) })), stuck.Leave, ""},
		"two tools, the older within two hours":      {both(tool("Bash", ago(time.Hour), 2*time.Hour), tool("Read", ago(20*time.Minute), 0)), stuck.Leave, ""},
		"two tools, the younger over":                {both(tool("Bash", ago(time.Hour), 2*time.Hour), tool("Read", ago(31*time.Minute), 0)), stuck.Interrupt, "the agent's tool Read runs longer than 30 minutes"},
		"two tools, the older over":                  {both(tool("Bash", ago(time.Hour), time.Minute), tool("Read", ago(time.Second), 0)), stuck.Interrupt, "the agent's tool Bash runs longer than 1 minute"},
		"two tools, interrupted":                     {both(tool("Bash", ago(time.Hour), 2*time.Hour), tool("Read", ago(31*time.Minute), 0), set(func(s *stuck.Session) { s.Interrupted = ago(20 * time.Second) })), stuck.Leave, ""},
		"two tools, interrupted in vain":             {both(tool("Bash", ago(time.Hour), 2*time.Hour), tool("Read", ago(31*time.Minute), 0), set(func(s *stuck.Session) { s.Interrupted = ago(30 * time.Second) })), stuck.Kill, "the agent's tool Read ran longer than 30 minutes and did not stop"},
		"interrupted, and another goes on":           {both(tool("Bash", ago(time.Hour), 2*time.Hour), set(func(s *stuck.Session) { s.Interrupted = ago(30 * time.Second) })), stuck.Kill, "the agent's tool Bash did not stop when the host interrupted the turn"},
		"interrupted, and another begins":            {both(tool("Bash", ago(time.Hour), time.Minute), tool("Read", ago(time.Second), 0), set(func(s *stuck.Session) { s.Interrupted = ago(20 * time.Second) })), stuck.Leave, ""},
		"two tools, one of them off":                 {both(tool("Bash", ago(time.Hour), 2*time.Hour), tool("EnterWorktree", ago(time.Second), 0)), stuck.Kill, "EnterWorktree, which is off"},
		"a tool that is off":                         {tool("AskUserQuestion", ago(time.Second), 0), stuck.Kill, "the agent began the tool AskUserQuestion, which is off here"},
		"a tool that is off, woken by this sweep":    {both(tool("ExitWorktree", ago(time.Second), 0), set(func(s *stuck.Session) { s.Woken = true })), stuck.Leave, ""},
		"a name that is to be believed to be a kill": {tool("\x1b[2JRead\n\u202e"+strings.Repeat("x", 1<<20), ago(time.Hour), 0), stuck.Interrupt, `\x1b[2JRead \u202exxx`},
	} {
		got := stuck.Judge(now, atWork(c.s))
		if got.Act != c.act || (c.because == "") != (got.Because == "") || !strings.Contains(got.Because, c.because) || len(got.Because) > 300 {
			t.Errorf("%s: %s %.200q", name, got.Act, got.Because)
		}
		if (got.Act == stuck.Kill && len(atWork(c.s).Rows) > 0) != (len(got.Rows) > 0) {
			t.Errorf("%s: %s with rows %v", name, got.Act, got.Rows)
		}
	}
	for _, name := range []string{"AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "EnterWorktree", "ExitWorktree"} {
		if got := stuck.Judge(now, atWork(tool(name, ago(0), 0))); got.Act != stuck.Kill {
			t.Errorf("%s: %s", name, got.Act)
		}
	}
}

func TestWhatBecomesOfTheMessagesOfASession(t *testing.T) {
	const silent, ended, host = "the agent gave no sign of life for 30 minutes", "the agent's sandbox ended in the middle of the turn", "the host ended in the middle of the turn"
	hung := func(s *stuck.Session) { s.Event = ago(time.Hour) }
	for name, c := range map[string]struct {
		s    func(s *stuck.Session)
		act  stuck.Act
		want []stuck.Reset
	}{
		"killed": {hung, stuck.Kill, []stuck.Reset{pending("m1", 1, time.Second, silent)}},
		"killed, with words that were pushed into the turn": {func(s *stuck.Session) {
			hung(s)
			s.Rows = append(s.Rows, stuck.Row{ID: "m2", Claimed: ago(time.Minute), Fence: mine, Pushed: true, Tries: 2})
		}, stuck.Kill, []stuck.Reset{pending("m1", 1, time.Second, silent), pending("m2", 2, 0, silent)}},
		"killed for the fourth time": {func(s *stuck.Session) { hung(s); s.Rows[0].Tries = 3 }, stuck.Kill, []stuck.Reset{pending("m1", 4, 10*time.Minute, silent)}},
		"killed for the fifth time": {func(s *stuck.Session) { hung(s); s.Rows[0].Tries = 4 }, stuck.Kill,
			[]stuck.Reset{{ID: "m1", Dead: true, Tries: 5, Reason: "5 tries have failed, the last one because " + silent}}},
		"not running": {func(s *stuck.Session) { s.Running = false; s.Rows[0].Tries = 1 }, stuck.Leave, []stuck.Reset{pending("m1", 2, 15*time.Second, ended)}},
		"not running, everything that it had": {func(s *stuck.Session) {
			s.Running, s.Woken = false, true
			s.Rows = append(s.Rows, stuck.Row{ID: "m2", Fence: mine, Pushed: true, Tries: 2})
		}, stuck.Leave, []stuck.Reset{pending("m1", 1, time.Second, ended), pending("m2", 3, 2*time.Minute, ended)}},
		"not running, nothing in process": {func(s *stuck.Session) { s.Running, s.Rows = false, nil }, stuck.Leave, nil},
		"left by an earlier run, beside this one's": {func(s *stuck.Session) {
			s.Rows = append(s.Rows, stuck.Row{ID: "old", Fence: mine - 1})
		}, stuck.Leave, []stuck.Reset{pending("old", 1, time.Second, host)}},
		"left by an earlier run, just woken": {func(s *stuck.Session) { s.Woken = true; s.Rows[0].Fence = mine - 1 }, stuck.Leave, []stuck.Reset{pending("m1", 1, time.Second, host)}},
		"taken over by a later run": {func(s *stuck.Session) {
			hung(s)
			s.Rows = append(s.Rows, stuck.Row{ID: "new", Fence: mine + 1}, stuck.Row{ID: "old", Fence: mine - 1})
		}, stuck.Kill, nil},
		"taken over by a later run, and not running": {func(s *stuck.Session) { s.Running = false; s.Rows[0].Fence = mine + 1 }, stuck.Leave, nil},
	} {
		got := stuck.Judge(now, atWork(c.s))
		if got.Act != c.act || !reflect.DeepEqual(got.Rows, c.want) {
			t.Errorf("%s: %s\n got %+v\nwant %+v", name, got.Act, got.Rows, c.want)
		}
	}

	// An agent that failed, and said so, is the same (CH-103).
	got := stuck.Return(now, []stuck.Row{{ID: "m1"}, {ID: "m2", Pushed: true}}, "the agent said: no")
	if want := []stuck.Reset{pending("m1", 1, time.Second, "the agent said: no"), pending("m2", 0, 0, "the agent said: no")}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestAClockThatWasSetBackMakesNobodyWaitLonger(t *testing.T) {
	got := stuck.Clamp(now, []stuck.Row{
		{ID: "a", Tries: 2, Due: wall.Add(time.Hour)}, {ID: "b", Tries: 2, Due: wall.Add(15 * time.Second)}, {ID: "c", Due: wall.Add(time.Hour)}, {ID: "d", Tries: 4, Due: wall.Add(-time.Hour)},
		{ID: "e", Due: wall},
	})
	if want := []stuck.Reset{pending("a", 2, 15*time.Second, "the clock was set back"), pending("c", 0, 0, "the clock was set back")}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// A message that the host was killed over is answered within 5 s (CH-034); the last wait outlives a short outage.
func TestTheWaitsGrowFromAMomentToMinutes(t *testing.T) {
	if stuck.Backoff(1) > 2*time.Second || stuck.Backoff(stuck.TriesMax-1) < 5*time.Minute {
		t.Errorf("the first wait is %s, the last %s", stuck.Backoff(1), stuck.Backoff(stuck.TriesMax-1))
	}
	for tries := 2; tries < stuck.TriesMax; tries++ {
		if stuck.Backoff(tries) <= stuck.Backoff(tries-1) {
			t.Errorf("wait %d is %s after %s", tries, stuck.Backoff(tries), stuck.Backoff(tries-1))
		}
	}
	for _, tries := range []int{-1, 0} {
		if stuck.Backoff(tries) != stuck.Backoff(1) {
			t.Errorf("after %d tries: %s", tries, stuck.Backoff(tries))
		}
	}
	if stuck.Backoff(100) != stuck.Backoff(stuck.TriesMax-1) {
		t.Error("after 100 tries")
	}
}
