package channels

import (
	"strconv"
	"testing"
	"time"

	"sallyport/internal/who/person"
)

// TestNoNumberOfStrangersLocksLinking holds that whatever strangers try, an account that has tried nothing has its code looked at, that what they
// try beyond the first of each account is bounded, and that what is remembered of them is.
func TestNoNumberOfStrangersLocksLinking(t *testing.T) {
	now := time.Now()
	var all tries
	looked := 0
	const strangers = 3 * triersMax
	for n := range strangers {
		for range triesOf + 1 {
			if why, _ := all.take(person.Identity{Platform: "chat", Account: strconv.Itoa(n)}, now); why == "" {
				looked++
			}
		}
	}
	if most := strangers + triesAll; looked > most {
		t.Errorf("%d codes of strangers were looked at, more than %d", looked, most)
	}
	if kept := len(all.by) + len(all.before); kept > 2*triersMax {
		t.Errorf("%d accounts are remembered", kept)
	}

	honest := person.Identity{Platform: "chat", Account: "honest"}
	if why, _ := all.take(honest, now); why != "" {
		t.Errorf("the first code of an account is not looked at: %s", why)
	}
	for n := range 3 {
		why, news := all.take(honest, now)
		if why != triedByAll || news != (n == 0) {
			t.Errorf("number %d after that: %q, %v", n, why, news)
		}
	}
	if why, _ := all.take(honest, now.Add(triesFor)); why != "" {
		t.Errorf("after ten minutes: %s", why)
	}
}
