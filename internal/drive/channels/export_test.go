package channels

import (
	"time"

	"sallyport/internal/base/id"
)

// Measured is how long it takes until all that was ever said is forgotten.
func (c *Channels) Measured() (most time.Duration) {
	c.floods.mu.Lock()
	defer c.floods.mu.Unlock()
	for _, free := range c.floods.by {
		most = max(most, time.Until(free))
	}
	return most
}

// StrangersSaid counts that so much of what strangers said in a channel was dropped a moment ago.
func (c *Channels) StrangersSaid(platform string, many int) {
	c.floods.count(talker{where: id.Conversation(platform)}, time.Duration(many)*talkEvery, time.Now())
}
