package guard_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/guard"
	"sallyport/internal/path/trial"
)

// keeper writes down what it is told, and when.
type keeper struct {
	armed    map[id.Landing][]guard.Watched
	at       []time.Time
	disarmed []id.Landing

	mu  sync.Mutex
	err error
}

// fails has it take nothing from now on.
func (k *keeper) fails(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
}

func (k *keeper) takes() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

func (k *keeper) Arm(l id.Landing, w guard.Watched) error {
	if k.armed == nil {
		k.armed = map[id.Landing][]guard.Watched{}
	}
	k.armed[l], k.at = append(k.armed[l], w), append(k.at, time.Now())
	return k.takes()
}

func (k *keeper) Disarm(l id.Landing) error {
	k.disarmed = append(k.disarmed, l)
	return k.takes()
}

func clock() (deadman.Moment, error) { return deadman.Moment{Wall: time.Now(), Boot: "b"}, nil }

func guarded() (guard.Guard, *keeper, *bytes.Buffer) {
	k, said := &keeper{}, &bytes.Buffer{}
	return guard.Guard{Keeper: k, Clock: clock, Log: slog.New(slog.NewTextHandler(said, nil))}, k, said
}

// A deadline that stayed the old one would have the keeper end a daemon that works.
func TestTheKeeperHearsAgainAndAgainThatALandingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, k, _ := guarded()
		release, err := g.Hold("lnd-1")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		told := k.armed["lnd-1"]
		if len(told) < 3 {
			t.Fatalf("told %d times in 20 minutes", len(told))
		}
		for i, w := range told {
			left := w.Until.Left(deadman.Moment{Wall: k.at[i], Boot: "b"})
			if left <= 0 || w.Parted {
				t.Errorf("told %+v with %s left", w, left)
			}
			if i > 0 && !k.at[i].Before(k.at[i-1].Add(told[i-1].Until.In)) {
				t.Errorf("told again %s after it was told for %s", k.at[i].Sub(k.at[i-1]), told[i-1].Until.In)
			}
		}

		release()
		release()
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if len(k.armed["lnd-1"]) != len(told) || len(k.disarmed) != 0 {
			t.Errorf("after its release it was told %d times more, and disarmed %v", len(k.armed["lnd-1"])-len(told), k.disarmed)
		}
	})
}

func TestNothingBeginsToLandThatNoKeeperWatches(t *testing.T) {
	g, k, _ := guarded()
	k.err = errors.New("no keeper")
	if release, err := g.Hold("lnd-1"); !errors.Is(err, k.err) || release != nil {
		t.Errorf("%v", err)
	}
	g, k, _ = guarded()
	stopped := errors.New("no clock")
	g.Clock = func() (deadman.Moment, error) { return deadman.Moment{}, stopped }
	if _, err := g.Hold("lnd-1"); !errors.Is(err, stopped) || len(k.armed) > 0 {
		t.Errorf("armed %v, %v", k.armed, err)
	}
}

func TestAKeeperThatCannotBeToldIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, k, said := guarded()
		release, err := g.Hold("lnd-1")
		if err != nil {
			t.Fatal(err)
		}
		k.fails(errors.New("the disk is full"))
		time.Sleep(6 * time.Minute)
		release()
		g.ArmTrial(trial.Trial{Change: "chg-2", Landing: "lnd-2"}, false)
		g.Disarm("lnd-3")
		for _, want := range []string{"could not be told", "landing=lnd-1", "no keeper watches", "change=chg-2", "stays armed", "landing=lnd-3", "the disk is full"} {
			if !strings.Contains(said.String(), want) {
				t.Errorf("%q is not said in %s", want, said)
			}
		}
	})
}

// The daemon's own timer comes first: the keeper looks a moment after the deadline, and never before.
func TestATrialIsWatchedUntilALittleAfterItsDeadline(t *testing.T) {
	g, k, said := guarded()
	set := deadman.Deadline{Set: deadman.Moment{Wall: time.Now(), Boot: "b"}, In: time.Minute}
	for _, parted := range []bool{false, true} {
		g.ArmTrial(trial.Trial{Landing: "lnd-1", Expires: set}, parted)
	}
	g.Disarm("lnd-1")
	told := k.armed["lnd-1"]
	if len(told) != 2 || told[0].Parted || !told[1].Parted || len(k.disarmed) != 1 || said.Len() > 0 {
		t.Fatalf("%+v, disarmed %v, said %s", told, k.disarmed, said)
	}
	for _, w := range told {
		if w.Until.Set != set.Set || w.Until.In <= set.In || w.Until.In > set.In+10*time.Second {
			t.Errorf("watched until %+v, the trial ends %+v", w.Until, set)
		}
	}
}
