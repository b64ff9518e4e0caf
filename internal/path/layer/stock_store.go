package layer

import (
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/lock"
)

// StocksConfig says where stocks lie, and which of them stay that nothing stands on.
type StocksConfig struct {
	Root       string // absolute
	Ops        disk.Ops
	Overlay    bool          // whether one can be laid over another
	Keep       time.Duration // after the last use
	QuotaBytes int64         // of disk, all together

	// Showing calls each with the name of every stock that a workspace shows. An error says that not all are known: then none goes.
	Showing func(each func(name string)) error
}

// Stocks makes, opens and removes the stocks of one home.
type Stocks struct {
	StocksConfig
	ops disk.Ops

	busy lock.Keyed[string] // paths that are being made
	pins lock.Pins[string]  // stocks that somebody holds
}

// NewStocks returns a store; it touches nothing.
func NewStocks(c StocksConfig) *Stocks { return &Stocks{StocksConfig: c, ops: c.Ops} }
