package secret

import (
	"container/list"
	"slices"
	"sync"
)

// Key names a scan whose result is always the same (SV-073).
type Key struct {
	Blob  string // object id of what was scanned
	Base  string // object id of the path's content at the base: it says which inline allows count
	Path  string // some rules hold for some paths only
	Rules string // Scanner.Digest
}

// Cache keeps the findings of whole scans. Both methods may be called at once from many goroutines. A
// cache that loses things is fine; one that is wrong is not.
type Cache interface {
	Find(Key) ([]Finding, bool)
	Keep(Key, []Finding)
}

// Memory is a Cache of the last so many scans.
type Memory struct {
	mu     sync.Mutex
	max    int
	recent *list.List // of kept; newest first
	at     map[Key]*list.Element
}

type kept struct {
	key      Key
	findings []Finding
}

// NewMemory returns a cache of at most entriesMax scans; at least one.
func NewMemory(entriesMax int) *Memory {
	return &Memory{max: max(entriesMax, 1), recent: list.New(), at: map[Key]*list.Element{}}
}

func (m *Memory) Find(k Key) ([]Finding, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.at[k]
	if !ok {
		return nil, false
	}
	m.recent.MoveToFront(e)
	return slices.Clone(e.Value.(kept).findings), true
}

func (m *Memory) Keep(k Key, fs []Finding) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.at[k]; ok {
		m.recent.Remove(e)
	}
	m.at[k] = m.recent.PushFront(kept{k, slices.Clone(fs)})
	for m.recent.Len() > m.max {
		last := m.recent.Back()
		m.recent.Remove(last)
		delete(m.at, last.Value.(kept).key)
	}
}
