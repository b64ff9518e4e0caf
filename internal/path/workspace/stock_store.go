package workspace

import (
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/lock"
)

// StockConfig says where stocks lie, and which of them stay that nothing stands on.
type StockConfig struct {
	Root       string // absolute
	Ops        disk.Ops
	Overlay    bool          // whether one can be laid over another
	Keep       time.Duration // after the last use
	QuotaBytes int64         // of disk, all together

	// Showing calls each with the name of every stock that a workspace shows. An error says that not all are known: then none goes.
	Showing func(each func(name string)) error
}

// StockStore makes, opens and removes the stocks of one home.
type StockStore struct {
	StockConfig
	ops disk.Ops

	busy lock.Keyed[string] // paths that are being made
	pins lock.Pins[string]  // stocks that somebody holds
}

// NewStockStore returns a store; it touches nothing.
func NewStockStore(c StockConfig) *StockStore { return &StockStore{StockConfig: c, ops: c.Ops} }
