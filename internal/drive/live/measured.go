package live

import (
	"context"
	"sync/atomic"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/metric"
)

// measured is a running session whose stops and goes are measured, whoever asks for them.
type measured struct {
	sandbox.Process
	meter  *metric.Set
	change id.Change
	still  atomic.Bool // a thaw of what is not frozen is no resume
}

// Measure measures the stops and goes of a session that works for a change.
func Measure(p sandbox.Process, meter *metric.Set, change id.Change) sandbox.Process {
	return &measured{Process: p, meter: meter, change: change}
}

func (m *measured) Freeze(ctx context.Context) error {
	began := time.Now()
	err := m.Process.Freeze(ctx)
	m.meter.Paused(m.change, time.Since(began), err)
	m.still.Store(err == nil)
	return err
}

func (m *measured) Thaw() error {
	began := time.Now()
	err := m.Process.Thaw()
	if m.still.CompareAndSwap(true, err != nil) {
		m.meter.Resumed(m.change, time.Since(began), err)
	}
	return err
}
