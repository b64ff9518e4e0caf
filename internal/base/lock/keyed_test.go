package lock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestOneAtATimeWorksOnAThingAndNobodyWaitsForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k Keyed[string]
		release, err := k.Take(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if other, err := k.Take(t.Context(), "b"); err != nil {
			t.Fatal(err)
		} else {
			other()
		}
		inside, most := 0, 0
		for range 3 {
			go func() {
				release, err := k.Take(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				inside++
				most = max(most, inside)
				<-time.After(time.Millisecond)
				inside--
				release()
			}()
		}
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("no longer wanted"))
		if _, err := k.Take(gone, "a"); err == nil || err.Error() != "no longer wanted" {
			t.Errorf("who gave up got %v", err)
		}
		synctest.Wait()
		if most != 0 {
			t.Error("somebody else was let in")
		}
		release()
		<-time.After(time.Second)
		synctest.Wait()
		if most != 1 || inside != 0 {
			t.Errorf("%d at once, %d still inside", most, inside)
		}
	})
}

func TestWhoWorksAloneGivesTheThingBack(t *testing.T) {
	var k Keyed[string]
	failed := errors.New("failed")
	for _, want := range []error{nil, failed, nil} {
		if err := k.Alone(t.Context(), "a", func() error { return want }); err != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
	release, err := k.Take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(failed)
	if err := k.Alone(gone, "a", func() error { t.Error("two work on one thing"); return nil }); err != failed {
		t.Errorf("%v, want %v", err, failed)
	}
}
