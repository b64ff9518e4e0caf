package channels

import "time"

// Measured is how long it takes until all that was ever said is forgotten.
func (c *Channels) Measured() (most time.Duration) {
	c.floods.mu.Lock()
	defer c.floods.mu.Unlock()
	for _, free := range c.floods.by {
		most = max(most, time.Until(free))
	}
	return most
}
