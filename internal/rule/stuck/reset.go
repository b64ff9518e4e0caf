package stuck

import (
	"fmt"
	"time"
)

// Return gives back all that a killed or failed session had in process. The try counts for the messages whose turn it was; what was pushed
// into that turn is new words, which neither are at fault nor wait.
func Return(now Now, rows []Row, because string) (resets []Reset) {
	for _, row := range rows {
		if row.Pushed {
			resets = append(resets, Reset{ID: row.ID, Tries: row.Tries, Due: now.Wall.UTC(), Reason: because})
			continue
		}
		resets = append(resets, fail(now, row, because))
	}
	return resets
}

// retry gives back rows whose sandbox is no more: nobody knows whose fault that was, so the try counts for each (CH-090).
func retry(now Now, rows []Row, because string) (resets []Reset) {
	for _, row := range rows {
		resets = append(resets, fail(now, row, because))
	}
	return resets
}

// fail counts a try: the message waits and is tried again, or is dead and says why.
func fail(now Now, row Row, because string) Reset {
	tries := row.Tries + 1
	if tries >= TriesMax {
		return Reset{ID: row.ID, Dead: true, Tries: tries, Reason: fmt.Sprintf("%d tries have failed, the last one because %s", tries, because)}
	}
	return Reset{ID: row.ID, Tries: tries, Due: now.Wall.Add(Backoff(tries)).UTC(), Reason: because}
}

// Clamp shortens waits that a clock which was set back has made longer than they are: new words wait for nothing, and what has failed for no
// longer than it would after a try that fails now. Waiting are rows that are pending, and none that is planned for a time.
func Clamp(now Now, waiting []Row) (resets []Reset) {
	for _, row := range waiting {
		latest := now.Wall
		if row.Tries > 0 {
			latest = latest.Add(Backoff(row.Tries))
		}
		if row.Due.After(latest) {
			resets = append(resets, Reset{ID: row.ID, Tries: row.Tries, Due: latest.UTC(), Reason: "the clock was set back"})
		}
	}
	return resets
}

// words says a limit as a person does.
func words(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		switch n := d / unit.of; {
		case d%unit.of != 0 || n == 0:
		case n == 1:
			return "1 " + unit.name
		default:
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return d.String()
}
