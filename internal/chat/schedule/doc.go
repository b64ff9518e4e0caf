// Package schedule says when the agent of a group is to be woken by the clock: by a cron line, at an interval, or once.
//
// Whoever asks means the user's clock, and what is stored is UTC. No library gets clock changes right, so the library here only
// reads the five fields, and finds what matches in a year without clock changes, on a clock that reads UTC. When the user's
// clock first reads that is zone.Instant's answer. A run is therefore one reading of the user's clock: a reading that the clock
// skips runs at the moment of the skip, once, however many were skipped, and a reading that comes twice runs the first time.
// The hour that comes twice in autumn has no second run of any cron line; what must go on by the real clock is an interval.
//
// Runs that were missed, by a machine that slept, are one run: the one that was due first. What follows it lies in the future,
// and finding it takes the same few steps after a minute as after a year.
package schedule
