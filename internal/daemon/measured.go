package daemon

import (
	"sallyport/internal/rule/metric"
	"sallyport/internal/rule/secret"
)

// measured is a cache of scans that counts how often it knew the answer.
type measured struct {
	secret.Cache
	meter *metric.Set
}

func (m measured) Find(k secret.Key) ([]secret.Finding, bool) {
	found, ok := m.Cache.Find(k)
	m.meter.SecretLookup(ok)
	return found, ok
}
