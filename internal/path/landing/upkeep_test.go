package landing_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/landing"
)

// TestAPersonWhoCommitsAndPacksMeanwhileStopsNoLanding: their git locks, packs and prunes whenever it likes. What
// it is at is waited for or computed anew, and never taken for an odd repository.
func TestAPersonWhoCommitsAndPacksMeanwhileStopsNoLanding(t *testing.T) {
	r := testRepo(t, map[string]blob{"a": text("0\n"), "theirs": text("0\n")})
	put(t, filepath.Join(r.CommonDir, "objects/maintenance.lock"), "", 0o444) // their upkeep runs, or was killed
	work, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 1; ; n++ {
			if _, more := <-work; !more {
				return
			}
			put(t, filepath.Join(r.Top, "theirs"), fmt.Sprintln(n), 0o644)
			_, _ = tryGit(r.Top, "", "commit", "-qm", "theirs", "theirs") // refused while a landing has the index
			switch n % 4 {
			case 0:
				_, _ = tryGit(r.Top, "", "gc", "-q")
			case 2:
				_, _ = tryGit(r.Top, "", "pack-refs", "--all", "--prune")
			}
		}
	}()
	defer func() { close(work); <-stopped }()

	for n := range upkeepRounds {
		o := r.order(t, map[string]blob{"a": text(fmt.Sprintln("ours", n))})
		var done landing.Landing
		err := error(landing.ErrStale)
		for try := 0; errors.Is(err, landing.ErrStale) && try < 40; try++ {
			if try%4 == 0 { // they do something beside this try, and rest beside some: nobody commits without end
				select {
				case work <- struct{}{}:
				default: // they are still at it
				}
			}
			if _, err = (&landing.Lander{Host: beside}).Inspect(gittest.Context(t), r.Project, "main"); err != nil {
				break
			}
			o.Landing += "x"
			var computed landing.Landing
			if computed, err = (&landing.Lander{Host: beside}).Compute(gittest.Context(t), o); err == nil {
				done, err = (&landing.Lander{Host: beside}).Land(gittest.Context(t), computed, (&journal{}).steps())
			}
		}
		if err != nil || done.State != landing.Landed {
			t.Errorf("round %d: %s %q: %v", n, done.State, done.Reason, err)
		}
	}
}

const upkeepRounds = 12
