package metric

import "time"

// Measure names a length of time that is measured.
type Measure string

const (
	Checkpoint Measure = "checkpoint" // until it has a verdict
	Frozen     Measure = "frozen"     // how long the session stood for it and what follows from it
	Diff       Measure = "diff"       // walk, read and compare the whole workspace
	Validation Measure = "validation" // of all that one checkpoint changes
	File       Measure = "file"       // the same by file: the mean of one checkpoint's
	Pause      Measure = "pause"      // until every process stands
	Resume     Measure = "resume"     // until they run again
	Event      Measure = "event"      // from reading the kernel's queue until all that was in it is known
)

// standard is what one measure is held to (SV-100); zero where nothing is promised.
type standard struct {
	Measure
	metric  string // its name in a scrape
	help    string
	target  time.Duration
	maximum time.Duration // longer raises an alert
}

// standards is every measure, in the order in which a person reads them.
var standards = []standard{
	{Checkpoint, "sallyport_checkpoint_seconds", "One checkpoint, until it has a verdict.", 500 * time.Millisecond, 2 * time.Second},
	{Frozen, "sallyport_checkpoint_frozen_seconds", "How long a session stood still for one checkpoint and what followed from it.", 0, 0},
	{Diff, "sallyport_diff_seconds", "Walking, reading and comparing a whole workspace.", time.Second, 5 * time.Second},
	{Validation, "sallyport_validation_seconds", "Judging all that one checkpoint changes.", 0, 0},
	{File, "sallyport_validation_file_seconds", "Judging one file: the mean over one checkpoint.", 50 * time.Millisecond, 200 * time.Millisecond},
	{Pause, "sallyport_pause_seconds", "Stopping every process of a session.", 100 * time.Millisecond, 500 * time.Millisecond},
	{Resume, "sallyport_resume_seconds", "Letting a stopped session run again.", 100 * time.Millisecond, 500 * time.Millisecond},
	{Event, "sallyport_event_seconds", "From reading the kernel's queue of a workspace until all that was in it is known.",
		10 * time.Millisecond, 50 * time.Millisecond},
}

// buckets are the histogram's bounds, in seconds: dense around target and maximum.
func (s standard) buckets() []float64 {
	target, maximum := s.target.Seconds(), s.maximum.Seconds()
	if maximum == 0 { // no promise: the checkpoint's, which it is a part of
		target, maximum = 0.5, 2
	}
	return []float64{target / 50, target / 10, target / 5, target / 2, target, (target + maximum) / 2, maximum, 2 * maximum, 5 * maximum}
}

// Limits of SV-102 and SV-104.
const (
	diskChangeBytes   = 1 << 30
	diskAllBytes      = 10 << 30
	memoryChangeBytes = 50 << 20
	memoryAllBytes    = 500 << 20
	descriptorsAll    = 10_000
	queueMax          = 1_000
)
