package schedule

import "time"

// Occurrence is what matters here of a message that a schedule has made.
type Occurrence struct {
	Status     string    // the message's: only `completed` recurs
	Due        time.Time // UTC
	Recurrence *Schedule // nil for one that does not come again, or that has been cloned
}

// Recur returns the message that follows done, nil if none does, and done as it is stored with it, in one transaction: without its
// recurrence, so that it is cloned once (CH-111). What is pending, in process, dead or folded keeps its recurrence: it recurs
// when it has been completed after all.
func Recur(done Occurrence, now time.Time) (clone *Occurrence, original Occurrence, warning string) {
	if done.Status != "completed" || done.Recurrence == nil {
		return nil, done, ""
	}
	again := *done.Recurrence
	again.NextRun = done.Due
	again.NextRun, warning = again.Next(now)
	done.Recurrence = nil
	if again.NextRun.IsZero() {
		return nil, done, warning
	}
	return &Occurrence{Status: "pending", Due: again.NextRun, Recurrence: &again}, done, warning
}
