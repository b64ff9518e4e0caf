package api

// Storage is what a home has on disk, and what need not be kept.
type Storage struct {
	Home   string   `json:"home"`
	DryRun bool     `json:"dry_run"` // nothing was removed: Gone and Freed are what would be
	Kinds  []Stored `json:"kinds"`
	Bytes  int64    `json:"bytes"` // of all kinds, as the disk counts: allocated, not apparent
	Freed  int64    `json:"freed_bytes"`
	Notes  []string `json:"notes"` // what stays although it looks like sallyport's, or could not be removed, and why
}

// Stored is what there is of one kind.
type Stored struct {
	Kind  string `json:"kind"`
	Keeps string `json:"keeps"` // how long
	Count int    `json:"count"`
	Bytes int64  `json:"bytes"`
	Gone  int    `json:"gone"`
	Freed int64  `json:"freed_bytes"`
}

// GC asks for what need not be kept to be removed.
type GC struct {
	DryRun bool `json:"dry_run"`
}

// Uninstall is what sallyport has left in repositories and on the machine.
type Uninstall struct {
	Home     string   `json:"home"`
	Removed  bool     `json:"removed"`  // false: it was only looked at
	Pieces   []Piece  `json:"pieces"`   // what goes, in this order
	Stays    []string `json:"stays"`    // what is a person's, or another home's, and why
	Unlanded []string `json:"unlanded"` // changes that ended without landing: their work goes with the home
}

// Piece is one thing that goes.
type Piece struct {
	What  string `json:"what"`
	Path  string `json:"path"` // of a ref: the git directory and the ref
	Bytes int64  `json:"bytes,omitempty"`
}
