package api

import "time"

// Alert is a figure that is over its limit.
type Alert struct {
	Name     string    `json:"name"` // stable
	Text     string    `json:"text"`
	Since    time.Time `json:"since"`
	LastedMS int64     `json:"lasted_ms"`
	Change   string    `json:"change,omitempty"` // "" = the host as a whole
	Figure   float64   `json:"figure"`
	Limit    float64   `json:"limit"`
	Unit     string    `json:"unit"` // of figure and limit: seconds, percent, bytes, events, descriptors
}

// Measure is how long one thing takes. Percentiles and the longest are of the last Window
// samples, the count is of all since the daemon began.
type Measure struct {
	Name      string  `json:"name"`
	Count     int64   `json:"count"`
	Window    int     `json:"window"`
	P50MS     float64 `json:"p50_ms"`
	P95MS     float64 `json:"p95_ms"`
	P99MS     float64 `json:"p99_ms"`
	MaxMS     float64 `json:"max_ms"`
	TargetMS  float64 `json:"target_ms,omitempty"`  // for the 95th percentile; 0 = nothing is promised
	MaximumMS float64 `json:"maximum_ms,omitempty"` // for every sample
	Verdict   string  `json:"verdict"`
}

// Count is how often something happened.
type Count struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// Figures are the numbers of one change.
type Figures struct {
	Change         string  `json:"change"`
	Valid          int     `json:"checkpoints_valid"`
	Invalid        int     `json:"checkpoints_invalid"`
	Skipped        int     `json:"checkpoints_skipped"` // nobody was to judge them
	Failed         int     `json:"checkpoints_failed"`  // none could be taken
	LastMS         float64 `json:"checkpoint_last_ms"`
	LongestMS      float64 `json:"checkpoint_longest_ms"`
	Pauses         int     `json:"pauses"`
	PausesFailed   int     `json:"pauses_failed"`
	Reverts        int     `json:"reverts"`
	Events         int64   `json:"events"`
	EventLongestMS float64 `json:"event_longest_ms"`
	QueueDepth     int     `json:"event_queue_depth"`
	UpperBytes     int64   `json:"upper_bytes"` // what its agent wrote, on disk now
	UpperMaxBytes  int64   `json:"upper_bytes_max"`
	MemoryBytes    int64   `json:"watch_memory_bytes"`
}

// Stats is what a daemon measured since it began. Change is there if one was asked for.
type Stats struct {
	Alerts        []Alert   `json:"alerts"`
	Measures      []Measure `json:"measures"`
	Counts        []Count   `json:"counts"`
	Running       int       `json:"sessions_running"`
	Waiting       int       `json:"sessions_waiting"`
	QueueDepth    int       `json:"event_queue_depth"`
	UpperBytes    int64     `json:"upper_bytes"`
	WatchBytes    int64     `json:"watch_memory_bytes"`
	ResidentBytes int64     `json:"resident_bytes"`
	Descriptors   int       `json:"descriptors"`
	Spending      Spending  `json:"spending"` // of models
	Change        *Figures  `json:"change,omitempty"`
}
