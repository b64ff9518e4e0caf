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
