package workspace

// ErrNoWhiteouts is what a disk says that holds no deletions.
var ErrNoWhiteouts = errNoWhiteouts
