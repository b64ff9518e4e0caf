package lock

// Names returns how many things are remembered.
func (p *Pins[K]) Names() int { return len(p.held) }
