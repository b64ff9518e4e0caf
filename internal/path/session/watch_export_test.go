package session

import (
	"maps"
	"slices"
)

// Changed returns the paths that changed since the last Reset, sorted.
func (w *Watch) Changed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.changed))
}

// Hold keeps a watch from reading until release is called.
func (w *Watch) Hold() (release func()) {
	w.mu.Lock()
	return w.mu.Unlock
}

// DecodeEvents counts the events in data and returns the sum of the lengths of their names.
func DecodeEvents(data []byte) (events, names int) {
	for _, e := range decodeEvents(nil, data) {
		events++
		names += len(e.name)
	}
	return events, names
}
