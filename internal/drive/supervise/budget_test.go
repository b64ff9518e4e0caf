package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/egress"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/metric"
	"sallyport/internal/store"
)

// owner is a home whose budgets change.
type owner struct {
	mu     sync.Mutex
	limits budget.Limits
	price  budget.Price
}

func (o *owner) Chosen(string) live.Choice {
	o.mu.Lock()
	defer o.mu.Unlock()
	return live.Choice{Price: o.price}
}

func (o *owner) Budgets() budget.Limits {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.limits
}

func (o *owner) says(l budget.Limits) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limits = l
}

// asking is a driver of an adapter whose agent has a model.
type asking struct {
	drivetest.Turning
	wire agent.Wire
}

func (d asking) Program(t agent.Task) (agent.Program, error) {
	p, err := d.Turning.Program(t)
	p.Model = &agent.Endpoint{Wire: d.wire, Base: "https://model.example"}
	return p, err
}

// bank is a home with budgets, and with a model behind ways out.
type bank struct {
	*drivetest.Home
	owner *owner
	ways  *drivetest.Ways
}

func newBank(h *drivetest.Home) *bank {
	b := &bank{h, &owner{}, &drivetest.Ways{}}
	h.Parts.Network, h.Parts.Agency = b.ways, b.owner
	h.Parts.Meter = metric.New(metric.Options{})
	return b
}

// employs has every agent work in these turns, at a model.
func (b *bank) employs(turns ...drivetest.Deed) *drivetest.Troupe {
	p := b.Converses(turns...)
	b.Parts.Agents["played"] = asking{wire: agent.Responses}
	return p
}

// last is the way out that was opened last.
func (b *bank) last() live.Outgoing {
	b.ways.Mu.Lock()
	defer b.ways.Mu.Unlock()
	return b.ways.Opened[len(b.ways.Opened)-1]
}

// spend asks the model as the door would: the answer comes after a while, and uses so much.
func (b *bank) spend(ctx context.Context, tokens int64) error {
	way := b.last()
	over, err := way.Admit(ctx)
	if err != nil {
		return fmt.Errorf("429: %w", err)
	}
	defer over()
	time.Sleep(time.Second)
	way.Used(egress.Usage{At: time.Now(), Model: "m", Input: tokens - 10, Output: 10})
	return nil
}

func TestABudgetThatIsUsedUpBlocksAndOneThatIsRaisedGoesOn(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		b := newBank(h)
		b.owner.says(budget.Limits{TokensPerChange: 1000})
		p := b.employs(
			func(ctx context.Context, s *drivetest.Scene, _ string) (string, error) {
				s.Write("page.txt", "half\n")
				if err := b.spend(ctx, 1200); err != nil {
					t.Errorf("the first request is refused: %v", err)
				}
				return "", b.spend(ctx, 1)
			},
			func(ctx context.Context, s *drivetest.Scene, _ string) (string, error) {
				s.Write("page.txt", "whole\n")
				return "done", b.spend(ctx, 500)
			})
		d, _ := h.Daemon()
		chg := h.Ask(d)
		time.Sleep(10 * time.Second)
		at := h.Is(d, chg, change.Blocked)
		resume := "sallyport change resume " + string(chg)
		for _, want := range []string{"1,000 tokens for this change", "1,200 were used", "tokens_per_change below budgets: in sallyport.yaml", resume} {
			if !strings.Contains(at.Change.Reason, want) {
				t.Errorf("%q does not say %q", at.Change.Reason, want)
			}
		}
		if at.Change.Next != resume || at.Change.Blocked != change.BudgetUsedUp {
			t.Errorf("%s, next %q", at.Change.Blocked, at.Change.Next)
		}
		if err := d.Resume(t.Context(), chg, h.By()); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "1,200 were used") {
			t.Errorf("it goes on though nothing was raised: %v", err)
		}
		b.owner.says(budget.Limits{TokensPerChange: 2000})
		if err := d.Resume(t.Context(), chg, h.By()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		at = h.Is(d, chg, change.AwaitingApproval)
		if told := p.Told(); len(told) != 2 || !strings.Contains(told[1], "Go on where you stopped") {
			t.Errorf("it was told %q", told)
		}
		if rounds := h.Reasons(d, chg, "round"); len(rounds) != 0 {
			t.Errorf("what was no fault of the agent's is a round: %q", rounds)
		}
		want := []budget.Use{{Subject: chg.Subject(), Model: "m", Requests: 2, Unpriced: 2, Tokens: budget.Tokens{Input: 1680, Output: 20}}}
		if !slices.Equal(at.Uses, want) {
			t.Errorf("used %+v", at.Uses)
		}
		if verbs := h.Verbs(d, chg); drivetest.Count(verbs, "blocked: "+change.BudgetUsedUp) != 1 {
			t.Errorf("%q", verbs)
		}
	})
}

// TestABudgetOutlivesTheDaemonAndIsLookedAtBeforeAnAgentStarts: what was used stands in rows, and a blocked change goes on in another life.
func TestABudgetOutlivesTheDaemonAndIsLookedAtBeforeAnAgentStarts(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		b := newBank(h)
		b.owner.says(budget.Limits{TokensPerHour: 1000})
		p := b.employs(func(ctx context.Context, s *drivetest.Scene, _ string) (string, error) {
			s.Write("page.txt", "two\n")
			return "done", errors.Join(b.spend(ctx, 1000), b.spend(ctx, 1000))
		}, page("three\n"))
		d, end := h.Daemon()
		chg := h.Ask(d)
		time.Sleep(5 * time.Second)
		h.Is(d, chg, change.Blocked)
		end()
		d, _ = h.Daemon()
		h.Is(d, chg, change.Blocked)
		other := h.Ask(d)
		time.Sleep(5 * time.Second)
		if at := h.Is(d, other, change.Blocked); !strings.Contains(at.Change.Reason, "1,000 tokens for all agents in an hour, and 1,000 were used") || len(at.Sessions) != 0 {
			t.Errorf("%d sessions, %q", len(at.Sessions), at.Change.Reason)
		}
		time.Sleep(59 * time.Minute)
		if err := d.Resume(t.Context(), chg, h.By()); problem.KindOf(err) != problem.Refused {
			t.Errorf("the hour is over too early: %v", err)
		}
		time.Sleep(2 * time.Minute)
		for _, c := range []id.Change{chg, other} {
			if err := d.Resume(t.Context(), c, h.By()); err != nil {
				t.Fatalf("the hour is not over: %v", err)
			}
			time.Sleep(20 * time.Second)
			h.Is(d, c, change.AwaitingApproval)
		}
		if told := p.Told(); len(told) != 3 {
			t.Errorf("it was told %q", told)
		}
	})
}

func TestADayForgetsWhatAnHourHasForgottenLongAgo(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		b := newBank(h)
		b.employs(func(ctx context.Context, s *drivetest.Scene, _ string) (string, error) {
			s.Write("page.txt", "two\n")
			return "done", b.spend(ctx, 500)
		})
		d, _ := h.Daemon()
		began := time.Now()
		chg := h.Ask(d)
		time.Sleep(5 * time.Second)
		h.Is(d, chg, change.AwaitingApproval)
		for _, step := range []struct {
			after     time.Duration
			hour, day int64
		}{{59 * time.Minute, 500, 500}, {62 * time.Minute, 0, 500}, {24*time.Hour - time.Minute, 0, 500}, {24*time.Hour + 2*time.Minute, 0, 0}} {
			time.Sleep(time.Until(began.Add(step.after)))
			s, err := d.Spending(t.Context(), chg)
			if err != nil || s.Hour.Tokens != step.hour || s.Day.Tokens != step.day || s.Change.Tokens != 500 {
				t.Errorf("after %s: %+v, %v", step.after, s, err)
			}
		}
	})
}

// TestManyRequestsAtOnceDoNotRunFarPastABudget: near its end they wait for each other, and those that still may go, go.
func TestManyRequestsAtOnceDoNotRunFarPastABudget(t *testing.T) {
	for name, test := range map[string]struct {
		limits budget.Limits
		each   int64
		most   int64 // of all tokens
		least  int   // requests that were met
		before int   // requests that were made one by one before
	}{
		"a small budget, one at a time": {budget.Limits{TokensPerChange: 10_000}, 3000, 12_000, 4, 0},
		"a large one":                   {budget.Limits{TokensPerChange: 200_000}, 30_000, 210_000, 7, 0},
		"of the hour":                   {budget.Limits{TokensPerHour: 200_000}, 30_000, 210_000, 7, 0},
		"of money":                      {budget.Limits{CostPerDay: 200_000}, 30_000, 210_000, 7, 0},
		"more than was thought":         {budget.Limits{TokensPerChange: 200_000}, 90_000, 7 * 90_000, 3, 0}, // the first ones are not known to be so large
		"a size that is known":          {budget.Limits{TokensPerChange: 200_000}, 90_000, 270_000, 3, 1},
		"all of them":                   {budget.Limits{TokensPerChange: 1 << 30}, 30_000, 50 * 30_000, 50, 0},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				b := newBank(h)
				b.owner.price = budget.Price{Input: 1_000_000, Output: 1_000_000}
				b.owner.says(test.limits)
				met, began := 0, time.Now()
				took := time.Duration(0)
				b.employs(func(ctx context.Context, s *drivetest.Scene, _ string) (string, error) {
					if took != 0 {
						return "done", nil
					}
					s.Write("page.txt", "two\n")
					var mu sync.Mutex
					var all sync.WaitGroup
					for range test.before {
						if err := b.spend(ctx, test.each); err != nil {
							t.Errorf("refused: %v", err)
						}
						met++
					}
					for range 50 - test.before {
						all.Go(func() {
							if err := b.spend(ctx, test.each); err == nil {
								mu.Lock()
								met++
								mu.Unlock()
							}
						})
					}
					all.Wait()
					took = time.Since(began)
					return "", errors.New("429")
				})
				d, _ := h.Daemon()
				chg := h.Ask(d)
				time.Sleep(5 * time.Minute)
				s, err := d.Spending(t.Context(), chg)
				if err != nil || s.Change.Tokens > test.most || met < test.least || int64(met)*test.each != s.Change.Tokens {
					t.Errorf("%d were met and used %d tokens, %v", met, s.Change.Tokens, err)
				}
				if want := change.Blocked; met < 50 {
					h.Is(d, chg, want)
				}
				if met == 50 && took > 3*time.Second { // nothing has to wait where there is room
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

func TestARequestThatWaitsForOthersEndsWithItsDoor(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		b := newBank(h)
		b.owner.says(budget.Limits{TokensPerChange: 100})
		b.employs(func(ctx context.Context, s *drivetest.Scene, _ string) (string, error) {
			s.Write("page.txt", "two\n")
			way := b.last()
			over, err := way.Admit(ctx)
			if err != nil {
				t.Errorf("the first is refused: %v", err)
				return "", err
			}
			ctx, cancel := context.WithCancel(ctx)
			second := make(chan error, 1)
			go func() {
				_, err := way.Admit(ctx)
				second <- err
			}()
			time.Sleep(time.Minute)
			select {
			case err := <-second:
				t.Errorf("the second did not wait: %v", err)
			default:
			}
			cancel()
			if err := <-second; !errors.Is(err, context.Canceled) {
				t.Errorf("the second ends with %v", err)
			}
			over()
			over()
			return "done", b.spend(t.Context(), 50)
		})
		d, _ := h.Daemon()
		chg := h.Ask(d)
		time.Sleep(2 * time.Minute)
		h.Is(d, chg, change.AwaitingApproval) // who waited in vain was not refused for a budget
	})
}

// TestARequestThatIsHeldOpenStopsNoOtherChange: a program that never sends the end of what it asks would else hold what is left for all.
func TestARequestThatIsHeldOpenStopsNoOtherChange(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		b := newBank(h)
		b.owner.says(budget.Limits{TokensPerHour: 40_000})
		var first id.Subject
		b.employs(func(ctx context.Context, s *drivetest.Scene, _ string) (string, error) {
			way, began := b.last(), time.Now()
			over, err := way.Admit(ctx)
			if err != nil {
				return "", err
			}
			defer over()
			if first == "" {
				first = way.Subject
				time.Sleep(10 * time.Minute)
				return "", errors.New("gone")
			}
			if took := time.Since(began); took < time.Minute || took > 3*time.Minute {
				t.Errorf("it waited for %s", took)
			}
			s.Write("page.txt", "two\n")
			return "done", nil
		})
		d, _ := h.Daemon()
		h.Ask(d)
		time.Sleep(time.Second)
		second := h.Ask(d)
		time.Sleep(15 * time.Minute)
		h.Is(d, second, change.AwaitingApproval)
	})
}

// TestWhatCannotBeCountedIsNotAsked: unknown is no, before any work where it can be known.
func TestWhatCannotBeCountedIsNotAsked(t *testing.T) {
	price := budget.Price{Input: 1, Output: 1}
	for name, test := range map[string]struct {
		limits budget.Limits
		price  budget.Price
		wire   agent.Wire
		want   string // "" = it may work
	}{
		"no budgets":                       {wire: ""},
		"tokens without a price":           {limits: budget.Limits{TokensPerDay: 100}, wire: agent.Chat},
		"tokens of an unknown wire":        {limits: budget.Limits{TokensPerDay: 100}, want: "say which API its endpoint speaks"},
		"money without a price":            {limits: budget.Limits{CostPerDay: 100}, wire: agent.Chat, want: "the price of the model of played is not known: add agents: played: price:"},
		"money with half a price":          {limits: budget.Limits{CostPerChange: 100}, price: budget.Price{Input: 1}, wire: agent.Chat, want: "the price of the model of played is not known"},
		"money with a price":               {limits: budget.Limits{CostPerHour: 100}, price: price, wire: agent.Chat},
		"money and a price, no known wire": {limits: budget.Limits{CostPerHour: 100}, price: price, want: "say which API its endpoint speaks"},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				b := newBank(h)
				b.employs(page("two\n"))
				h.Parts.Agents["played"] = asking{wire: test.wire}
				b.owner.limits, b.owner.price = test.limits, test.price
				d, _ := h.Daemon()
				_, err := d.TakeRequest(t.Context(), request.Request{By: h.By(), Text: "x", Project: git.Project{Top: h.Repo}, Agent: "played", Argv: []string{"true"}, Approve: request.Later}, nil)
				if test.want == "" && err == nil {
					synctest.Wait()
					return
				}
				if err == nil {
					t.Fatal("it is taken")
				}
				if p := problem.Of(err); p.Kind != problem.Refused || !strings.Contains(p.Text, test.want) || p.Next == "" {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

func TestAnAlertIsRaisedAtFourFifthsOfABudgetAndIsOverWithItsChange(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		b := newBank(h)
		b.owner.says(budget.Limits{TokensPerChange: 1000, TokensPerDay: 2000})
		var before, after string
		alerts := func() (out string) {
			for _, a := range h.Parts.Meter.Alerts() {
				if strings.HasPrefix(a.Name, "budget_") {
					out += a.Name + " " + a.Text + "\n"
				}
			}
			return out
		}
		b.employs(func(ctx context.Context, s *drivetest.Scene, _ string) (string, error) {
			s.Write("page.txt", "two\n")
			err := b.spend(ctx, 799)
			before = alerts()
			err = errors.Join(err, b.spend(ctx, 11))
			after = alerts()
			return "done", err
		})
		d, _ := h.Daemon()
		chg := h.Ask(d)
		time.Sleep(10 * time.Second)
		h.Is(d, chg, change.AwaitingApproval)
		if before != "" || !strings.Contains(after, "budget_tokens_per_change 81% of the budget tokens_per_change are used; the alert is at 80% ("+string(chg)+")") {
			t.Errorf("before %q, after %q", before, after)
		}
		if err := d.Cancel(t.Context(), chg, h.By(), ""); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if left := alerts(); left != "" {
			t.Errorf("left %q", left)
		}
	})
}

// full is a database that takes no more uses for a while.
type full struct {
	store.DB
	mu   sync.Mutex
	full bool
}

func (f *full) set(full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = full
}

func (f *full) InTx(ctx context.Context, do func(store.Tx) error) error {
	return f.DB.InTx(ctx, func(tx store.Tx) error { return do(fullTx{tx, f}) })
}

type fullTx struct {
	store.Tx
	of *full
}

func (t fullTx) AddUse(ctx context.Context, u budget.Use) error {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.of.full {
		return errors.New("the disk is full")
	}
	return t.Tx.AddUse(ctx, u)
}

func TestWhatCouldNotBeWrittenDownIsOwedBeforeAnythingIsAsked(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		db := &full{DB: h.Parts.DB}
		h.Parts.DB = db
		b := newBank(h)
		b.employs(func(ctx context.Context, s *drivetest.Scene, _ string) (string, error) {
			s.Write("page.txt", "two\n")
			db.set(true)
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					if err := b.spend(ctx, 100); err != nil {
						t.Errorf("one of the first requests is refused: %v", err)
					}
				})
			}
			all.Wait()
			return "", b.spend(ctx, 200)
		}, func(ctx context.Context, s *drivetest.Scene, _ string) (string, error) {
			return "done", b.spend(ctx, 300)
		})
		d, _ := h.Daemon()
		chg := h.Ask(d)
		time.Sleep(5 * time.Second)
		if at := h.Is(d, chg, change.Blocked); !strings.Contains(at.Change.Reason, "the disk is full") || len(at.Uses) != 0 {
			t.Errorf("%q, used %+v", at.Change.Reason, at.Uses)
		}
		db.set(false)
		if err := d.Resume(t.Context(), chg, h.By()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if at := h.Is(d, chg, change.AwaitingApproval); len(at.Uses) != 1 || at.Uses[0].Sum() != 500 || at.Uses[0].Requests != 3 {
			t.Errorf("used %+v", at.Uses)
		}
	})
}
